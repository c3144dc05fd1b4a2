"""The documents name what the code has."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

import pytest

from pyprof import schema
from tests.programs import TOP

if TYPE_CHECKING:
    from pathlib import Path

FORMATS = (TOP / "docs" / "formats.md").read_text(encoding="utf-8")
CAPTURES = (TOP / "docs" / "captures.md").read_text(encoding="utf-8")


def _keys(text: str) -> list[str]:
    rows = re.findall(r"^\| (`[^|]+) \|", text, re.MULTILINE)
    return [key for row in rows for key in re.findall(r"`(\w+)`", row)]


def test_every_key_of_a_line_is_described() -> None:
    """The tables of keys list those of the schema, old ones first, and no other."""
    old, new = FORMATS.partition("\nWhere known")[::2]
    assert sorted(_keys(old)) == sorted(schema.OLD_RECORD.names)
    assert sorted(_keys(new)) == sorted(set(schema.RECORD.names) - set(schema.OLD_RECORD.names))


def test_every_kind_is_described() -> None:
    """The row of `kind` names all kinds."""
    (row,) = re.findall(r"^\| `kind` .*$", FORMATS, re.MULTILINE)
    assert all(f"`{kind}`" in row for kind in schema.KINDS)


@pytest.mark.parametrize("page", sorted((TOP / "docs").glob("*.md")), ids=lambda page: page.stem)
def test_python_in_the_documents_is_python(page: Path) -> None:
    """Every Python block can be compiled."""
    blocks = re.findall(r"^```python\n(.*?)^```", page.read_text("utf-8"), re.DOTALL | re.MULTILINE)
    assert all(ast.parse(block) for block in blocks)


def test_the_script_uses_what_pyprof_exports() -> None:
    """The names of pyprof in the guide exist."""
    import pyprof  # noqa: PLC0415 - the name is what is tested

    names = set(re.findall(r"pyprof\.(\w+)\(", CAPTURES))
    assert names
    assert names <= set(dir(pyprof))
