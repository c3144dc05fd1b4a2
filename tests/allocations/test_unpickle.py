"""Pickles are read as plain data: nothing is executed, and hostile ones cost little."""

import io
import os
import pickle
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pyprof.allocations import snapshot, unpickle
from tests.allocations import built
from tests.commands import refused


class _Runs:
    def __init__(self, path: Path) -> None:
        self._path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self._path),)


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_every_protocol_is_read(tmp_path: Path, protocol: int) -> None:
    """Python's default changed over time, and users write files again."""
    read = snapshot.read(built.pickled(tmp_path, built.snapshot(built.training()), protocol))
    assert len(read.events[0]) == len(built.training().events)


@pytest.mark.parametrize("protocol", [2, 4])
def test_nothing_is_executed(tmp_path: Path, protocol: int) -> None:
    made = tmp_path / "made"
    taken = built.snapshot(built.training())
    taken["device_traces"][0][3]["frames"] = _Runs(made)
    said = refused("memory", built.pickled(tmp_path, taken, protocol))
    assert "mkdir, which is not run" in said
    assert not made.exists()


@pytest.mark.few(8)
@pytest.mark.slow
@pytest.mark.parametrize(
    "hostile",
    [
        pytest.param(b"\x80\x04cos\nsystem\n(S'true'\ntR.", id="function"),
        pytest.param(b"\x80\x04P1\n.", id="persistent id"),
        pytest.param(b"\x80\x04\x82\x01.", id="extension"),
        pytest.param(b"\x80\x04]r\xff\xff\xff\x7f.", id="memo of 17 GB"),
        pytest.param(b"\x80\x04\x8e" + b"\xff" * 7 + b"\x00abc", id="bytes that are not there"),
        pytest.param(
            b"\x80\x04}" + b")" + b"\x85" * 2_000_000 + b"K\x01s.", id="deep tuple as key"
        ),
        pytest.param(b"\x80\x04" + b"]" * 2_000_000 + b"a" * 1_999_999 + b".", id="deep lists"),
        pytest.param(b"\x80\x04I" + b"1" * 1_000_000 + b"\n.", id="long number"),
        pytest.param(b"\x80\x04]\x94h\x00a.", id="cycle"),
        pytest.param(b"\x80\x04}\x94\x8c\x08segmentsh\x00s.", id="segments that are the whole"),
        pytest.param(pickle.dumps({"segments": 1}), id="other data"),
        pytest.param(pickle.dumps([1, 2, 3]), id="a list of numbers"),
        pytest.param(pickle.dumps({"weights": [0.5]}), id="a state dict"),
        pytest.param(b"\x80\x04", id="cut behind the head"),
        pytest.param(b"\x80\x04.", id="nothing"),
    ],
)
def test_hostile_pickles_end_in_one_line(tmp_path: Path, hostile: bytes) -> None:
    path = tmp_path / "x.pickle"
    path.write_bytes(hostile)
    refused("memory", path)


def test_devices_are_as_many_as_a_machine_has(tmp_path: Path) -> None:
    """References to one list take two bytes each; numbers of segments are limited, too."""
    taken = built.snapshot(built.training())
    path = built.pickled(tmp_path, {**taken, "device_traces": [[]] * 2000})
    assert "more devices than any machine" in refused("memory", path)
    for number in (-1, 1024):
        taken["segments"][0]["device"] = number
        assert "impossible values" in refused("memory", built.pickled(tmp_path, taken))


def test_bombs_of_references_are_read_once(tmp_path: Path) -> None:
    """A list of frames that all events share is read once, however long."""
    taken = built.snapshot(built.training(steps=50))
    frame = {"name": "f", "filename": "f.py", "line": 1}
    shared = [frame] * 1_000_000
    for event in taken["device_traces"][0]:
        event["frames"] = shared
    read = snapshot.read(built.pickled(tmp_path, taken))
    assert len(read.stack(int(read.events[0].stack[0]))) == 256


def test_a_cycle_inside_a_snapshot_is_refused(tmp_path: Path) -> None:
    """Frames cannot contain themselves."""
    taken = built.snapshot(built.training())
    loop: list[Any] = []
    loop.append(loop)
    taken["device_traces"][0][0]["frames"] = loop
    refused("memory", built.pickled(tmp_path, taken))


@pytest.mark.slow
def test_a_truncated_snapshot_is_refused(tmp_path: Path) -> None:
    whole = pickle.dumps(built.snapshot(built.training()))
    path = tmp_path / "x.pickle"
    for length in (3, 11, 12, len(whole) // 3, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:length])
        refused("memory", path)
    path.write_bytes(whole[: len(whole) // 2])
    assert "cut short" in refused("memory", path)


@pytest.mark.parametrize("part", ["blocks", "segments", "device_traces", "taken"])
def test_objects_referenced_too_often_are_refused(
    tmp_path: Path, part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reference of 2 bytes stands for no block of 200, and for no list of all events."""
    taken: dict[str, Any] = built.snapshot(built.training(400))
    if part == "blocks":
        taken["segments"][0]["blocks"] *= 1000
    else:
        name = "device_traces" if part == "taken" else part
        taken[name] = [taken[name][0]] * 100
    path = built.pickled(tmp_path, taken)
    assert "many" in refused("memory", path).partition(path.name)[2]
    if part == "taken":  # the list is empty before the end
        monkeypatch.setattr(unpickle, "_AT_ONCE", 1 << 10)
        monkeypatch.setattr(unpickle, "_MIN_EVENTS", 10)
        snapshot, source = unpickle._load(io.BytesIO(path.read_bytes()))
        snapshot["device_traces"][0].clear()
        with pytest.raises(unpickle._RefusedError, match="many times"):
            unpickle._columns(snapshot, source)


def _columns(data: bytes, *, early: bool) -> dict[str, list[int]]:
    """Read columns; `early`: some events have to be taken out before the end."""
    snapshot, source = unpickle._load(io.BytesIO(data))
    assert any(len(events.columns["action"]) for events in source.taken.values()) == early
    _, out = unpickle._columns(snapshot, source)
    return {name: column.tolist() for name, column in out.arrays}


@pytest.mark.long
def test_streamed_events_equal_those_read_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = built.training(400, leak=100), built.training(300)
    other.number = 1
    taken = built.snapshot(one, other)
    for order in (list(taken), list(reversed(taken))):
        data = pickle.dumps({key: taken[key] for key in order})
        monkeypatch.setattr(unpickle, "_AT_ONCE", 1 << 40)
        expected = _columns(data, early=False)
        monkeypatch.setattr(unpickle, "_AT_ONCE", 1 << 10)
        monkeypatch.setattr(unpickle, "_MIN_EVENTS", 10)
        assert _columns(data, early=True) == expected
    assert len(expected["events.0.action"]) == len(one.events)
    assert max(expected["blocks.stack"]) >= 0


@pytest.mark.slow
def test_sums_cannot_overflow(tmp_path: Path) -> None:
    device = built.Device()
    for _ in range(40_000):
        device.alloc(1 << 47)
    refused("memory", built.write(tmp_path / "x.pickle", device))


def test_the_memory_and_time_for_reading_grow_with_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    """A GiB plus 16 bytes per byte of the file; a minute plus a second per 4 MB."""
    limits: dict[str, tuple[int, int]] = {}
    system = SimpleNamespace(
        RLIMIT_AS="memory", RLIMIT_CPU="seconds", RLIMIT_CORE="core", setrlimit=limits.__setitem__
    )
    monkeypatch.setattr(unpickle, "resource", system)
    path = tmp_path / "x.pickle"
    path.write_bytes(bytes(8_000_000))
    assert unpickle.main(str(path)) == 0
    assert b'"error": "bad"' in capfdbinary.readouterr().out
    memory = (1 << 30) + 16 * 8_000_000
    assert limits == {"memory": (memory, memory), "seconds": (62, 62), "core": (0, 0)}


def test_segments_of_older_torch_lack_what_it_did_not_record() -> None:
    """They are on the only device, of unknown sums and kind."""
    taken = built.snapshot(built.training(), built.training())
    new, old = taken["segments"]
    new |= {"device": 1, "segment_type": "small", "is_expandable": True}
    sums = new["allocated_size"], new["active_size"]
    for key in ("device", "allocated_size", "active_size", "segment_type", "is_expandable"):
        del old[key]
    segments = built.parsed(taken).segments
    assert segments.device.tolist() == [1, 0]
    assert segments.allocated_bytes.tolist() == [sums[0], -1]
    assert segments.active_bytes.tolist() == [sums[1], -1]
    assert segments.small.tolist() == segments.expandable.tolist() == [True, False]
