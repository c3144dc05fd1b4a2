"""The documents agree with the code."""

import ast
import re
from importlib.util import find_spec
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from pyprof import schema
from pyprof.__main__ import main
from pyprof.analysis.diff import compare
from pyprof.cli import former_options
from pyprof.commands import diff
from tests.programs import TOP

FORMATS = (TOP / "docs" / "formats.md").read_text(encoding="utf-8")
CAPTURE = (TOP / "docs" / "capture.md").read_text(encoding="utf-8")
PAGES = [
    *sorted((TOP / "docs").glob("*.md")),
    *(TOP / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")),
]


def _keys(text: str) -> list[str]:
    rows = re.findall(r"^\| (`[^|]+) \|", text, re.MULTILINE)
    return [key for row in rows for key in re.findall(r"`(\w+)`", row)]


def test_every_key_of_a_line_is_described() -> None:
    old, new = FORMATS.partition("\nWhere known")[::2]
    assert sorted(_keys(old)) == sorted(schema.OLD_RECORD.names)
    assert sorted(_keys(new)) == sorted(set(schema.RECORD.names) - set(schema.OLD_RECORD.names))


def test_every_kind_is_described() -> None:
    (row,) = re.findall(r"^\| `kind` .*$", FORMATS, re.MULTILINE)
    assert all(f"`{kind}`" in row for kind in schema.KINDS)


def test_every_metric_that_can_be_limited_is_described() -> None:
    help_text = CliRunner().invoke(diff.command, ["--help"]).output
    named = set(re.findall(r"\b[a-z]+\b", help_text.partition("metrics:")[2]))
    assert {*compare.METRICS} - named == set()
    page = (TOP / "docs" / "diff.md").read_text(encoding="utf-8")
    assert [name for name in compare.METRICS if not re.search(rf"`{name}[`<>]", page)] == []


@pytest.mark.parametrize("page", sorted((TOP / "docs").glob("*.md")), ids=lambda page: page.stem)
def test_python_in_the_documents_compiles(page: Path) -> None:
    blocks = re.findall(r"^```python\n(.*?)^```", page.read_text("utf-8"), re.DOTALL | re.MULTILINE)
    assert all(ast.parse(block) for block in blocks)


_NAMED_FILE = re.compile(
    r"(?<![\w/.-])(?:pyprof|tests|benchmarks|docs|examples)/[\w/.-]*\w(?=[^\w*-])"
)
_NAMED_MODULE = re.compile(r"\bpyprof\.(?:[a-z_]\w*\.)+[a-z_]\w*")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_files_and_modules_that_are_named_exist(page: Path) -> None:
    text = page.read_text("utf-8")
    assert [name for name in _NAMED_FILE.findall(text) if not (TOP / name).exists()] == []
    named = [name.rpartition(".") for name in _NAMED_MODULE.findall(text)]
    assert [name for home, _, name in named if find_spec(home) is None] == []


def test_every_page_is_found_by_its_question_and_in_the_navigation() -> None:
    pages = {path.name for path in (TOP / "docs").glob("*.md")} - {"README.md"}
    index = (TOP / "docs" / "README.md").read_text("utf-8")
    navigation = (TOP / "mkdocs.yml").read_text("utf-8").partition("\nnav:\n")[2]
    assert [name for name in sorted(pages) if f"]({name}" not in index] == []
    assert [name for name in sorted(pages) if f"- {name}\n" not in navigation] == []


_SHOWN = re.compile(r"(?:\$ |`)pyprof ([a-z]+) ([^`\n|]*)")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_commands_that_are_shown_have_their_options(page: Path) -> None:
    """Options after a script are the script's."""
    for name, rest in _SHOWN.findall(page.read_text("utf-8")):
        command = main.get_command(click.Context(main), name)
        assert command is not None, f"there is no command {name}"
        named = re.findall(r"(?<![\w-])--[a-z][a-z-]*", re.split(r"\b\w+\.py\b", rest)[0])
        known = {"--help", *(flag for each in command.params for flag in each.opts)}
        assert {*named} <= known, f"pyprof {name}"


@pytest.mark.parametrize("page", PAGES[:-1], ids=lambda page: page.stem)
def test_pages_name_no_former_option(page: Path) -> None:
    shown = re.findall(r"(?<![\w-])--[a-z][a-z-]*", page.read_text("utf-8"))
    former = [name for name in shown if former_options.rewritten("pyprof", name, [name, "1"])]
    assert former == []


def test_the_map_has_every_package_and_module() -> None:
    page = (TOP / "CONTRIBUTING.md").read_text("utf-8")
    rooms = [f"{path.parent.name}/" for path in (TOP / "pyprof").glob("*/__init__.py")]
    modules = [path.name for path in (TOP / "pyprof").glob("[!_]*.py")]
    missing = [name for name in (*rooms, *modules) if f"`{name}`" not in page]
    assert missing == [], "name these in CONTRIBUTING.md, How it hangs together"
    map_ = page[page.index("## How it hangs together") : page.index("## Recipes")]
    named = re.findall(r"`(\w+\.py|\w+/)`", map_)
    assert [name for name in named if not any(TOP.glob(f"pyprof/**/{name}"))] == []


def _heading_anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.*)$", page.read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_links_lead_to_headings(page: Path) -> None:
    links = re.findall(r"\]\(([^)#:\s]*)(?:#([^)]*))?\)", page.read_text("utf-8"))
    for name, anchor in links:
        target = page.parent / name if name else page
        assert target.exists()
        assert not anchor or anchor in _heading_anchors(target), f"{name}#{anchor}"


def _spoken() -> str:
    trees = (ast.parse(path.read_text("utf-8")) for path in (TOP / "pyprof").rglob("*.py"))
    constants = (
        node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Constant)
    )
    return "\n".join(node.value for node in constants if isinstance(node.value, str))


@pytest.mark.long
def test_messages_that_are_explained_are_those_of_the_code() -> None:
    page = (TOP / "docs" / "troubleshooting.md").read_text("utf-8")
    first_cells = re.findall(r"^\| ([^|]+) \|", page, re.MULTILINE)
    messages = [text for cell in first_cells for text in re.findall(r"`([^`]* [^`]*)`", cell)]
    parts = [part.strip() for text in messages for part in re.split("…|: ", text)]
    spoken = _spoken()
    assert len(messages) > 10
    assert [part for part in parts if part not in spoken] == []


def test_the_script_uses_what_pyprof_exports() -> None:
    import pyprof  # noqa: PLC0415 - the name is what is tested

    names = set(re.findall(r"pyprof\.(\w+)\(", CAPTURE))
    assert names
    assert names <= set(dir(pyprof))
