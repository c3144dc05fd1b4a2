"""nsys exports of every version come out as one and the same capture."""

import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from pyprof import readers, schema
from pyprof.parse import parse_file
from pyprof.readers import nsys
from tests.builders import LAYOUTS, SECRETS, Layout, Range, Work, nsys_db, table, write_tables
from tests.capture_files.model import Rows, Value
from tests.texts import spelt, texts

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
    """Give some columns as a set in order: row order means nothing."""
    found = spelt(found) if "text" in names else found
    return sorted((tuple(row.values()) for row in found.select(names).to_pylist()), key=repr)


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
def test_every_layout_gives_the_same_capture(layout: Layout, tmp_path: Path) -> None:
    """Versions spell it differently: activities, calls and ranges are those that happened."""
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
    """Grid, block, registers, shared memory (static and dynamic), device and stream are read."""
    work = Work(grid=(2, 3, 4), block=(32, 5, 1), regs=99, smem=5000, device=3, stream=21)
    (row,) = readers.read(nsys_db(tmp_path / "a.sqlite", [work])).activities.to_pylist()
    assert [row[f"grid_{axis}"] for axis in "xyz"] == [2, 3, 4]
    assert [row[f"block_{axis}"] for axis in "xyz"] == [32, 5, 1]
    assert (row["regs"], row["smem"], row["device"], row["stream"]) == (99, 5000, 3, 21)


@pytest.mark.parametrize("name", ["2020.3", "2021.2", "2022.4", "2024.6"])
def test_the_gpu_is_read_from_either_table(name: str, tmp_path: Path) -> None:
    """TARGET_INFO_GPU and 2020's TARGET_INFO_CUDA_GPU say the same of a device."""
    capture = readers.read(nsys_db(tmp_path / "a.sqlite", WORK, (), LAYOUTS[name]))
    (device,) = capture.devices.to_pylist()
    assert device == {
        "device": 0,
        "name": "NVIDIA A100-SXM4-80GB",
        "sm_count": 108,
        "clock_hz": 1_410_000_000,
        "bandwidth": 2_039_000_000_000,
        "cc_major": 8,
        "cc_minor": 0,
        "memory_bytes": 80 << 30,
    }


_RTX: dict[str, Value] = {"name": "NVIDIA GeForce RTX 4070 Laptop GPU", "smCount": 36}
_LAPTOP: Rows = [
    {"id": 0, "name": "Intel(R) Arc(TM) Graphics", "smCount": 0, "computeMajor": 0},
    {"id": 1, **_RTX, "computeMajor": 8, "computeMinor": 9},
    {"id": 2, "name": "Microsoft Basic Render Driver", "smCount": 0, "computeMajor": 0},
]
"""A laptop's GPUs; all have CUDA's number 0."""


def _gpus_read(path: Path, gpus: Rows, *mapped: tuple[int, int]) -> schema.Capture:
    columns = ("id", "name", "smCount", "cuDevice", "computeMajor", "computeMinor")
    rows = [{"cuDevice": 0, "computeMinor": 0, **gpu} for gpu in gpus]
    more: dict[str, Rows] = {
        "TARGET_INFO_GPU": [{name: row[name] for name in columns} for row in rows]
    }
    if mapped:
        more["TARGET_INFO_CUDA_DEVICE"] = [
            {"gpuId": gpu, "cudaId": number, "pid": 100 + place}
            for place, (gpu, number) in enumerate(mapped)
        ]
    layout = replace(LAYOUTS["2024.6"], gpus=None, more=more)
    return readers.read(nsys_db(path / "a.sqlite", WORK, (), layout))


@pytest.mark.parametrize("mapped", [[], [(1, 0)]], ids=["by capability", "by the table"])
def test_of_a_laptops_gpus_the_one_that_runs_cuda_is_read(
    tmp_path: Path, mapped: list[tuple[int, int]]
) -> None:
    """Display adapters have the number 0, too; one of them must not be taken for the GPU."""
    (device,) = _gpus_read(tmp_path, _LAPTOP, *mapped).devices.to_pylist()
    assert (device["device"], device["name"], device["cc_major"]) == (0, _RTX["name"], 8)


def test_each_process_may_number_the_gpus_anew(tmp_path: Path) -> None:
    """With CUDA_VISIBLE_DEVICES every rank has a device 0, known if all are of one kind."""
    both: Rows = [
        {"id": gpu, "cuDevice": gpu, "name": name, "smCount": 132, "computeMajor": 9}
        for gpu, name in enumerate(["NVIDIA H100", "NVIDIA H100", "NVIDIA H200"])
    ]
    devices = _gpus_read(tmp_path, both, (0, 0), (1, 0)).devices.to_pylist()
    assert {row["device"]: row["name"] for row in devices}[0] == "NVIDIA H100"
    devices = _gpus_read(tmp_path, both, (1, 0), (2, 0)).devices.to_pylist()
    assert {row["device"]: row["name"] for row in devices}[0] is None


def test_without_a_gpu_table_the_device_is_unknown(tmp_path: Path) -> None:
    """2026 exports may lack it: no device is made up."""
    capture = readers.read(nsys_db(tmp_path / "a.sqlite", WORK, (), LAYOUTS["2026.2"]))
    assert capture.devices.num_rows == 0


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("2020.3", None),
        ("2021.2", None),
        ("2022.4", "2022.4.2.1"),
        ("2024.6", "2024.6.2.225"),
        ("2026.2", "2026.2.1.1"),
    ],
)
def test_the_version_is_given_where_the_file_says_it(
    name: str, expected: str | None, tmp_path: Path
) -> None:
    """EXPORT_META_DATA, META_DATA_EXPORT or neither."""
    assert readers.read(nsys_db(tmp_path / "a.sqlite", WORK, (), LAYOUTS[name])).version == expected


def test_marks_and_names_are_no_ranges(tmp_path: Path) -> None:
    """EventType 34 (mark), 39 (thread name) and 75 (domain) are left out; 59 and 60 stay."""
    ranges = [Range(str(style), (1, 2), style=style) for style in (34, 39, 75, 59, 60, 70, 71)]
    capture = readers.read(nsys_db(tmp_path / "a.sqlite", WORK, ranges))
    assert rows(capture.ranges, "text") == [("59",), ("60",), ("70",), ("71",)]


def test_a_range_still_open_has_no_end(tmp_path: Path) -> None:
    """An end that was not recorded is null, never 0."""
    capture = readers.read(nsys_db(tmp_path / "a.sqlite", WORK, [Range("open", (3, None))]))
    assert capture.ranges.to_pylist()[0]["end"] is None


def test_text_wins_where_there_is_no_id_and_the_id_where_there_is(tmp_path: Path) -> None:
    """One file may hold plain texts and registered strings side by side."""
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
    """And none of them names a domain."""
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


def test_pids_are_not_guessed_where_several_processes_could_be_meant(tmp_path: Path) -> None:
    """Without globalPid, and with API calls of two processes, an activity's process is unknown."""
    work = [Work(call=(1, 2), pid=1), Work(call=(3, 4), pid=2)]
    path = nsys_db(tmp_path / "a.sqlite", work, (), LAYOUTS["no globalPid"])
    assert readers.read(path).activities.column("pid").null_count == 2


def test_graph_launches_are_warned_of_with_their_time(tmp_path: Path) -> None:
    """A warning says how much GPU time they hide and how to see the kernels."""
    (warning,) = readers.read(nsys_db(tmp_path / "a.sqlite", WORK, RANGES)).warnings
    assert "1 CUDA graph launches contain 0.00 ms" in warning
    assert "--cuda-graph-trace=node" in warning
    long = [Work(kind="graph", at=(0, 2_500_000)), Work(at=(5, 1_000_005), stream=8), *WORK[:1]]
    (warning,) = readers.read(nsys_db(tmp_path / "b.sqlite", long, RANGES)).warnings
    assert "2.50 ms" in warning
    assert "1.00 ms is outside" in warning


def test_a_capture_without_ranges_is_a_warning_not_an_error(tmp_path: Path) -> None:
    """Kernels alone can be reported; the user learns why they have no ops."""
    (warning,) = readers.read(nsys_db(tmp_path / "a.sqlite", WORK[:1])).warnings
    assert "no NVTX ranges" in warning


def test_what_nsys_said_of_losses_is_passed_on(tmp_path: Path) -> None:
    """DIAGNOSTIC_EVENT's sentences about losses reach the user, others do not."""
    said = ["Not all CUDA events might have been collected.", f"Process on {SECRETS[0]} started."]
    layout = Layout(more={"DIAGNOSTIC_EVENT": [{"text": text} for text in said]})
    warnings = readers.read(nsys_db(tmp_path / "a.sqlite", WORK[:1], RANGES, layout)).warnings
    assert warnings == ("message from nsys: Not all CUDA events might have been collected.",)


def test_a_capture_is_never_written_to(tmp_path: Path) -> None:
    """Reading leaves the file's bytes and its folder as they were, even a read-only folder."""
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


def test_ranges_without_any_text_are_ranges_without_text(tmp_path: Path) -> None:
    """A file that has neither a text nor a textId column is read and parsed."""
    events = table(("start", "end", "globalTid"), (1, 9, 1 << 24))
    kernels = table(("start", "end", "correlationId"), (20, 30, 1))
    tables = {"NVTX_EVENTS": events, "CUPTI_ACTIVITY_KIND_KERNEL": kernels}
    path = write_tables(tmp_path / "a.sqlite", {**tables, "StringIds": table(("id", "value"))})
    assert texts(readers.read(path).ranges) == [""]
    assert parse_file(path).rows == 1


@pytest.mark.parametrize("name", ["a b.sqlite", "a?b#c%41.sqlite", "ä€.sqlite", "net.dict"])
def test_any_file_name_is_read(name: str, tmp_path: Path) -> None:
    """What a URI would have to quote is quoted; the suffix decides nothing."""
    assert readers.read(nsys_db(tmp_path / name, WORK)).activities.num_rows == len(WORK)


@pytest.mark.parametrize("unfinished", [False, True])
def test_a_log_beside_a_capture(unfinished: bool, tmp_path: Path) -> None:  # noqa: FBT001
    """Nothing is written beside a file that has one by its header; one that is there is read."""
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
    """It is told; what was deleted was open, and is whole."""
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


def test_when_the_session_began_is_known(tmp_path: Path) -> None:
    """The clock counts from then; of a file without it, or with an empty table, nothing is."""
    path = nsys_db(tmp_path / "net.sqlite", WORK)
    assert readers.read(path).began_ns is None
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("CREATE TABLE TARGET_INFO_SESSION_START_TIME (utcEpochNs INTEGER, utcTime TEXT)")
    assert readers.read(path).began_ns is None
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("INSERT INTO TARGET_INFO_SESSION_START_TIME VALUES (1713889498851521398, '')")
    assert readers.read(path).began_ns == 1713889498851521398
