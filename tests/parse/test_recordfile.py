"""Files of records: old and new ones are read, anything else is one line of advice."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pyprof import schema
from pyprof.errors import RecordsError
from pyprof.parse import recordfile
from pyprof.parse.records import Records
from tests.builders import Work, nsys_db
from tests.commands import run

OLD = (
    "{'kShortName': 'gemm', 'kDuration': 10, 'layer': [], 'trace': ['a.py:1'], 'reprMarkers': [], "
    "'marker': [\"{'mod': 'torch', 'op': 'mm', 'args': []}\"], 'seqMarker': ['mm, seq = 3'], "
    "'seqId': [3], 'subSeqId': 0, 'altSeqId': [], 'dir': 'fprop', 'mod': ['torch'], 'op': ['mm'], "
    "'tid': 3940300608, 'device': 0, 'stream': 7, 'grid': (4, 1, 1), 'block': (128, 1, 1), "
    "'kLongName': 'void gemm<float>(float*)'}\n"
)


def test_the_originals_files_are_read(tmp_path: Path) -> None:
    """Python's repr with tuples, as old parse wrote it; blank lines do not matter."""
    path = tmp_path / "net.dict"
    path.write_text("\n" + OLD + "\n" + OLD.replace("'gemm'", "'relu'"))
    (first, second) = recordfile.load(str(path)).table().to_pylist()
    assert (first["kShortName"], second["kShortName"]) == ("gemm", "relu")
    assert (first["grid"], first["block"], first["tid"]) == ([4, 1, 1], [128, 1, 1], 3940300608)
    assert (first["kind"], first["start"]) == (None, None)  # what it does not say is not made up


def test_lines_of_both_spellings_in_one_file_are_read(tmp_path: Path) -> None:
    """JSON first and repr after it, as when files are joined."""
    path = tmp_path / "net.dict"
    path.write_text('{"kShortName": "a", "kDuration": 1, "kLongName": "a"}\n' + OLD)
    assert recordfile.load(str(path)).arrow("kShortName").to_pylist() == ["a", "gemm"]


def test_unknown_keys_are_left_alone(tmp_path: Path) -> None:
    """A file of a later version has keys that this one does not know."""
    path = tmp_path / "net.dict"
    path.write_text('{"kShortName": "a", "kDuration": 1, "kLongName": "a", "later": {"x": [1]}}\n')
    assert recordfile.load(str(path)).rows == 1


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (OLD + "not a record\n", "line 2 is no record"),
        (OLD + "{'kShortName': 'x'\n", "line 2 is no record"),
        (OLD + OLD[:200], "line 2 is no record"),
        (OLD.replace("10,", "'ten',"), "line 1 has a value of the wrong type"),
        (OLD.replace("(4, 1, 1)", "'big'"), "line 1 has a value of the wrong type"),
        (OLD.replace("10,", "10**9,"), "line 1 is no record"),  # never evaluated
        (OLD.replace("10,", "__import__('os').getpid(),"), "line 1 is no record"),
        (OLD.replace("'kDuration': 10, ", ""), "kDuration"),
        ('{"kShortName": "a"}\n', "kDuration"),
        ('{"kShortName": "a", "kDuration": 1}\n', "kLongName"),
        ('{"kShortName": "a", "kDuration": 1}\n{"kShortName": "b"}\n', "kDuration"),
        ('{"kShortName": "a", "kDuration": 1e99}\n', "line 1"),
        ('{"kShortName": "a", "kDuration": 1, "kLongName": "a", "op": ["x", null]}\n', "gap"),
        ("{'kShortName': " + "[" * 5000 + "\n", "line 1 is no record"),
        (OLD.replace("10,", "9" * 5000 + ","), "line 1"),
    ],
)
def test_what_is_no_record_is_one_line(text: str, words: str, tmp_path: Path) -> None:
    """The line's number, and what to do."""
    path = tmp_path / "net.dict"
    path.write_text(text)
    with pytest.raises(RecordsError, match=words) as raised:
        recordfile.load(str(path))
    assert str(path) in str(raised.value)
    done = run("prof", path)
    assert (done.code, done.stdout, done.stderr.count("\n")) == (1, "", 1)


@pytest.mark.parametrize(
    ("table", "words"),
    [
        (pa.table({"x": [1]}), "without the columns kShortName"),
        (pa.table({name: [1] for name in schema.OLD_RECORD.names}), "other types"),
    ],
)
def test_another_programs_parquet_is_one_line(table: pa.Table, words: str, tmp_path: Path) -> None:
    """Names what is missing or wrong."""
    path = tmp_path / "net.parquet"
    pq.write_table(table, path)
    with pytest.raises(RecordsError, match=words):
        recordfile.load(str(path))


@pytest.mark.parametrize("text", ["", "hello\n", "[]\n", "\0\0", '{"traceEvents": []}'])
def test_stdin_without_records_says_so(text: str) -> None:
    """The user piped in something else."""
    done = run("prof", "-", stdin=text)
    assert (done.code, done.stdout) == (1, "")
    assert "stdin" in done.stderr


def test_stdin_is_read_where_no_file_is_named() -> None:
    """`pyprof parse | pyprof prof`, old lines and new."""
    for text in (OLD, '{"kShortName": "gemm", "kDuration": 10, "kLongName": "gemm"}\n'):
        for arguments in (["prof"], ["prof", "-"]):
            done = run(*arguments, "-q", "-c", "kernel,sil", stdin=text)
            assert done.stdout == "Kernel Sil(ns)\ngemm 10\n"


def test_a_folder_with_an_equals_sign_is_no_column(tmp_path: Path) -> None:
    """Files of ranks are often kept as rank=0/net.parquet: the path says nothing of the rows."""
    source, folder = tmp_path / "net.dict", tmp_path / "rank=3"
    source.write_text(OLD)
    folder.mkdir()
    records = recordfile.load(str(source))
    pq.write_table(records.table(), folder / "net.parquet")
    assert recordfile.load(str(folder / "net.parquet")).arrow("rank").to_pylist() == [None]


@pytest.mark.parametrize("suffix", ["dict", "parquet"])
def test_a_file_that_changes_while_it_is_read(
    suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As one that is still being written: told, for what was read may be of neither state."""
    path = tmp_path / f"net.{suffix}"
    assert run("parse", nsys_db(tmp_path / "net.sqlite", [Work()], []), "-o", path).code == 0
    assert not recordfile.load(str(path)).warnings
    checked = recordfile._checked

    def meanwhile(source: str, records: Records) -> Records:
        with path.open("ab") as file:
            file.write(b"more")
        return checked(source, records)

    monkeypatch.setattr(recordfile, "_checked", meanwhile)
    (said,) = recordfile.load(str(path)).warnings
    assert "changed while it was read" in said
