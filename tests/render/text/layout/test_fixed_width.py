"""Fixed-width tables: no number is truncated, whatever the columns and the width."""

import io
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyprof.errors import PyprofError
from pyprof.prof import group
from pyprof.prof.columns.standard import COLUMNS, FLOAT, INT, NUMBERS, Column
from pyprof.render.text.layout.fixed_width import write_columns
from tests.commands import run
from tests.prof.shown_numbers import within_shown

MEASURES = [*group.MEASURES.values()]
_NUMBERED = [column for column in COLUMNS.values() if column.kind in (INT, FLOAT, NUMBERS)]
_INTS = st.integers(0, 10) | st.integers(0, 2**62) | st.integers(-(2**40), 2**40)
_VALUES = {
    INT: st.none() | _INTS,
    FLOAT: st.none() | st.floats(1e-9, 1e9) | st.floats(0, 1e3),
    NUMBERS: st.none()
    | st.lists(st.integers(0, 2**40), min_size=1, max_size=9).map(lambda n: ",".join(map(str, n))),
}
_TYPES = {INT: pa.int64(), FLOAT: pa.float64(), NUMBERS: pa.string()}


def shown(
    columns: list[Column], rows: list[pa.Table], width: int
) -> tuple[list[str], list[list[str]], list[str]]:
    """Return the header, the fields of each line, and the messages; fields hold no blanks here."""
    said: list[str] = []
    file = io.BytesIO()
    write_columns(columns, iter(rows), file, width, said.append)
    lines = file.getvalue().decode().splitlines()
    assert max(map(len, lines)) <= width
    first, *others = (line.split() for line in lines)
    return first, others, said


@st.composite
def tables(draw: st.DrawFn) -> tuple[list[Column], list[pa.Table]]:
    columns = draw(st.lists(st.sampled_from([*_NUMBERED, *MEASURES]), min_size=1, max_size=6,
                            unique_by=lambda column: column.name))  # fmt: skip
    size = draw(st.integers(1, 4))
    values = [draw(st.lists(_VALUES[c.kind], min_size=size, max_size=size)) for c in columns]
    arrays = [pa.array(v, _TYPES[c.kind]) for v, c in zip(values, columns, strict=True)]
    rows = pa.table(arrays, [column.name for column in columns])
    cut = draw(st.integers(0, size))
    return columns, [rows.slice(0, cut), rows.slice(cut)]


@given(tables(), st.integers(1, 160))
def test_every_number_can_be_read_back(
    made: tuple[list[Column], list[pa.Table]], width: int
) -> None:
    """Within its last digit; lists keep whole numbers from the start; omitted columns are named."""
    columns, batches = made
    try:
        header, lines, said = shown(columns, batches, width)
    except PyprofError as error:
        needed = next(int(word) for word in str(error).replace(";", "").split() if word.isdigit())
        assert needed > width
        shown(columns, batches, needed)
        return
    rows = pa.concat_tables(batches)
    left_out = [column.header for column in columns[len(header) :]]
    assert said == ([f"no room for {', '.join(left_out)}; increase -w"] * bool(left_out))
    for place, column in enumerate(columns[: len(header)]):
        for fields, value in zip(lines, rows.column(place).to_pylist(), strict=True):
            _check(column, fields[place], value)


def _check(column: Column, text: str, value: float | str | None) -> None:
    if value is None:
        assert text == "-"
    elif isinstance(value, str):
        kept = text.removesuffix("..").split(",")
        count = len(kept) - text.endswith("..")
        assert kept[:count] == value.split(",")[:count]
        assert text == value or text.endswith(",..")
    elif column.exact or not column.unit:
        assert column.kind == FLOAT or text == str(value)
    else:
        assert within_shown(text, value)


@given(st.lists(st.text("ab1.:/", min_size=1, max_size=40), min_size=1), st.integers(12, 60))
def test_a_truncated_text_shows_it(names: list[str], width: int) -> None:
    """By two dots; paths keep their end with the line number."""
    for column in (COLUMNS["op"], COLUMNS["module"]):
        _, lines, _ = shown([column], [pa.table({column.name: names})], width)
        for (text,), name in zip(lines, names, strict=True):
            if column.name == "op":
                assert text == name or (text.endswith("..") and name.startswith(text[:-2]))
            else:
                assert text == name or (text.startswith("..") and name.endswith(text[2:]))


def test_numbers_of_a_column_share_their_form() -> None:
    """If one has no room all have a prefix, except numbers that identify rows."""
    columns = [COLUMNS[name] for name in ("idx", "sil", "flops", "start")]
    rows = pa.table({
        "idx": [1, 2], "sil": [603_000_000, 24], "flops": [4663063609344, None],
        "start": [1583978810959705735, 1583978810959705736],
    })  # fmt: skip
    assert shown(columns, [rows], 60)[1][0] == [
        "1", "603000000", "4663063609344", "1583978810959705735",
    ]  # fmt: skip
    header, lines, _ = shown(columns, [rows], 42)
    assert header == ["Idx", "Sil", "FLOPs", "Start(ns)"]
    assert lines == [
        ["1", "603.0ms", "4.663T", "1583978810959705735"],
        ["2", "24ns", "-", "1583978810959705736"],
    ]
    assert shown(columns, [rows], 30)[0] == ["Idx", "Sil(ns)", "FLOPs"]


def test_a_line_keeps_its_number() -> None:
    rows = pa.table({"line": ["/home/me/a_rather_long_name_of_a_file.py:1234"]})
    assert shown([COLUMNS["line"]], [rows], 20)[1] == [[".._of_a_file.py:1234"]]


@pytest.mark.slow
def test_start_times_of_nvprof_differ(captures: Path) -> None:
    """Nanoseconds since 1970 have 19 digits, all shown."""
    path = captures / "nvprof-v100-apex" / "net.sql"
    done = run("prof", "-q", "-w", "60", "-c", "idx,start,kernel", path)
    whole = run("prof", "-q", "-c", "idx,start", path)
    starts, in_full = (
        [line.split()[1] for line in text.splitlines()[1:]] for text in (done.stdout, whole.stdout)
    )
    assert starts == in_full
    assert len(set(starts)) == len(starts)


@pytest.mark.parametrize("options", [[], ["-q"]])
def test_columns_without_room_are_named(options: list[str]) -> None:
    """On stderr, unless -q; the exit code is 0."""
    record = {"kShortName": "k", "kLongName": "k", "kDuration": 123456789}
    done = run("prof", "-w", "30", *options, "-", stdin=f"{record}\n")
    assert done.code == 0
    assert ("no room for Op, Kernel" in done.stderr) is not bool(options)
