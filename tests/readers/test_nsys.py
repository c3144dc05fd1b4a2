"""nsys exports of every version give the same capture."""

import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from pyprof import readers, schema
from pyprof.parse import parse_file
from pyprof.readers import nsys
from tests.builders import LAYOUTS, Layout, Range, Work, nsys_db, table, write_tables
from tests.damage import sql
from tests.texts import texts, with_texts

WORK = (
    Work("gemm<(int)128>", at=(1000, 1100), call=(10, 20)),
    Work("relu", at=(1200, 1250), call=(30, 40), tid=12, driver=True, api="cuLaunchKernel"),
    Work(kind="memcpy", at=(1300, 1400), call=(50, 60), copy_kind=8, bytes=77),
    Work(kind="memset", at=(1500, 1510), call=(70, 80), bytes=88),
    Work(kind="graph", at=(1600, 1900), call=(90, 95)),
)
RANGES = (
    Range("layer:encoder", (5, 100)),
    Range("aten::mm, seq = 4, op_id = 7", (8, 25)),
    Range("request", (1, 500), style=60, end_tid=12),
)


def rows(found: pa.Table, *names: str) -> list[tuple[object, ...]]:
    """Return the rows of some columns, sorted: their order means nothing."""
    found = with_texts(found) if "text" in names else found
    return sorted((tuple(row.values()) for row in found.select(names).to_pylist()), key=repr)


@pytest.mark.few(4)
@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
def test_every_layout_gives_the_same_capture(layout: Layout, tmp_path: Path) -> None:
    capture = readers.read(nsys_db(tmp_path / "net.sqlite", WORK, RANGES, layout))
    schema.check(capture)
    assert rows(capture.activities, "start", "end", "kind", "pid", "corr", "name", "bytes") == [
        (1000, 1100, schema.KERNEL, 1, 1, "gemm<(int)128>", None),
        (1200, 1250, schema.KERNEL, 1, 2, "relu", None),
        (1300, 1400, schema.MEMCPY, 1, 3, "[CUDA memcpy DtoD]", 77),
        (1500, 1510, schema.MEMSET, 1, 4, "[CUDA memset]", 88),
        (1600, 1900, schema.GRAPH, 1, 5, "[CUDA graph 3]", None),
    ]
    assert [row[:3] for row in rows(capture.calls, "start", "end", "corr")] == [
        (10, 20, 1), (30, 40, 2), (50, 60, 3), (70, 80, 4), (90, 95, 5),
    ]  # fmt: skip
    assert rows(capture.ranges, "start", "end", "text", "style") == [
        (1, 500, "request", schema.FREE),
        (5, 100, "layer:encoder", schema.NESTED),
        (8, 25, "aten::mm, seq = 4, op_id = 7", schema.NESTED),
    ]
    assert rows(capture.threads, "pid", "tid") == [(1, 11), (1, 12)]


def test_a_kernel_keeps_its_launch_configuration(tmp_path: Path) -> None:
    work = Work(grid=(2, 3, 4), block=(32, 5, 1), regs=99, smem=5000, device=3, stream=21)
    (row,) = readers.read(nsys_db(tmp_path / "a.sqlite", [work])).activities.to_pylist()
    assert [row[f"grid_{axis}"] for axis in "xyz"] == [2, 3, 4]
    assert [row[f"block_{axis}"] for axis in "xyz"] == [32, 5, 1]
    assert (row["regs"], row["smem"], row["device"], row["stream"]) == (99, 5000, 3, 21)


def test_marks_and_names_are_not_ranges(tmp_path: Path) -> None:
    """EventType 34 (mark), 39 (thread name) and 75 (domain) are skipped; 59 and 60 stay."""
    ranges = [Range(str(style), (1, 2), style=style) for style in (34, 39, 75, 59, 60, 70, 71)]
    capture = readers.read(nsys_db(tmp_path / "a.sqlite", WORK, ranges))
    assert rows(capture.ranges, "text") == [("59",), ("60",), ("70",), ("71",)]


def test_plain_texts_and_registered_strings_may_be_mixed(tmp_path: Path) -> None:
    """The id counts if there is one, else the text."""
    path = nsys_db(tmp_path / "a.sqlite", WORK, ())
    columns = ("start", "end", "eventType", "globalTid", "text", "textId")
    rest = (59, 1 << 24)
    events = table(
        columns,
        (1, 2, *rest, "plain", None),
        (3, 4, *rest, None, 1),
        (5, 6, *rest, None, 4711),
        (7, 8, *rest, None, None),
    )
    strings = table(("id", "value"), (1, "registered"))
    write_tables(path, {"NVTX_EVENTS": events, "StringIds": strings})
    assert texts(readers.read(path).ranges.sort_by("start")) == ["plain", "registered", "", ""]


def test_events_of_a_table_without_types_are_nested_ranges(tmp_path: Path) -> None:
    path = nsys_db(tmp_path / "a.sqlite", WORK)
    events = table(("start", "end", "globalTid", "text"), (1, 4, 1, "outer"), (2, 3, 1, "inner"))
    write_tables(path, {"NVTX_EVENTS": events, "StringIds": table(("id", "value"), (1, "gemm"))})
    ranges = readers.read(path).ranges.sort_by("start")
    assert texts(ranges) == ["outer", "inner"]
    assert rows(ranges, "style", "domain") == [(schema.NESTED, None)] * 2


def test_a_call_is_dropped_only_where_its_twin_exists(tmp_path: Path) -> None:
    """A row of eventClass 67 without a first row is the only trace of that call and stays."""
    path = nsys_db(tmp_path / "a.sqlite", WORK)
    columns = ("start", "end", "eventClass", "globalTid", "correlationId", "nameId")
    calls = table(
        columns,
        (1, 2, 0, 1 << 24, 1, 1),
        (1, 2, 67, 1 << 24, 1, 1),  # twin
        (3, 4, 67, 1 << 24, 2, 1),  # alone
        (5, 6, 67, 2 << 24, 1, 1),  # of another process
    )
    strings = table(("id", "value"), (1, "cudaLaunchKernel"))
    write_tables(path, {"StringIds": strings, "CUPTI_ACTIVITY_KIND_RUNTIME": calls})
    assert rows(readers.read(path).calls, "start", "corr") == [(1, 1), (3, 2), (5, 1)]


def test_work_without_a_process_beside_work_with_one(tmp_path: Path) -> None:
    """It is that of the only process with calls; among several it is unknown, and not 0."""
    work = [Work(call=(1, 2)), Work(call=(3, 4))]
    forget = "UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET globalPid = NULL WHERE rowid = 1"
    path = sql(nsys_db(tmp_path / "a.sqlite", work), forget)
    assert readers.read(path).activities["pid"].to_pylist() == [1, 1]
    path = sql(nsys_db(tmp_path / "b.sqlite", [work[0], replace(work[1], pid=2)]), forget)
    assert readers.read(path).activities["pid"].to_pylist() == [None, 2]
    assert readers.identity(path).pids == (2,)


def test_a_graph_without_a_number_has_none_in_its_name(tmp_path: Path) -> None:
    path = nsys_db(tmp_path / "a.sqlite", [Work(kind="graph")])
    sql(path, "UPDATE CUPTI_ACTIVITY_KIND_GRAPH_TRACE SET graphId = NULL")
    assert readers.read(path).activities["name"].to_pylist() == ["[CUDA graph]"]


def test_a_capture_is_never_written_to(tmp_path: Path) -> None:
    path = nsys_db(tmp_path / "a.sqlite", WORK, RANGES)
    before = path.read_bytes()
    path.chmod(0o444)
    tmp_path.chmod(0o555)
    try:
        readers.read(path)
        assert path.read_bytes() == before
        assert [entry.name for entry in tmp_path.iterdir()] == ["a.sqlite"]
    finally:
        tmp_path.chmod(0o755)


def test_ranges_may_have_no_text_column(tmp_path: Path) -> None:
    events = table(("start", "end", "globalTid"), (1, 9, 1 << 24))
    kernels = table(("start", "end", "correlationId"), (20, 30, 1))
    tables = {"NVTX_EVENTS": events, "CUPTI_ACTIVITY_KIND_KERNEL": kernels}
    path = write_tables(tmp_path / "a.sqlite", {**tables, "StringIds": table(("id", "value"))})
    assert texts(readers.read(path).ranges) == [""]
    assert parse_file(path).rows == 1


@pytest.mark.parametrize("name", ["a b.sqlite", "a?b#c%41.sqlite", "ä€.sqlite", "net.dict"])
def test_any_file_name_is_read(name: str, tmp_path: Path) -> None:
    """Characters that a URI must quote are quoted; the suffix does not matter."""
    assert readers.read(nsys_db(tmp_path / name, WORK)).activities.num_rows == len(WORK)


@pytest.mark.parametrize("unfinished", [False, True])
def test_a_log_beside_a_capture(unfinished: bool, tmp_path: Path) -> None:  # noqa: FBT001
    """Nothing is written for one that is only declared; one that exists is read."""
    path = nsys_db(tmp_path / "net.sqlite", [Work(), Work()], [])
    with closing(sqlite3.connect(path)) as base:
        base.execute("PRAGMA journal_mode = wal")
        base.execute("DELETE FROM CUPTI_ACTIVITY_KIND_KERNEL WHERE rowid = 1")
        base.commit()
        there = {*tmp_path.iterdir()}
        assert len(there) > 1
        if unfinished:
            assert readers.read(path).activities.num_rows == 1
    if not unfinished:
        assert [*tmp_path.iterdir()] == [path]
        assert readers.read(path).activities.num_rows == 1
        assert [*tmp_path.iterdir()] == [path]


@pytest.mark.parametrize("change", ["append", "replace", "delete"])
def test_a_file_that_changes_while_it_is_read(
    change: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is an error; a deleted file is still open, and whole."""
    path = nsys_db(tmp_path / "net.sqlite", [Work()], [])
    read = nsys.read

    def meanwhile(path: Path) -> schema.Capture:
        found = read(path)
        data = path.read_bytes()
        path.unlink()
        if change != "delete":
            path.write_bytes(data + bytes(4096 * (change == "append")))
        return found

    quiet = readers.read(path).warnings
    monkeypatch.setattr(nsys, "read", meanwhile)
    said = [text for text in readers.read(path).warnings if text not in quiet]
    assert len(said) == (change != "delete")
    assert all("changed while it was read" in text for text in said)
