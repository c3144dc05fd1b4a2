"""Dict lines: each is a Python literal and a JSON object of the same value."""

import ast
import json
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pyprof import schema, string_concat
from pyprof.parse import record_file
from pyprof.records import dict_lines, parquet
from pyprof.records.records import DictionaryColumn, Records, encode, split_numbers
from pyprof.string_concat import StringPart
from tests import strategies
from tests.builders import Range, Work, nsys_db
from tests.commands import run
from tests.parse.record_lines import record_lines

ROWS = st.lists(strategies.RECORD, min_size=1, max_size=4)


def plain(rows: list[dict[str, Any]]) -> Records:
    table = pa.Table.from_pylist(rows, schema.RECORD)
    return Records(len(rows), {name: table.column(name) for name in schema.RECORD.names})


def dictionary(rows: list[dict[str, Any]]) -> Records:
    """Hold rows by their distinct values."""
    whole = plain(rows)
    columns = {name: encode(whole.arrow(name)) for name in schema.RECORD.names}
    return Records(len(rows), columns)


def in_order(row: dict[str, Any]) -> dict[str, Any]:
    """Put keys into the order of the schema."""
    return {name: row[name] for name in schema.RECORD.names if name in row}


@pytest.mark.few(1)
@pytest.mark.slow
@pytest.mark.parametrize("hold", [plain, dictionary])
@given(rows=ROWS)
def test_a_line_is_a_literal_and_json_of_the_same_value(
    hold: Callable[[list[dict[str, Any]]], Records], rows: list[dict[str, Any]]
) -> None:
    """Whatever the texts: quotes, backslashes, control characters, line separators, emoji."""
    lines = record_lines(hold(rows))
    assert len(lines) == len(rows)
    for line, row in zip(lines, rows, strict=True):
        assert json.loads(line) == row
        assert ast.literal_eval(line) == row
        assert list(json.loads(line)) == list(in_order(row))


@given(rows=ROWS)
def test_records_round_trip(rows: list[dict[str, Any]]) -> None:
    expected = plain(rows).table()
    as_json = "\n".join(record_lines(plain(rows))).encode()
    as_repr = "\n".join(repr(in_order(row)) for row in rows).encode()
    assert record_file._from_lines("stdin", BytesIO(as_json)).table() == expected
    assert record_file._from_lines("stdin", BytesIO(as_repr)).table() == expected


@pytest.mark.long
@given(rows=ROWS)
def test_parquet_keeps_columns(rows: list[dict[str, Any]]) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder, "net.parquet")
        with path.open("wb") as file:
            parquet.write(dictionary(rows), file)
        found = pa.parquet.read_table(path).select(schema.RECORD.names)
        ours, lean = parquet.read(path), parquet.read(path, raw=False)
    expected = plain(rows).table()
    assert found == ours.table() == expected
    assert lean.table() == expected  # nothing stands for the raw texts: they are not left out


@given(rows=st.lists(strategies.TEXTS, max_size=6))
@example(rows=[["\x1f+"], ["", ""], [""], []])
@example(rows=[["a\x1f+b", "c"], ["a", "b\x1f+c"]])
@example(rows=[["1+a\x1f1+b"], ["a", "b"]])
def test_distinct_lists_stay_distinct(rows: list[list[str]]) -> None:
    """Dictionary-encoding a column loses nothing, whatever separates the texts."""
    column = pa.array(rows, pa.list_(pa.string()))
    found = encode(column)
    assert found.to_arrow(column.type).to_pylist() == rows
    assert len(found.values) == len({tuple(row) for row in rows})


def test_columns_of_many_combinations_keep_their_values() -> None:
    rows, spread = 4000, np.random.default_rng(7)
    names = ("kShortName", "dir", "kLongName", "kind", "gpu", "via")
    values = {name: [f"{name} {place}" for place in range(900)] for name in names}
    index = {name: spread.integers(-1, 900, rows) for name in names}
    index["kShortName"] = np.maximum(index["kShortName"], 0)
    columns = {name: DictionaryColumn(index[name], values[name]) for name in names}
    lines = record_lines(Records(rows, columns))
    assert [json.loads(line) for line in lines] == [
        {name: values[name][place] for name in names if (place := index[name][row]) >= 0}
        for row in range(rows)
    ]


def test_columns_with_one_value_and_nulls() -> None:
    columns = {
        "kShortName": DictionaryColumn(np.zeros(3, np.int32), ["k"]),
        "kind": DictionaryColumn(np.array([0, -1, 0]), ["kernel"]),
    }
    assert [line.count("kernel") for line in record_lines(Records(3, columns))] == [1, 0, 1]


def test_texts_kept_without_their_numbers_are_written_whole() -> None:
    texts = [["aten::mm, seq = 3, op_id = 4, sizes = [[2]]", 'a"b\\é'], [], ["", "x"]]
    column = split_numbers(pa.array(texts, pa.list_(pa.string())))
    lines = record_lines(Records(len(texts), {"seqMarker": column}))
    assert [json.loads(line).get("seqMarker") for line in lines] == texts


@pytest.mark.parametrize("every", [1, 3, 33])
def test_numbers_missing_at_a_fixed_period(every: int) -> None:
    """Steps of equal length with rows that have no op."""
    rows = np.arange(5000)
    columns = {"kDuration": pa.array(rows), "opId": pa.array(rows, mask=rows % every == 0)}
    assert [json.loads(line) for line in record_lines(Records(len(rows), columns))] == [
        {"kDuration": row} | ({"opId": row} if row % every else {}) for row in rows.tolist()
    ]


@pytest.mark.slow
def test_more_rows_than_a_batch_come_out_in_order() -> None:
    rows = dict_lines._ROWS * 3 + 17
    records = Records(rows, {"kDuration": pa.array(range(rows))})
    seen: list[int] = []
    file = BytesIO()
    dict_lines.write(records, file, seen.append)
    lines = file.getvalue().splitlines()
    assert [json.loads(line)["kDuration"] for line in lines] == list(range(rows))
    assert sum(seen) == rows


def test_rows_whose_texts_exceed_an_array_are_written_in_parts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Arrow refuses to join more than 2 GiB: here, more than three rows."""
    join = string_concat.join_element_wise

    def joined(pieces: list[StringPart]) -> pa.StringArray:
        if len(pieces[0].index) > 3:
            raise pa.ArrowInvalid("Take operation overflowed binary array capacity")
        return join(pieces)

    records = Records(50, {"kDuration": pa.array(range(50))})
    whole, parts = BytesIO(), BytesIO()
    dict_lines.write(records, whole)
    monkeypatch.setattr(string_concat, "join_element_wise", joined)
    dict_lines.write(records, parts)
    assert parts.getvalue() == whole.getvalue() != b""


WORK = [Work(f"k{n}", at=(1000 + n, 1001 + n), call=(10 * n, 10 * n + 2)) for n in range(5)]
RANGES = [Range('layer:a"b\\', (0, 99)), Range("{'traceMarker': ['é\u2028.py:1']}", (0, 98))]


@pytest.mark.slow
def test_stdout_and_a_file_hold_the_same(tmp_path: Path) -> None:
    capture = nsys_db(tmp_path / "net.sqlite", WORK, RANGES)
    assert run("parse", capture, "-o", tmp_path / "net.dict").stdout == ""
    assert run("parse", capture).stdout == (tmp_path / "net.dict").read_text()
