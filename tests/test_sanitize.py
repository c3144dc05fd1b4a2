"""No text of a capture and no file's name controls a terminal or becomes a formula."""

import csv
import io
import re
import sys
import unicodedata
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyprof import sanitize
from pyprof.__main__ import names
from pyprof.marker import encode_layer, encode_trace
from tests.allocations import built
from tests.analysis.captured import op
from tests.builders import Range, Work, nsys_db
from tests.commands import misused, on_a_terminal, refused, run
from tests.programs import TOP

EVIL = "a\x1b]0;owned\x07\x1b[2J\x9b31m\u202eb\u2066c\u200bd\r\x08\x7f\u2028\u0085e"
ALL = "".join(map(chr, [*range(0xD800), *range(0xE000, 0x110000)]))


def is_safe(text: str) -> bool:
    """Return, by what Unicode says of each character, whether a terminal shows all and no more."""
    return not any(
        unicodedata.category(character) in {"Cc", "Cf", "Zl", "Zp", "Cs"} for character in text
    )


VISIBLE = {*range(0x600, 0x606), 0x6DD, 0x70F, 0x890, 0x891, 0x8E2, 0x110BD, 0x110CD}
VISIBLE |= {*range(0x13430, 0x13440), *range(0x1BCA0, 0x1BCA4), *range(0x1D173, 0x1D17B)}
"""Format characters that are signs of scripts, shorthand and music, and neither hide nor turn."""


@pytest.mark.slow
def test_control_and_format_characters_are_replaced() -> None:
    shown = sanitize.single_line(ALL)
    for before, after in zip(ALL, shown, strict=True):
        if unicodedata.category(before) == "Cn":  # unassigned
            continue
        expected = is_safe(before) or ord(before) in VISIBLE
        assert (after == before) == (expected or before == " "), hex(ord(before))


@pytest.mark.slow
def test_arrow_and_python_match_the_same_characters() -> None:
    """Tables replace whole columns at a time."""
    texts = pa.array(list(ALL))
    shown = pc.replace_substring_regex(texts, sanitize.UNSAFE, " ")
    assert "".join(shown.to_pylist()) == sanitize.single_line(ALL)


@given(st.text(st.characters(codec=None, exclude_categories=()), max_size=30))
def test_a_message_is_one_safe_line_that_shows_what_there_was(text: str) -> None:
    shown = sanitize.message(text)
    assert not re.search(sanitize.UNSAFE, shown)
    shown.encode()
    if not re.search(sanitize.UNSAFE, text) and "  " not in text and text.isprintable():
        assert shown == text.strip()


def test_a_name_in_a_message_is_shown_as_python_escapes_it() -> None:
    assert sanitize.message("net\x1b[31m\u202e\udce9.sqlite: no\nsuch file") == (
        "net\\x1b[31m\\u202e\\udce9.sqlite: no such file"
    )


def test_only_a_heading_is_bold() -> None:
    bold, plain = "\x1b[1m", "\x1b[0m"
    line = f"{bold}Op{plain}  {bold}name{plain}"
    assert sanitize.multiline(f"{line}\nx {line}") == (
        f"{bold}Op{plain}   [1mname [0m\nx  [1mOp [0m   [1mname [0m"
    )
    assert sanitize.multiline(f"{bold}name") == " [1mname"


def test_the_page_escapes_the_same_formulas() -> None:
    """Its tables can be saved as CSV."""
    script = (TOP / "pyprof/render/page/static/tables.js").read_text(encoding="utf-8")
    (listed,) = re.findall(r"const plain = \(text\) => \(/\^\[(.*?)\]/", script)
    taken = listed.replace(r"\-", "-").encode().decode("unicode_escape")
    assert {*taken} == {*sanitize._FORMULA}


@pytest.fixture
def evil(tmp_path: Path) -> Path:
    """Return a capture whose kernels, ops, layers and lines have evil names."""
    return nsys_db(
        tmp_path / "net.sqlite",
        [Work(EVIL, (1000, 1100), (110, 120)), Work("k", (2000, 2300), (210, 220))],
        [
            Range(encode_layer(EVIL), (100, 400)),
            Range(encode_trace([f"/x/{EVIL}.py:3"]), (101, 350)),
            Range(op(EVIL, 16, 8), (105, 340)),
        ],
    )


SHOWN = {
    **{name: [name, "FILE"] for name in ("prof", "summary", "lines", "doctor", "ranks")},
    "prof -w": ["prof", "-w", "300", "-c", "op,kernel,layer,trace,line,why", "FILE"],
    "prof -c": ["prof", "-c", "op,kernel,layer,trace,line,module", "FILE"],
    "prof --by": ["prof", "--by", "layer", "FILE"],
    "nvprof": ["prof", "--summary", "nvprof", "FILE"],
    "summary --by layer": ["summary", "--by", "layer", "FILE"],
    "summary --by line": ["summary", "--by", "line", "FILE"],
    "diff": ["diff", "FILE", "FILE"],
    "peaks": ["peaks"],
}
ELSEWHERE = {"parse", "capture", "run", "report", "export", "roofline", "mcp", "memory",
             "try", "whatif", "completion"}  # fmt: skip
"""What gives no table, or what `summary` and `prof` show; of memory below."""


def test_every_command_is_tested_here() -> None:
    assert {arguments[0] for arguments in SHOWN.values()} | ELSEWHERE == {*names()}


@pytest.mark.parametrize("name", SHOWN)
def test_tables_and_notes_are_safe(name: str, evil: Path) -> None:
    done = run(*(evil if text == "FILE" else text for text in SHOWN[name]))
    assert done.code == 0, done.stderr
    assert all(map(is_safe, done.stdout.split("\n")))
    assert all(map(is_safe, done.stderr.split("\n")))


def test_output_of_memory_is_safe(tmp_path: Path) -> None:
    device = built.training()
    device.alloc(1 << 30, (EVIL, f"/x/{EVIL}.py", 3))
    done = run("memory", built.write(tmp_path / "net.pickle", device))
    assert done.code == 0, done.stderr
    assert ".py:3" in done.stdout
    assert all(map(is_safe, done.stdout.split("\n")))


@pytest.mark.skipif(sys.platform == "win32", reason="no such names there")
@pytest.mark.parametrize("name", [name for name in SHOWN if name != "peaks"])
@pytest.mark.parametrize(
    "content", [None, b"", b"PAR1 damaged", b"SQLite format 3\0 damaged", b"x"]
)
def test_names_in_messages_are_safe(name: str, content: bytes | None, tmp_path: Path) -> None:
    path = tmp_path / f"{EVIL}.sqlite"
    if content is not None:
        path.write_bytes(content)
    said = refused(*(path if text == "FILE" else text for text in SHOWN[name]))
    assert is_safe(said.removesuffix("\n"))
    assert "owned" in said


@pytest.mark.parametrize(
    "arguments", [["export", "x", "-o", EVIL], [EVIL], ["prof", f"--{EVIL}"], ["prof", "-w", EVIL]]
)
def test_wrong_usage_is_safe(arguments: list[str]) -> None:
    """A shell's glob turns names into arguments."""
    done = run(*arguments)
    assert (done.code, all(map(is_safe, done.stderr.split("\n")))) == (2, True)


@pytest.mark.parametrize("arguments", [["prof", "--csv"], ["parse"], ["prof"]], ids=" ".join)
def test_data_on_a_terminal_is_safe(
    arguments: list[str], evil: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """CSV and dict lines keep any text for programs, but not on a terminal."""
    shown = on_a_terminal(monkeypatch, "stdout", *arguments, "-q", str(evil))
    assert all(map(is_safe, shown.replace("\r\n", "\n").split("\n")))


FORMULAS = ["=1+1", "+1", "-1+1", "@SUM(A1)", "\tx", "\rx", "\uff1dx", "--", "=\n"]
PLAIN = ["-", "+", "=", "", "'=x", "a=b", "x", " =x", "1"]


@pytest.mark.parametrize("text", FORMULAS)
def test_a_formula_gets_an_apostrophe(text: str) -> None:
    assert sanitize.escape_formula(text) == f"'{text}"
    assert sanitize.escape_formulas(pa.table({"a": [text, "x", None]})).to_pydict() == {
        "a": [f"'{text}", "x", None]
    }


def test_other_texts_are_unchanged() -> None:
    """Numbers, too: -5 is one in every spreadsheet."""
    assert [*map(sanitize.escape_formula, [*PLAIN, -5, -1.5, None])] == [*PLAIN, -5, -1.5, None]
    rows = pa.table({"a": PLAIN, "b": range(0, -len(PLAIN), -1)})
    assert sanitize.escape_formulas(rows).equals(rows)


CSV = {
    "prof": ["prof", "--csv", "-c", "op,kernel,sil,layer", "FILE"],
    "prof --by": ["prof", "--csv", "--by", "kernel", "FILE"],
    "nvprof": ["prof", "--csv", "--summary", "nvprof", "FILE"],
    "export": ["export", "FILE"],
    "diff": ["diff", "--by", "op,kernel,layer", "FILE", "FILE"],
    "ranks": ["ranks", "--csv", "layers", "FILE"],
}


@pytest.mark.parametrize("name", CSV)
def test_no_text_of_csv_is_a_formula(name: str, tmp_path: Path) -> None:
    net = nsys_db(
        tmp_path / "net.sqlite",
        [Work("=cmd|calc", (1000, 1100), (110, 120)), Work("-k", (2000, 2300), (210, 220))],
        [Range(encode_layer("@SUM(A1)"), (100, 400)), Range(op("+exp", 16, 8), (105, 340))],
    )
    target = tmp_path / "out.csv"
    arguments = [net if text == "FILE" else text for text in CSV[name]]

    def written(*options: str) -> list[list[str]]:
        done = run(*arguments, *options, "-o", target)
        assert done.code == 0, done.stderr
        return [*csv.reader(io.StringIO(target.read_text()))]

    quoted = written()
    starts = {cell[:2] for row in quoted for cell in row if cell[:1] == "'"}
    assert starts & {"'=", "'-", "'@", "'+"}
    if CSV[name][0] in ("diff", "ranks"):
        return
    plain = written("--raw")
    formulas = {cell for row in plain for cell in row if cell[:1] in "=+-@" and len(cell) > 1}
    formulas = {cell for cell in formulas if not re.fullmatch(r"-?[\d.e]+", cell)}
    assert formulas & {"=cmd|calc", "-k", "@SUM(A1)", "+exp"}
    assert quoted == [[f"'{cell}" if cell in formulas else cell for cell in row] for row in plain]


@pytest.mark.parametrize(
    "arguments",
    [["prof", "--raw"], ["export", "x", "--raw", "-o", "x.json"]],
)  # fmt: skip
def test_raw_goes_with_csv(arguments: list[str]) -> None:
    assert "--raw works only with CSV" in misused(*arguments)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("s3://KEY:SECRET@bucket/a.json: gone", "s3://***@bucket/a.json: gone"),
        ("no https://TOKEN@h/x?sig=a/b&c=d#e here", "no https://***@h/x?***#e here"),
        ("sftp://h/me@home/a?b", "sftp://h/me@home/a?b"),
        ("me@home: a?b=c", "me@home: a?b=c"),
    ],
)
def test_credentials_are_in_no_message(text: str, shown: str) -> None:
    assert sanitize.message(text) == shown
    assert sanitize.message(shown) == shown
