"""Counters in traces: samples of a device, and counters of each kernel."""

import math
import sys
from pathlib import Path

import pytest

from pyprof.readers.kineto.file.events import by_kind, from_values
from pyprof.readers.kineto.file.stream import Trace
from pyprof.readers.kineto.gather import TraceTables
from tests.capture_files.metrics import kineto_counters, sampled
from tests.parse.counters import planted
from tests.readers import kineto_json


@pytest.mark.few(1)
@pytest.mark.slow
@pytest.mark.parametrize("key", [None, ""])
def test_counter_events_are_read(key: str | None, tmp_path: Path) -> None:
    work = planted.work_of(steps=1500, us=60)
    total = sampled(work, lambda piece: sum(planted.LOADS[piece.name][1:]), 1_000_000)
    tensor = sampled(work, lambda piece: planted.LOADS[piece.name][0], 1_000_000)
    events = [
        *planted.trace(work),
        *kineto_counters("DRAM BW (%)", total, key=key),
        *kineto_counters("sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed", tensor),
    ]
    planted.check(planted.rows(planted.written(tmp_path / "a.json", events), planted.COLUMNS))


def test_events_with_samples_are_not_kept(tmp_path: Path) -> None:
    """Each refers to a large piece of the file."""
    written = {"ph": "C", "name": "Power (W)", "pid": 0, "ts": 5, "args": {"": 300}}
    (event,) = from_values([written])
    tables, references = TraceTables(Trace(tmp_path / "a.json")), sys.getrefcount(event)
    tables.add(by_kind([event]))
    assert sys.getrefcount(event) == references


def test_counters_of_each_kernel(tmp_path: Path) -> None:
    """CUPTI's range profiler writes them in the kernel's event."""
    measured = {"kineto__tensor_core_insts": 2048.0, "dram__bytes_read.sum": 1e6,
                "dram__bytes_write.sum": 5e5}  # fmt: skip
    first, second = kineto_json.kernel(1, 10), kineto_json.kernel(2, 20)
    first["args"] |= measured
    events = [kineto_json.launch(1, 1), kineto_json.launch(2, 3), first, second]
    rows = planted.rows(planted.written(tmp_path / "a.json", events), "dram,tcmeas,counter,via")
    assert [*rows[0].values()] == ["1500000", "1", "args", "measured"]
    assert [*rows[1].values()] == [""] * 4


@pytest.mark.parametrize(("name", "cc", "used"), [("B200", 10, ""), ("H100", 9, "0")])
def test_a_trace_counts_one_of_two_pipes(name: str, cc: int, used: str, tmp_path: Path) -> None:
    """A B200 has a second Tensor Core pipe: none in the first leaves it open."""
    kernel = kineto_json.kernel(1, 10)
    kernel["args"] |= {"kineto__tensor_core_insts": 0.0}
    gpu = {"id": 0, "name": f"NVIDIA {name}", "computeMajor": cc, "computeMinor": 0}
    path = kineto_json.trace_file(
        tmp_path, [kineto_json.launch(1, 1), kernel], deviceProperties=[gpu]
    )
    assert planted.rows(path, "tcmeas") == [{"TCm": used}]


@pytest.mark.parametrize("value", ["x", None, True, math.inf, -5, 1e30, {}, [1]])
def test_damaged_samples_are_dropped(value: object, tmp_path: Path) -> None:
    event = {"ph": "C", "name": "Power (W)", "pid": 0, "ts": 5, "args": {"": value}}
    odd = {"ph": "C", "name": ["Power (W)"], "pid": "GPU 99999", "ts": 5, "args": {"a": 1}}
    path = planted.written(
        tmp_path / "a.json", [*planted.trace(planted.work_of(steps=1)), event, odd]
    )
    assert {row["Power(W)"] for row in planted.rows(path, "power")} == {""}
