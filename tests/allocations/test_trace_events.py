"""Memory events in traces of torch.profiler."""

from pathlib import Path
from typing import Any

import orjson
import pytest

from pyprof.allocations import trace_events


def _event(ts: float, size: int, **more: object) -> dict[str, Any]:
    args = {"Bytes": size, "Device Type": 1, "Device Id": 0, "Total Allocated": 4096, **more}
    return {"ph": "i", "name": "[memory]", "pid": 7, "tid": 9, "ts": ts, "args": args}


def _trace(folder: Path, *events: dict[str, Any]) -> Path:
    path = folder / "trace.json"
    path.write_bytes(orjson.dumps({"traceEvents": [*events], "baseTimeNanoseconds": 0}))
    return path


def test_events_are_sorted_by_time_with_their_addresses(tmp_path: Path) -> None:
    path = _trace(tmp_path, _event(20, -512, Addr=100), _event(10, 512, Addr=100))
    events = trace_events.read(path)
    assert trace_events.has_any(path)
    assert events.bytes.tolist() == [512, -512]
    assert events.address.tolist() == [100, 100]
    assert (events.pid.tolist(), events.device_type.tolist()) == ([7, 7], [1, 1])


def test_old_events_without_addresses_free_the_last_block_of_their_size(tmp_path: Path) -> None:
    sizes = (512, 512, -512, 64, -512)
    events = trace_events.read(_trace(tmp_path, *(_event(at, s) for at, s in enumerate(sizes))))
    assert trace_events.made_up(events.address).all()
    first, second, freed, other, last = events.address.tolist()
    assert (freed, last) == (second, first)
    assert len({first, second, other}) == 3


@pytest.mark.parametrize("broken", [{"Bytes": "many"}, {"Bytes": 0}, {"Addr": "x"}])
def test_events_without_a_size_or_address_are_left_out(
    tmp_path: Path, broken: dict[str, Any]
) -> None:
    assert not len(trace_events.read(_trace(tmp_path, _event(1, 512, **broken))).bytes)


def test_a_trace_without_memory_has_none(tmp_path: Path) -> None:
    assert not trace_events.has_any(_trace(tmp_path, {"ph": "X", "name": "aten::mm"}))
