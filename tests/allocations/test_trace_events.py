"""Memory events in traces of torch.profiler."""

from pathlib import Path
from typing import Any

import pytest

from pyprof.allocations import trace_events
from tests.allocations.traces import event, written
from tests.readers.kineto_json import op


def test_events_are_sorted_by_time_with_their_addresses(tmp_path: Path) -> None:
    events = [event(20, -512, 100), event(10, 512, 100)]
    found = trace_events.read(written(tmp_path / "x.json", events))
    assert found.bytes.tolist() == [512, -512]
    assert found.address.tolist() == [100, 100]
    assert (found.pid.tolist(), found.device_type.tolist()) == ([7, 7], [1, 1])


def _old_addresses(folder: Path, *sizes: int) -> list[int]:
    """Return the addresses that events without any are given."""
    events = [event(at, size) for at, size in enumerate(sizes)]
    for made in events:
        del made["args"]["Addr"]
    address = trace_events.read(written(folder / "x.json", events)).address
    assert trace_events.is_synthetic(address).all()
    numbers: list[int] = address.tolist()
    return numbers


def test_old_events_without_addresses_free_the_last_block_of_their_size(tmp_path: Path) -> None:
    first, second, freed, other, last = _old_addresses(tmp_path, 512, 512, -512, 64, -512)
    assert (freed, last) == (second, first)
    assert len({first, second, other}) == 3


def test_old_events_free_a_block_of_one_byte_and_nothing_that_was_freed(tmp_path: Path) -> None:
    allocated, freed, *unknown = _old_addresses(tmp_path, 1, -1, -512, -512)
    assert allocated == freed
    assert len({allocated, *unknown}) == 3


@pytest.mark.parametrize("name", ["x.json", pytest.param("x.json.gz", marks=pytest.mark.long)])
@pytest.mark.parametrize(
    "how", [pytest.param({}, marks=pytest.mark.long), {"indent": 1, "sort_keys": True}]
)
def test_every_event_is_found_once(tmp_path: Path, name: str, how: dict[str, Any]) -> None:
    events = [op("aten::add", 0, 1e6)]
    events += [event(10 + number, 1 + number, 64 * number) for number in range(40_000)]
    path = written(tmp_path / name, events, head={"baseTimeNanoseconds": 10**18}, **how)
    found = trace_events.read(path)
    assert found.bytes.tolist() == list(range(1, 40_001))
    assert found.time_ns[0] == 10**18 + 10_000


def test_invalid_events_are_dropped(tmp_path: Path) -> None:
    odd: list[Any] = [
        event(1, 0), event(1, 5, None), event(float("nan"), 5), event(1, 1 << 60),  # type: ignore[arg-type]
        {"name": "[memory]", "ph": "i", "ts": 1, "args": {}},
        {"name": "a [memory]", "ph": "i", "ts": 1, "args": {"Bytes": 1, "Addr": 1}},
    ]  # fmt: skip
    good = event(1, "7", "16")  # type: ignore[arg-type]
    path = written(tmp_path / "x.json", [op("aten::add", 1, 8), *odd, good])
    assert trace_events.read(path).bytes.tolist() == [7]
