"""What a file can make a reader do is bounded: by what is stored in it, and by its size."""

import gzip
import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from pyprof import readers
from pyprof.capture.nsight.tables import filled
from pyprof.errors import CaptureError
from pyprof.readers import kineto, nsys
from pyprof.readers.kineto.file import stream
from pyprof.readers.sqlite import tables as _sqlite
from tests.builders import Range, Work, nsys_db, write_tables
from tests.commands import run
from tests.readers.kineto_json import Event, kernel, launch, op, read, read_text, text
from tests.texts import texts

WORK = [Work(call=(1, 2)), Work("other", at=(1200, 1300), call=(3, 4))]
KERNELS = "CUPTI_ACTIVITY_KIND_KERNEL"


def _changed(path: Path, *statements: str) -> Path:
    with closing(sqlite3.connect(path)) as db, db:
        for statement in statements:
            db.execute(statement)
    return path


# --- SQLite -------------------------------------------------------------------------------------


def test_a_view_is_no_table(tmp_path: Path) -> None:
    """A view is a program, that may give rows without end."""
    path = nsys_db(tmp_path / "net.sqlite", WORK, [Range("x", (1, 2))])
    rename = f"ALTER TABLE {KERNELS} RENAME TO rows"
    _changed(path, rename, f"CREATE VIEW {KERNELS} AS SELECT * FROM rows")  # noqa: S608
    done = run("parse", path)
    assert (done.code, done.stdout) == (1, "")
    assert "none was recorded" in done.stderr
    assert nsys.identity(path).pids == ()


def test_a_view_of_strings_makes_no_capture(tmp_path: Path) -> None:
    """What tells whose file it is has to be a table, too."""
    path = nsys_db(tmp_path / "net.sqlite", WORK)
    _changed(path, "ALTER TABLE StringIds RENAME TO s", "CREATE VIEW StringIds AS SELECT * FROM s")
    assert "without a profiler's tables" in run("parse", path).stderr


@pytest.mark.parametrize(
    "create",
    [
        "CREATE VIRTUAL TABLE NVTX_EVENTS USING fts5(start, end, eventType, globalTid, text)",
        "CREATE TABLE NVTX_EVENTS (start, end, eventType, globalTid, text AS ('layer:never'))",
    ],
)
def test_what_is_computed_is_not_read(create: str, tmp_path: Path) -> None:
    """Neither a virtual table nor a generated column is stored."""
    path = nsys_db(tmp_path / "net.sqlite", WORK)
    insert = "INSERT INTO NVTX_EVENTS (start, end, eventType, globalTid) VALUES (0, 99, 59, 1)"
    capture = readers.read(_changed(path, create, insert))
    assert capture.activities.num_rows == 2
    assert "layer:never" not in texts(capture.ranges)


def test_a_view_is_not_asked_whether_it_is_empty(tmp_path: Path) -> None:
    path = write_tables(tmp_path / "a.sqlite", {"T": (("x",), [{"x": 1}])})
    _changed(path, "CREATE VIEW V AS SELECT * FROM T")
    assert filled(path, ["T", "V", "U"]) == ["T"]


def _with_a_page_twice(path: Path, table: str) -> None:
    """Let the first two places of the root of a table name the same page."""
    with closing(sqlite3.connect(path)) as db:
        query = "SELECT rootpage FROM sqlite_master WHERE name = ?"
        (root,) = db.execute(query, (table,)).fetchone()
        (page_bytes,) = db.execute("PRAGMA page_size").fetchone()
    content = bytearray(path.read_bytes())
    page = memoryview(content)[(root - 1) * page_bytes : root * page_bytes]
    assert page[0] == 5, "the table has one page alone"
    first, second = (int.from_bytes(page[at : at + 2], "big") for at in (12, 14))
    page[second : second + 4] = page[first : first + 4]
    path.write_bytes(content)


@pytest.mark.parametrize("ask", [readers.read, readers.identity])
def test_more_rows_than_the_file_has_room_for(
    ask: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pages that are part of each other are damage; here every row is said to take a page."""
    path = nsys_db(tmp_path / "net.sqlite", WORK * 5000)
    _with_a_page_twice(path, KERNELS)
    monkeypatch.setattr(_sqlite, "_ROW_BYTES", 4096)
    with pytest.raises(CaptureError, match="damaged or truncated"):
        ask(path)  # type: ignore[operator]


def test_ids_of_strings_may_be_of_any_size(tmp_path: Path) -> None:
    """No table as long as the largest id is made, and none is too large to be looked up."""
    path = nsys_db(tmp_path / "net.sqlite", WORK)
    far = 1 << 40
    _changed(
        path,
        f"UPDATE StringIds SET id = id + {far}",  # noqa: S608
        f"UPDATE {KERNELS} SET demangledName = demangledName + {far}",  # noqa: S608
    )
    names = readers.read(path).activities.column("name").to_pylist()
    assert names == ["gemm", "other"]


def test_of_strings_with_one_id_the_last_counts(tmp_path: Path) -> None:
    """As ever; gaps between ids, and ids that are none, change nothing."""
    tables = {
        "StringIds": (("id", "value"), [{"id": i, "value": v} for i, v in
                      ((7, "x"), (None, "y"), (-3, "z"), (90, "gemm"), (7, "other"))]),
        KERNELS: (("start", "end", "demangledName", "correlationId"), [
            {"start": n, "end": n + 1, "demangledName": i, "correlationId": n}
            for n, i in enumerate((7, 90, 8, -3))
        ]),
    }  # fmt: skip
    path = write_tables(tmp_path / "net.sqlite", tables)  # type: ignore[arg-type]
    names = readers.read(path).activities.column("name").to_pylist()
    assert names == ["other", "gemm", "unknown kernel", "unknown kernel"]


# --- traces of torch.profiler --------------------------------------------------------------------


def test_a_gzip_bomb_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What unzips to hundreds of times its size is no trace."""
    monkeypatch.setattr(stream, "_ANY_BYTES", 1 << 16)
    path = tmp_path / "trace.json.gz"
    path.write_bytes(gzip.compress(b'{"traceEvents": [' + b" " * (1 << 20)))
    with pytest.raises(CaptureError, match="more than 250 times"):
        readers.read(path)


def test_what_holds_no_events_for_long_is_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An event of millions of bytes is none; those before it are kept."""
    monkeypatch.setattr(stream, "BLOCK_BYTES", 1 << 12)
    monkeypatch.setattr(stream, "_EVENT_BYTES", 1 << 16)
    events = [kernel(1, 10), kernel(2, 20)]
    written = text(events)[:-2] + ',{"ph": "X", "name": "' + "a" * (1 << 18)
    capture = read_text(tmp_path, written)
    assert capture.activities.num_rows == 2
    assert "the trace is truncated" in capture.warnings[0]


def test_whitespace_is_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither is much of it kept, nor does an event before it get lost."""
    monkeypatch.setattr(stream, "BLOCK_BYTES", 1 << 12)
    monkeypatch.setattr(stream, "_EVENT_BYTES", 1 << 16)
    written = text([kernel(1, 10), kernel(2, 20)])[:-2] + "," + " " * (1 << 18)
    assert read_text(tmp_path, written).activities.num_rows == 2


ODD: list[object] = [None, [], [1], {}, {"a": 1}, 1.5, True, 10**30, -(10**30), "", "x", 2**64]
"""What no trace holds in place of a number or a name."""


@pytest.mark.parametrize("key", ["pid", "tid", "name", "ts", "dur", "args", "cat", "ph", "id"])
def test_values_of_odd_types(key: str, tmp_path: Path) -> None:
    """Events of each kind have one: the others are read, none of these is a traceback."""
    flow: Event = {"ph": "s", "cat": "fwdbwd", "name": "fwdbwd", "id": 1, "pid": 7, "tid": 1,
                   "ts": 1}  # fmt: skip
    frame = op("train.py(3): main", 0, 90) | {"cat": "python_function"}
    events = [kernel(1, 10), launch(1, 2), op("aten::mm", 1, 5), flow, frame]
    odd = [{**event, key: value} for value in ODD for event in events]
    (tmp_path / "trace.json").write_text(text([*odd, kernel(2, 20), launch(2, 12)]))
    done = run("prof", "--csv", "-c", "kernel,sil", tmp_path / "trace.json")
    assert done.code == 0
    assert '"gemm","5000"' in done.stdout


def test_an_hip_call_may_have_any_name(tmp_path: Path) -> None:
    """AMD's calls are told by their names."""
    call = launch(1, 2) | {"name": ["x"]}
    call["args"]["shared memory"] = 5
    assert read(tmp_path, [kernel(1, 10), call]).activities["smem"].to_pylist() == [2048]


@pytest.mark.parametrize("value", ["5", "5.0", 5])
def test_a_duration_may_be_a_text(value: object, tmp_path: Path) -> None:
    """As Chrome's own viewer takes it; a range whose end is not known would enclose all others."""
    events = [event for n in range(3) for event in
              (op("aten::mm", 10 * n, 5) | {"dur": value}, launch(n + 1, 10 * n + 1),
               kernel(n + 1, 100 + n) | {"dur": value})]  # fmt: skip
    capture = read(tmp_path, events)
    assert capture.ranges["end"].to_pylist() == [5_000, 15_000, 25_000]
    spans = zip(*(capture.activities[name].to_pylist() for name in ("start", "end")), strict=True)
    assert [end - start for start, end in spans] == [5_000] * 3


@pytest.mark.parametrize("value", [None, "soon", [1], 1e300, "1e300", "inf", True])
def test_an_event_without_a_time_is_told(value: object, tmp_path: Path) -> None:
    """It cannot be placed, but is there; how many there are is said."""
    capture = read(tmp_path, [kernel(1, 10), kernel(2, 20) | {"ts": value}])
    assert capture.activities.num_rows == 2
    assert capture.activities["start"].null_count == 1
    said = readers.read(tmp_path / "trace.json").warnings
    assert any("1 of 2" in text for text in said), said


def test_lists_in_each_other_are_no_sizes(tmp_path: Path) -> None:
    """However deep JSON goes, the op is there, without sizes."""
    deep: object = []
    for _ in range(900):
        deep = [deep]
    keys = ("Input Dims", "Input type", "Input Strides", "Concrete Inputs")
    event = op("aten::mm", 1, 5)
    event["args"] = dict.fromkeys(keys, deep)
    (tmp_path / "trace.json").write_text(text([event, launch(1, 2), kernel(1, 10)]))
    done = run("prof", "--csv", "-c", "op", tmp_path / "trace.json")
    assert (done.code, done.stdout.splitlines()[1:]) == (0, ['"mm"'])


def test_a_collective_says_plain_things(tmp_path: Path) -> None:
    """What stands for a number of elements and is none is left out."""
    event = kernel(1, 10)
    event["args"] |= {"Collective name": "allreduce", "In msg nelems": [[[1]]], "Group size": 2}
    (said,) = read(tmp_path, [event]).activities["collective"].to_pylist()
    assert json.loads(said) == {"name": "allreduce", "size": 2}


def test_no_trace_is_too_small(tmp_path: Path) -> None:
    """A small file may unzip to much, as a short one of equal events does."""
    path = tmp_path / "trace.json.gz"
    path.write_bytes(gzip.compress(text([kernel(1, 10)] * 5000).encode()))
    assert kineto.read(path).activities.num_rows == 5000
