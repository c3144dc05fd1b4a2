"""cudaMalloc and cudaFree as recorded by nsys: levels by device and process, tied to ops."""

from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pyprof.allocations import read
from pyprof.analysis.memory import peaks
from pyprof.readers import nsys_report
from tests.analysis.captured import op
from tests.builders import Range, Work, nsys_db
from tests.capture_files.model import global_id
from tests.capture_files.nsys import NSYS_2024
from tests.commands import refused, run

_CALL = "cudaMalloc_v3020"


def _row(number: int, start: int, size: int, address: int = 4096, **more: Any) -> dict[str, Any]:  # noqa: ANN401
    return {
        "start": start, "globalPid": global_id(1), "deviceId": 0, "contextId": 1,
        "address": address, "pc": 0, "bytes": abs(size), "memKind": 2,
        "memoryOperationType": int(size < 0), "name": None, "correlationId": number, **more,
    }  # fmt: skip


def _capture(path: Path, rows: list[dict[str, Any]]) -> Path:
    calls = [Work(call=(10 * n, 10 * n + 5), kind="call", api=_CALL, corr=n) for n in range(1, 5)]
    texts = ["layer:net.0", op("matmul", 8, 8)]
    ranges = [Range(text, (at, 29 - at)) for at, text in enumerate(texts, 5)]
    layout = replace(NSYS_2024, more={**NSYS_2024.more, "CUDA_GPU_MEMORY_USAGE_EVENTS": rows})
    return nsys_db(path, [*calls, Work(corr=9, call=(90, 95))], ranges, layout)


def test_levels_ops_and_layers(tmp_path: Path) -> None:
    rows = [_row(1, 12, 1000), _row(2, 22, 500, 8192), _row(3, 32, -1000), _row(4, 42, 64, 12288)]
    (recorded,) = read.read(_capture(tmp_path / "x.sqlite", rows)).devices
    history = recorded.history
    assert history.device == "cuda:0"
    assert history.level.tolist() == [1000, 1500, 500, 564]
    assert history.labels["op"].at(history.blocks.bytes.argsort()) == [None, "matmul", "matmul"]
    (device,) = peaks.highest_first([read.read(tmp_path / "x.sqlite")])
    assert {group.name: group.bytes for group in device.by["layer"]} == {"net.0": 1500, None: 0}
    assert (device.changes, device.checkpoints) == ((), ())  # segments are not tensors


def test_processes_and_kinds_of_memory_are_separate(tmp_path: Path) -> None:
    """Two processes use the same addresses; pinned memory is on no device."""
    other = global_id(2)
    rows = [_row(1, 12, 10), _row(1, 13, 20, globalPid=other), _row(2, 22, 40, memKind=1)]
    found = peaks.highest_first([read.read(_capture(tmp_path / "x.sqlite", rows))])
    assert [(each.device, each.peak_bytes) for each in found] == [
        ("pinned:0 of process 1", 40),
        ("cuda:0 of process 2", 20),
        ("cuda:0 of process 1", 10),
    ]


def test_invalid_rows_are_dropped(tmp_path: Path) -> None:
    odd = [_row(1, 12, 0), _row(1, 12, 1 << 60), _row(1, 12, 5, -1),
           _row(1, None, 5), _row(1, 12, 5, memoryOperationType=7)]  # type: ignore[arg-type]  # fmt: skip
    (recorded,) = read.read(_capture(tmp_path / "x.sqlite", [*odd, _row(77, 12, 8)])).devices
    assert recorded.history.level.tolist() == [8]
    assert recorded.history.labels["op"].at(recorded.history.blocks.allocated) == [None]


def test_a_report_is_exported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    export = _capture(tmp_path / "x.sqlite", [_row(1, 12, 1000)])
    monkeypatch.setattr(nsys_report, "export", lambda _: nullcontext(export))
    report = tmp_path / "rank3.nsys-rep"
    report.write_bytes(b"\n\x0breport")
    recorded = read.read(report)
    assert (recorded.path, recorded.rank) == (report, 3)
    assert recorded.devices[0].history.level.tolist() == [1000]


def test_a_note_says_that_these_are_segments(tmp_path: Path) -> None:
    """PyTorch's tensors are inside them."""
    done = run("memory", _capture(tmp_path / "x.sqlite", [_row(1, 12, 1000)]))
    assert "nsys records what PyTorch takes from the device" in " ".join(done.stdout.split())


def test_a_capture_without_memory_is_refused(tmp_path: Path) -> None:
    assert "--cuda-memory-usage=true" in refused("memory", nsys_db(tmp_path / "x.sqlite", [Work()]))
