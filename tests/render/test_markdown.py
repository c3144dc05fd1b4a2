"""Markdown shows any text as it is, by a Markdown reader's own judgement."""

import html
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyprof.render.text.formatting import escape, markdown_table

TEXTS = st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z"]), min_size=1)
HOSTILE = "k<</script><img src=x onerror=alert(1)>|`*_[a](b)&amp;~$#!"


def cells(markdown: str) -> list[str]:
    """Render a table and give its cells as a reader sees them."""
    reader = pytest.importorskip("markdown_it").MarkdownIt("commonmark").enable("table")
    rendered = reader.render(markdown)
    found = re.findall(r"<t[hd](?: [^>]*)?>(.*?)</t[hd]>", rendered, re.DOTALL)
    assert not any("<" in cell for cell in found), rendered
    return [html.unescape(cell) for cell in found]


@given(TEXTS)
def test_a_cell_reads_as_its_text(text: str) -> None:
    """No text becomes markup, another cell or HTML."""
    assert cells(markdown_table(("name", "n"), [(text, "1")])) == ["name", "n", text, "1"]


def test_a_hostile_name_reads_as_itself() -> None:
    """A template kernel name that looks like a script stays a name."""
    assert cells(markdown_table(("name",), [(HOSTILE,)])) == ["name", HOSTILE]


def test_line_ends_are_blanks() -> None:
    assert escape("a\nb\r\n c") == "a b c"
