"""A snapshot and a trace of one run: the context of each event, and memory beside time."""

from pathlib import Path

import numpy as np

from pyprof.allocations import read, snapshot_device
from tests.allocations import built, traces
from tests.commands import refused


def test_a_trace_adds_what_stacks_lack(tmp_path: Path) -> None:
    snapshot, trace = traces.recorded(tmp_path)
    alone, joined = traces.asked(snapshot), traces.asked(snapshot, "--trace", trace)
    assert {group["name"] for group in alone["by"]["op"]} == {None}
    blocks = {block["bytes"]: block for block in joined["largest"]}
    assert blocks[1000]["op"] == "linear"
    assert blocks[1000]["layer"] == "net.0"
    assert blocks[1000]["category"] == "activations"
    assert blocks[300]["direction"] == "backward"
    assert joined["peak_bytes"] == alone["peak_bytes"] == 1800


def test_a_trace_of_another_time_is_refused(tmp_path: Path) -> None:
    """It cannot be from the same run."""
    snapshot, trace = traces.recorded(tmp_path)
    start_ns = traces.START_US * 1000
    trace.write_text(trace.read_text().replace(str(start_ns), str(start_ns + 10**15)))
    assert "of different times" in refused("memory", snapshot, "--trace", trace)


def test_devices_are_those_with_an_event_or_a_segment() -> None:
    """Torch lists the events of all visible devices, most of which may be unused."""
    taken = built.snapshot(built.Device(), built.training())
    taken["segments"] = []
    assert snapshot_device.device_numbers(built.parsed(taken)) == [1]
    taken["segments"] = [built.Device().segment()]
    assert snapshot_device.device_numbers(built.parsed(taken)) == [0, 1]


def test_a_call_stack_has_the_frames_of_python_alone(tmp_path: Path) -> None:
    """The outermost first; None without any."""
    device = built.Device()
    device.alloc(1, built.ENGINE, built.user(4, "forward"), built.user(9))
    device.alloc(2, built.NODE, built.ENGINE)
    (recorded,) = read.read(built.write(tmp_path / "x.pickle", device)).devices
    rows = np.argsort(recorded.history.blocks.bytes)
    assert recorded.call_stacks(rows).at(np.arange(2)) == [
        "main (/home/user/train.py:9)\nforward (/home/user/train.py:4)",
        None,
    ]


def test_reserved_memory_is_unknown_if_events_of_segments_are_missing(tmp_path: Path) -> None:
    """More would be allocated than is reserved; what is reserved at the end is recorded."""
    device = built.Device(segment_bytes=512)
    device.free(device.alloc(1 << 20))
    (recorded,) = read.read(built.write(tmp_path / "x.pickle", device)).devices
    assert any("was reserved before the end is unknown" in note for note in recorded.notes)
    assert recorded.history.reserved is None
    assert recorded.history.reserved_end is not None
