"""Allocations as recorded by rocprofv3: levels by device, tied to ops and layers."""

from pathlib import Path

import pytest

from pyprof.allocations import read, rocpd_events
from tests.analysis.captured import op
from tests.builders import Range, Work, rocpd_db
from tests.commands import refused, run
from tests.readers.rocpd.memory_rows import GPU, HOST, OTHER_GPU, Row, add, alloc, free


def _capture(path: Path) -> Path:
    ranges = [Range("layer:net.0", (5, 29)), Range(op("matmul", 8, 8), (6, 28))]
    return rocpd_db(path, [Work(call=(90, 95))], ranges)


def test_levels_ops_and_layers(tmp_path: Path) -> None:
    rows = [alloc(12, 1000), alloc(22, 500, 8192), free(32), alloc(42, 64, 12288)]
    (recorded,) = read.read(add(_capture(tmp_path / "x.db"), rows)).devices
    history = recorded.history
    assert history.device == "cuda:0"
    assert history.level.tolist() == [1000, 1500, 500, 564]
    at = history.blocks.bytes.argsort()
    assert history.labels["op"].at(at) == [None, "matmul", "matmul"]
    assert history.labels["layer"].at(at) == [None, "net.0", "net.0"]
    assert not recorded.of_tensors


def test_the_hosts_memory_is_separate(tmp_path: Path) -> None:
    path = add(_capture(tmp_path / "x.db"), [alloc(12, 1000), alloc(14, 7, 8192, HOST)])
    levels = {each.history.device: each.history.level.tolist() for each in read.read(path).devices}
    assert levels == {"cuda:0": [1000], "host": [7]}


def test_a_note_says_that_these_are_segments(tmp_path: Path) -> None:
    done = run("memory", add(_capture(tmp_path / "x.db"), [alloc(12, 1000)]))
    assert "rocprofv3 records what PyTorch takes from the device" in " ".join(done.stdout.split())


def test_a_capture_without_memory_is_refused(tmp_path: Path) -> None:
    assert "--memory-allocation-trace" in refused("memory", _capture(tmp_path / "x.db"))


def _read(path: Path, rows: list[Row], level: str = "REAL") -> list[tuple[int, int, int]]:
    rocpd_db(path, [Work(), Work(device=1)])
    used = rocpd_events.memory_events(add(path, rows, level=level))
    return [*zip(used.time_ns.tolist(), used.bytes.tolist(), used.device.tolist(), strict=True)]


def test_a_free_is_of_the_last_allocation_of_its_address(tmp_path: Path) -> None:
    """An address may be reused for another size, or on another device."""
    rows = [
        *(alloc(10, 100), alloc(20, 50, 8192, HOST), free(30), alloc(40, 7, agent=OTHER_GPU)),
        *(free(50), free(60, 8192)),
    ]
    assert _read(tmp_path / "net.db", [*reversed(rows)]) == [
        *((10, 100, 0), (20, 50, -1), (30, -100, 0), (40, 7, 1), (50, -7, 1), (60, -50, -1)),
    ]


@pytest.mark.parametrize(
    "rows",
    [
        [free(5), alloc(10, 100), free(20)],
        [alloc(10, 100), free(20), free(30)],
        [alloc(10, 100), free(20), (30, "RECLAIM", GPU, 4096, 8), (40, "REALLOC", GPU, 4096, 8)],
        [alloc(10, 100), free(20), alloc(30, 0), alloc(40, 1 << 60), alloc(50, 5, address=0)],
    ],
    ids=["never allocated", "freed twice", "scratch", "odd"],
)
def test_events_that_use_no_memory_are_dropped(rows: list[Row], tmp_path: Path) -> None:
    assert _read(tmp_path / "net.db", rows) == [(10, 100, 0), (20, -100, 0)]


def test_scratch_memory_is_not_the_programs(tmp_path: Path) -> None:
    assert _read(tmp_path / "net.db", [alloc(10, 100)], level="SCRATCH") == []


def test_addresses_of_two_processes_are_separate(tmp_path: Path) -> None:
    """So are ids of recordings, which all begin at 1."""
    path = rocpd_db(tmp_path / "net.db", [Work(pid=1), Work(pid=2)], one_table=True)
    add(path, [alloc(10, 100), free(40)], place=0, pid=1)
    add(path, [alloc(20, 7), free(30)], place=1, pid=2)
    used = rocpd_events.memory_events(path)
    assert used.pid.tolist() == [1, 2, 2, 1]
    assert used.bytes.tolist() == [100, 7, -7, -100]
