"""Numbers and tables for people."""

import html
import re
import sys

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyprof.render.text import formatting
from pyprof.render.text.formatting import escape, markdown_table
from pyprof.render.text.layout.text_width import cells, cut_end, cut_start


def test_control_characters_of_a_name_become_blanks() -> None:
    """A heading stays bold if colours are on."""
    lines = [formatting.heading("a\nb"), "c\x1b[31md\r\x7f"]
    assert formatting.finish(lines, coloured=False) == b"a b\nc [31md  \n"
    assert formatting.finish(lines, coloured=True) == b"\x1b[1ma b\x1b[0m\nc [31md  \n"


def test_columns_are_as_wide_as_their_widest_cell() -> None:
    """Numbers to the right, names to the left, no trailing blanks."""
    lines = formatting.table([("a", "1"), ("bcd", "23")], ("Op", "ms"), (0,))
    assert lines == ["Op   ms", "a     1", "bcd  23"]


def test_a_wide_table_continues_below() -> None:
    """Indented, below the first column; every cell is there, and no line is too wide."""
    rows = [[f"row {n}", *("x" * 20 + str(place) for place in range(9))] for n in range(2)]
    header = ["Name", *(f"column {place}" for place in range(9))]
    lines = formatting.wrap_columns(rows, header, (0,))
    assert max(map(len, lines)) <= 100
    assert [line.split()[0] for line in lines if line] == ["Name", "row", "row"] * 3
    assert sum(line.startswith("row") for line in lines) == 2
    assert sorted(word for line in lines for word in line.split() if word[0] == "x") == sorted(
        cell for row in rows for cell in row[1:]
    )


def test_a_sentence_breaks_between_words() -> None:
    """Further lines are indented to its start; nothing is lost."""
    sentence = "word " * 60 + "end"
    lines = formatting.wrapped(sentence, "   - ")
    assert max(map(len, lines)) <= 100
    assert lines[0].startswith("   - word")
    assert lines[1].startswith("     word")
    assert " ".join(line.removeprefix("   - ").strip() for line in lines) == sentence


@pytest.mark.parametrize("amount", ["62.5 %", "463 ms", "2.1 GB", "3 s"])
def test_no_line_ends_between_a_number_and_its_unit(amount: str) -> None:
    for length in range(120):
        lines = formatting.wrapped(f"{'x' * length} {amount}, as measured")
        assert any(amount in line for line in lines)


@pytest.mark.parametrize(
    ("set_to", "target", "terminal", "expected"),
    [({}, "-", True, True), ({}, "-", False, False), ({"NO_COLOR": "1"}, "-", True, False),
     ({}, "net.txt", True, False), ({"FORCE_COLOR": "1"}, "-", False, True),
     ({"FORCE_COLOR": "1", "TERM": "dumb"}, "-", True, True),
     ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, "-", True, False),
     ({"TERM": "dumb"}, "-", True, False), ({"TERM": "xterm"}, "-", True, True),
     ({"FORCE_COLOR": "", "NO_COLOR": ""}, "-", False, False)],
    ids=str,
)  # fmt: skip
def test_the_target_and_the_environment_switch_colours(
    set_to: dict[str, str], target: str, *, terminal: bool, expected: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """FORCE_COLOR in a pipe, too; NO_COLOR takes precedence (https://no-color.org)."""
    for name in ("FORCE_COLOR", "NO_COLOR", "TERM"):
        monkeypatch.delenv(name, raising=False)
    for name, value in set_to.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: terminal)
    assert formatting.colours(target) is expected


HEADER = ("Op name", "GPU ms", "Own ms/step", "Others waited ms", "Clock us", "Last at line")


@given(
    st.lists(st.tuples(st.text("abcKernel_:\u6838", min_size=1, max_size=130),
                       *[st.integers(-(10**15), 10**15)] * 4,
                       st.text("abc/._", min_size=1, max_size=130)),
             min_size=1, max_size=4),
    st.integers(1, 4),
)  # fmt: skip
def test_a_table_is_100_cells_wide_and_truncates_no_number(
    rows: list[tuple[str, int, int, int, int, str]], times: int
) -> None:
    """However many columns; those without room continue below, whole."""
    spelt = [[one, *[f"{number:,}" for number in numbers] * times, last]
             for one, *numbers, last in rows]  # fmt: skip
    header = [HEADER[0], *HEADER[1:5] * times, HEADER[5]]
    left = (0, len(header) - 1)
    cuts = {0: cut_end, left[1]: cut_start}
    lines = [*formatting.layout_table(spelt, header, left, cuts)]
    plain = formatting.finish(lines, coloured=False).decode().splitlines()
    assert max(map(cells, plain)) <= 100
    words = " ".join(plain).split()
    for row in spelt:
        for number in row[1:-1]:
            assert words.count(number) >= sum(number in other[1:-1] for other in spelt)


def test_columns_move_closer_then_headers_stack_then_texts_are_truncated(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """In this order, and only as far as needed."""
    monkeypatch.setenv("COLUMNS", "100")
    header = ["Op", *["Own ms/step"] * 3, *["ms"] * 4]
    cuts = {0: cut_end}
    for length, shown in ((30, "a" * 30 + "  "), (39, "a" * 39 + " ")):
        (_, line) = formatting.layout_table([["a" * length, *["1.234"] * 7]], header, (0,), cuts)
        assert shown in line
        assert len(line) <= 100
    lines = formatting.layout_table([["a" * 50, *["1.234"] * 7]], header, (0,), cuts)
    first, second, line = map(click.unstyle, lines)
    assert (first.split(), second.split()) == (["Own"] * 3, ["Op", *["ms/step"] * 3, *["ms"] * 4])
    assert "a" * 50 + " " in line
    *_, line = formatting.layout_table([["a" * 90, *["1.234"] * 7]], header, (0,), cuts)
    assert (len(line), "aaa... " in line) == (100, True)
    header = ["Op", *["Others waited ms/step"] * 7]
    below = [*formatting.layout_table([["a" * 90, *["1.234"] * 7]], header, (0,), cuts)]
    assert sum("aaa..." in line for line in below) == 3


TEXTS = st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z"]), min_size=1)
HOSTILE = "k<</script><img src=x onerror=alert(1)>|`*_[a](b)&amp;~$#!"


def rendered_cells(markdown: str) -> list[str]:
    """Render a table and return its cells as a reader sees them."""
    reader = pytest.importorskip("markdown_it").MarkdownIt("commonmark").enable("table")
    rendered = reader.render(markdown)
    found = re.findall(r"<t[hd](?: [^>]*)?>(.*?)</t[hd]>", rendered, re.DOTALL)
    assert not any("<" in cell for cell in found), rendered
    return [html.unescape(cell) for cell in found]


@pytest.mark.slow
@given(TEXTS)
def test_a_cell_reads_as_its_text(text: str) -> None:
    """No text becomes markup, another cell or HTML."""
    assert rendered_cells(markdown_table(("name", "n"), [(text, "1")])) == ["name", "n", text, "1"]


def test_a_hostile_name_reads_as_itself() -> None:
    assert rendered_cells(markdown_table(("name",), [(HOSTILE,)])) == ["name", HOSTILE]


def test_line_ends_are_blanks() -> None:
    assert escape("a\nb\r\n c") == "a b c"


def test_empty_lines_stand_between_sections_that_have_lines() -> None:
    assert [*formatting.separated([[], ["a", "b"], iter(()), ["c"], []])] == ["a", "b", "", "c"]
    assert [*formatting.separated([(), []])] == []
