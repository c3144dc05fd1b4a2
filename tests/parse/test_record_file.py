"""Files of records: old and new ones are read, anything else is one line with advice."""

import ast
import json
import warnings
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pyprof import schema
from pyprof.errors import RecordsError
from pyprof.parse import record_file
from pyprof.records import parquet
from pyprof.records.records import Records
from tests.builders import Work, nsys_db
from tests.commands import refused, run

OLD = (
    "{'kShortName': 'gemm', 'kDuration': 10, 'layer': [], 'trace': ['a.py:1'], 'reprMarkers': [], "
    "'marker': [\"{'mod': 'torch', 'op': 'mm', 'args': []}\"], 'seqMarker': ['mm, seq = 3'], "
    "'seqId': [3], 'subSeqId': 0, 'altSeqId': [], 'dir': 'fprop', 'mod': ['torch'], 'op': ['mm'], "
    "'tid': 3940300608, 'device': 0, 'stream': 7, 'grid': (4, 1, 1), 'block': (128, 1, 1), "
    "'kLongName': 'void gemm<float>(float*)'}\n"
)


NEW = ast.literal_eval(OLD) | {"callIds": [4, 5], "kind": "kernel", "start": 1, "end": 11}


def _written(folder: Path, text: str) -> Path:
    path = folder / "net.dict"
    path.write_text(text)
    return path


def _loaded(folder: Path, text: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = record_file.load(str(_written(folder, text))).table().to_pylist()
    return rows


def test_the_originals_files_are_read(tmp_path: Path) -> None:
    first, second = _loaded(tmp_path, "\n" + OLD + "\n" + OLD.replace("'gemm'", "'relu'"))
    assert (first["kShortName"], second["kShortName"]) == ("gemm", "relu")
    assert (first["grid"], first["block"], first["tid"]) == ([4, 1, 1], [128, 1, 1], 3940300608)
    assert (first["kind"], first["start"]) == (None, None)  # what it does not say is not made up


def test_lines_of_both_spellings_in_one_file_are_read(tmp_path: Path) -> None:
    """JSON first and repr after it, as when files are joined; later versions may have more keys."""
    line = '{"kShortName": "a", "kDuration": 1, "kLongName": "a", "later": {"x": [1]}}\n'
    assert [row["kShortName"] for row in _loaded(tmp_path, line + OLD)] == ["a", "gemm"]


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
@pytest.mark.parametrize(
    "line", [OLD, '{"kShortName": "gemm", "kDuration": 1, "kLongName": "ä€😀"}\r\n']
)
def test_lines_of_windows_programs_are_read(tmp_path: Path, line: str, encoding: str) -> None:
    """PowerShell's `>` writes UTF-16, some editors a BOM before UTF-8; from a pipe as well."""
    path = tmp_path / "net.dict"
    path.write_bytes((line * 2).encode(encoding))
    assert record_file.load(str(path)).arrow("kShortName").to_pylist() == ["gemm", "gemm"]
    piped = run("prof", "--csv", "-c", "idx,kernel", "-", stdin=path.read_bytes())
    assert piped.stdout.splitlines()[1:] == ['"1","gemm"', '"2","gemm"']


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (OLD + "not a record\n", "line 2 is not a record"),
        (OLD + "{'kShortName': 'x'\n", "line 2 is not a record"),
        (OLD + OLD[:200], "line 2 is not a record"),
        (OLD.replace("10,", "'ten',"), "line 1 has a value of the wrong type"),
        (OLD.replace("(4, 1, 1)", "'big'"), "line 1 has a value of the wrong type"),
        (OLD.replace("10,", "10**9,"), "line 1 is not a record"),  # never evaluated
        (OLD.replace("10,", "__import__('os').getpid(),"), "line 1 is not a record"),
        (OLD.replace("'kDuration': 10, ", ""), "kDuration"),
        ('{"kShortName": "a"}\n', "kDuration"),
        ('{"kShortName": "a", "kDuration": 1}\n', "kLongName"),
        ('{"kShortName": "a", "kDuration": 1}\n{"kShortName": "b"}\n', "kDuration"),
        ('{"kShortName": "a", "kDuration": 1e99}\n', "line 1"),
        ('{"kShortName": "a", "kDuration": 1, "kLongName": "a", "op": ["x", null]}\n', "a null"),
        ("{'kShortName': " + "[" * 5000 + "\n", "line 1 is not a record"),
        (OLD.replace("10,", "9" * 5000 + ","), "line 1"),
    ],
)
def test_an_invalid_record_ends_in_one_line(text: str, words: str, tmp_path: Path) -> None:
    path = _written(tmp_path, text)
    with pytest.raises(RecordsError, match=words) as raised:
        record_file.load(str(path))
    assert str(path) in str(raised.value)
    refused("prof", path)


@pytest.mark.parametrize(
    ("table", "words"),
    [
        (pa.table({"x": [1]}), "without the columns kShortName"),
        (pa.table({name: [1] for name in schema.OLD_RECORD.names}), "unexpected column types"),
    ],
)
def test_another_programs_parquet_ends_in_one_line(
    table: pa.Table, words: str, tmp_path: Path
) -> None:
    path = tmp_path / "net.parquet"
    pq.write_table(table, path)
    with pytest.raises(RecordsError, match=words):
        record_file.load(str(path))


@pytest.mark.parametrize("text", ["", "hello\n", "[]\n", "\0\0", '{"traceEvents": []}'])
def test_stdin_without_records_says_so(text: str) -> None:
    """The user piped something else into it."""
    done = run("prof", "-", stdin=text)
    assert (done.code, done.stdout) == (1, "")
    assert "stdin" in done.stderr
    assert "save captures and Parquet to a file" in done.stderr


def test_stdin_is_read_if_no_file_is_named() -> None:
    for text in (OLD, '{"kShortName": "gemm", "kDuration": 10, "kLongName": "gemm"}\n'):
        for arguments in (["prof"], ["prof", "-"]):
            done = run(*arguments, "-q", "-c", "kernel,sil", stdin=text)
            assert done.stdout == "Kernel Sil(ns)\ngemm 10\n"


def _parquet(path: Path, metadata: dict[bytes, bytes] | None = None) -> Path:
    """Write the original's line as Parquet."""
    table = record_file.load(str(_written(path.parent, OLD))).table()
    pq.write_table(table.replace_schema_metadata(metadata) if metadata else table, path)
    return path


def test_a_folder_with_an_equals_sign_is_not_a_column(tmp_path: Path) -> None:
    """Ranks are often saved as rank=0/net.parquet, which is no Hive partition here."""
    folder = tmp_path / "rank=3"
    folder.mkdir()
    path = _parquet(folder / "net.parquet")
    assert record_file.load(str(path)).arrow("rank").to_pylist() == [None]


def test_a_literal_with_one_kind_of_quote_is_read_as_json(tmp_path: Path) -> None:
    """Sizes in parentheses included: the record is the one that Python's own reader returns."""
    line = OLD.replace("\"{'mod': 'torch', 'op': 'mm', 'args': []}\"", "'linear'")
    first, second = _loaded(tmp_path, line + line.replace("'linear'", "'a\\'b (1, 2, 3)'"))
    assert (first["marker"], second["marker"]) == (["linear"], ["a'b (1, 2, 3)"])
    assert first["grid"] == second["grid"] == [4, 1, 1]


def test_a_line_too_long_for_python_to_read_is_not_a_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Python's own reader takes a hundred times its size in memory."""
    monkeypatch.setattr(record_file, "_LONGEST_LITERAL", len(OLD) - 20)
    assert "line 1 is not a record" in run("prof", _written(tmp_path, OLD)).stderr


def test_a_row_may_have_one_id_per_text(tmp_path: Path) -> None:
    (row,) = _loaded(tmp_path, json.dumps(NEW))
    assert row["callIds"] == [4, 5]


@pytest.mark.parametrize("keys", [{"marker": None}, {"seqMarker": None}, {"callIds": [1, 2, 3]},
                                  {"marker": None, "seqMarker": None, "callIds": [1]}])  # fmt: skip
def test_ids_are_those_of_the_texts(keys: dict[str, object], tmp_path: Path) -> None:
    """Rows without texts have no ids; an id without a text is damage."""
    row = {key: value for key, value in (NEW | keys).items() if value is not None}
    path = _written(tmp_path, json.dumps(row))
    for command in (["prof", "--csv"], ["summary"], ["export", "-o", tmp_path / "x.md"]):
        assert "callIds" in refused(*command, path)


def test_ids_are_those_of_the_templates_in_parquet(tmp_path: Path) -> None:
    """Which replace the texts where both are stored."""
    row = NEW | {"seqTemplate": []}
    pq.write_table(pa.Table.from_pylist([row], schema.PARQUET), tmp_path / "net.parquet")
    assert "callIds do not match marker and seqTemplate" in refused(
        "prof", tmp_path / "net.parquet"
    )


@pytest.mark.parametrize("nulls", [{}, {"marker": None}, {"seqMarker": None, "marker": None}])
def test_a_null_marker_is_a_missing_one(nulls: dict[str, None], tmp_path: Path) -> None:
    row = {key: x for key, x in NEW.items() if key not in ("marker", "seqMarker", "callIds")}
    row |= {"launch": [1, 2], **nulls}
    done = run("prof", "--csv", "-c", "kernel,why", _written(tmp_path, json.dumps(row)))
    assert (done.code, done.stdout.splitlines()[1]) == (0, '"gemm","launched in no op"')


@pytest.mark.parametrize("devices", [b"null", b"[1]", b"{", b'[{"device": "x"}]', b"\xff", b"7"])
def test_devices_of_another_type_are_damage(devices: bytes, tmp_path: Path) -> None:
    refused("prof", _parquet(tmp_path / "net.parquet", {b"pyprof.devices": devices}))


@pytest.mark.parametrize(("name", "value"), [("_ROWS_A_BYTE", 0), ("_ANY_BYTES", 0)])
def test_a_footer_with_too_many_rows_is_damage(
    name: str, value: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No memory is allocated for rows that a file of this size cannot hold."""
    path = _parquet(tmp_path / "net.parquet")
    monkeypatch.setattr(parquet, name, value)
    monkeypatch.setattr(parquet, "_RATIO", 0)
    assert "1 rows in" in run("prof", path).stderr


@pytest.mark.parametrize("put", ["1if 1else 2", "'\\\\d'"])
def test_warnings_of_python_are_suppressed(put: str, tmp_path: Path) -> None:
    """Python warns of a damaged number or a backslash in a text; our own line says all."""
    old = OLD.replace("'kDuration': 10", f"'kDuration': {put}".replace("\\\\", "\\"))
    path = _written(tmp_path, old)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        done = run("prof", path)
    assert (done.code, done.stderr.count("\n"), told) == (1, 1, [])


@pytest.mark.slow
@pytest.mark.parametrize("suffix", ["dict", "parquet"])
def test_a_file_that_changes_while_it_is_read(
    suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As one that is still being written: an error, since the rows may mix two states."""
    path = tmp_path / f"net.{suffix}"
    assert run("parse", nsys_db(tmp_path / "net.sqlite", [Work()], []), "-o", path).code == 0
    assert not record_file.load(str(path)).warnings
    checked = record_file._check

    def meanwhile(source: str, records: Records) -> Records:
        with path.open("ab") as file:
            file.write(b"more")
        return checked(source, records)

    monkeypatch.setattr(record_file, "_check", meanwhile)
    (said,) = record_file.load(str(path)).warnings
    assert "changed while it was read" in said


DAMAGE = [
    *[("launch", value) for value in ([], [1], [1, 2, 3])],
    *[("sizes", value) for value in ([None], [[None]], [[8], [4, None]])],
]


@pytest.mark.slow
@pytest.mark.parametrize("suffix", ["dict", "parquet"])
@pytest.mark.parametrize(("key", "value"), DAMAGE, ids=str)
def test_a_damaged_list_ends_in_one_line(
    key: str, value: list[object], suffix: str, tmp_path: Path
) -> None:
    """A launch is a start and an end, and no list holds a null."""
    path = tmp_path / f"net.{suffix}"
    assert run("parse", nsys_db(tmp_path / "net.sqlite", [Work()], []), "-o", path).code == 0
    if suffix == "dict":
        path.write_text(json.dumps(json.loads(path.read_text()) | {key: value}) + "\n")
    else:
        table = pq.read_table(path)
        place = table.schema.get_field_index(key)
        column = pa.array([value], table.schema.field(place).type)
        pq.write_table(table.set_column(place, table.schema.field(place), column), path)
    if key == "launch":
        said = refused("export", path, "-o", tmp_path / "out.pt.trace.json")
        assert "launch is not a start and an end; parse the capture again" in said
    else:
        assert str(path) in refused("summary", path)
