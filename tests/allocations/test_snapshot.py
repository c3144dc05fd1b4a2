"""Snapshots are read as plain data: nothing is executed, nothing hostile takes memory or time."""

import io
import os
import pickle
from pathlib import Path
from typing import Any

import pytest

from pyprof.allocations import snapshot, unpickle
from tests.allocations import built
from tests.commands import run


class _Runs:
    def __init__(self, path: Path) -> None:
        self._path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self._path),)


def _refused(path: Path) -> str:
    done = run("memory", path)
    assert (done.code, done.stdout) == (1, "")
    assert done.stderr.startswith(f"pyprof: {path}: ")
    assert done.stderr.count("\n") == 1
    return done.stderr


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_every_protocol_is_read(tmp_path: Path, protocol: int) -> None:
    """Python's default changed over time, and users pickle again."""
    path = tmp_path / "x.pickle"
    path.write_bytes(pickle.dumps(built.snapshot(built.training()), protocol))
    read = snapshot.read(path)
    assert len(read.events[0]) == len(built.training().events)


@pytest.mark.parametrize("protocol", [2, 4])
def test_nothing_is_executed(tmp_path: Path, protocol: int) -> None:
    """A class or function anywhere in the file is refused, and named."""
    made = tmp_path / "made"
    taken = built.snapshot(built.training())
    taken["device_traces"][0][3]["frames"] = _Runs(made)
    path = tmp_path / "x.pickle"
    path.write_bytes(pickle.dumps(taken, protocol))
    assert "mkdir, which is not run" in _refused(path)
    assert not made.exists()


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
    """Whatever else a pickle holds, it costs one line."""
    path = tmp_path / "x.pickle"
    path.write_bytes(hostile)
    _refused(path)


def test_devices_are_as_many_as_a_machine_has(tmp_path: Path) -> None:
    """References to one list take two bytes each; numbers of segments are bounded, too."""
    taken = built.snapshot(built.training())
    path = tmp_path / "x.pickle"
    path.write_bytes(pickle.dumps({**taken, "device_traces": [[]] * 2000}))
    assert "more devices than any machine" in _refused(path)
    for number in (-1, 1024):
        taken["segments"][0]["device"] = number
        path.write_bytes(pickle.dumps(taken))
        assert "impossible values" in _refused(path)


def test_stacks_that_differ_in_between_stay_apart(tmp_path: Path) -> None:
    """Stacks are compared in full, also where their ends are the same; equal ones are one."""
    outer, inner, middle, one, other = built.frames(*map(built.user, range(5)))
    stacks = [[inner, one, middle, outer, outer], [inner, other, middle, outer, outer]] * 3
    device = built.Device()
    for stack in stacks:
        device.alloc(512)
        device.events[-1]["frames"] = stack
    read = snapshot.read(built.write(tmp_path / "x.pickle", device))
    lines = [[frame.line for frame in read.stack(number)] for number in read.events[0].stack]
    assert lines == [[1, 3, 2, 0, 0], [1, 4, 2, 0, 0]] * 3
    assert len(set(read.events[0].stack.tolist())) == 2


def test_bombs_of_references_are_read_once(tmp_path: Path) -> None:
    """A list of frames that all events share is looked at once, however long."""
    taken = built.snapshot(built.training(steps=50))
    frame = {"name": "f", "filename": "f.py", "line": 1}
    shared = [frame] * 1_000_000
    for event in taken["device_traces"][0]:
        event["frames"] = shared
    path = tmp_path / "x.pickle"
    path.write_bytes(pickle.dumps(taken))
    read = snapshot.read(path)
    assert len(read.stack(int(read.events[0].stack[0]))) == 256


def test_a_cycle_inside_a_snapshot_is_one_line(tmp_path: Path) -> None:
    """Frames that hold themselves are no frames."""
    taken = built.snapshot(built.training())
    loop: list[Any] = []
    loop.append(loop)
    taken["device_traces"][0][0]["frames"] = loop
    path = tmp_path / "x.pickle"
    path.write_bytes(pickle.dumps(taken))
    _refused(path)


def test_a_truncated_snapshot_is_one_line(tmp_path: Path) -> None:
    whole = pickle.dumps(built.snapshot(built.training()))
    path = tmp_path / "x.pickle"
    for length in (3, 11, 12, len(whole) // 3, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:length])
        _refused(path)
    path.write_bytes(whole[: len(whole) // 2])
    assert "cut short" in _refused(path)


@pytest.mark.parametrize(
    ("where", "value"),
    [
        ("addr", -5), ("addr", 1 << 63), ("size", -1), ("size", 1 << 60), ("time_us", 1 << 62),
        ("size", "large"), ("addr", None), ("time_us", 1.5), ("action", ["alloc"]),
        ("frames", "main"), ("frames", [None]), ("frames", [{"name": 1}]),
    ],
)  # fmt: skip
def test_impossible_values_are_one_line(tmp_path: Path, where: str, value: object) -> None:
    """What no allocator writes is not reckoned with."""
    taken = built.snapshot(built.training())
    taken["device_traces"][0][1][where] = value
    path = tmp_path / "x.pickle"
    path.write_bytes(pickle.dumps(taken))
    _refused(path)


@pytest.mark.parametrize(
    ("where", "value"),
    [
        ("device", -1), ("device", 1 << 30), ("allocated_size", -5), ("allocated_size", 1 << 41),
        ("active_size", 1 << 62), ("total_size", 1 << 20), ("address", 1 << 20),
    ],
)  # fmt: skip
def test_segments_that_cannot_be_are_one_line(tmp_path: Path, where: str, value: int) -> None:
    """What is in use is inside of a segment, and no more than that; devices have small numbers."""
    taken = built.snapshot(built.training())
    taken["segments"][0][where] = value
    path = tmp_path / "x.pickle"
    path.write_bytes(pickle.dumps(taken))
    _refused(path)


@pytest.mark.parametrize("free", [0, 1 << 40, -7, 1 << 62])
def test_a_request_for_anything_is_an_out_of_memory(tmp_path: Path, free: int) -> None:
    """A program can ask for 2^62 bytes: it gets none. What a device has free is bounded."""
    device = built.training()
    device.oom(1 << 62, free)
    path = built.write(tmp_path / "x.pickle", device)
    if not 0 <= free <= 1 << 40:
        _refused(path)
        return
    done = run("memory", path)
    assert (done.code, done.stderr) == (0, "")
    assert "asked for" in done.stdout


@pytest.mark.parametrize("part", ["blocks", "segments", "device_traces", "taken", "devices"])
def test_what_is_named_many_times_is_refused(
    tmp_path: Path, part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reference of 2 bytes is no block of 200, and no list of all events."""
    taken: dict[str, Any] = built.snapshot(built.training(400))
    if part == "blocks":
        taken["segments"][0]["blocks"] *= 1000
    elif part == "devices":
        taken["device_traces"] = [[] for _ in range(100_000)]
    else:
        name = "device_traces" if part == "taken" else part
        taken[name] = [taken[name][0]] * 100
    path = tmp_path / "x.pickle"
    path.write_bytes(pickle.dumps(taken))
    assert "many" in _refused(path)
    if part == "taken":  # the list is empty before the end
        monkeypatch.setattr(unpickle, "_AT_ONCE", 1 << 10)
        monkeypatch.setattr(unpickle, "_FEW", 10)
        snapshot, source = unpickle._load(io.BytesIO(path.read_bytes()))
        snapshot["device_traces"][0].clear()
        with pytest.raises(unpickle._RefusedError, match="many times"):
            unpickle._columns(snapshot, source)


@pytest.mark.parametrize("target", ["x.txt", "x.json", "x.csv", "x.html"])
def test_texts_that_are_no_unicode_are_written(tmp_path: Path, target: str) -> None:
    """Pickles hold lone surrogates, and whatever else."""
    device = built.Device()
    device.range("\ud800 \x1b[31m", begins=True)
    device.alloc(100, ("f", "/home/\udfff/a.py", 1))
    path = built.write(tmp_path / "x.pickle", device)
    done = run("memory", path, "-o", tmp_path / target)
    assert (done.code, done.stderr) == (0, "")


def _columns(data: bytes, *, early: bool) -> dict[str, list[int]]:
    """Read columns; `early`: some events have to be taken out before the end."""
    snapshot, source = unpickle._load(io.BytesIO(data))
    assert any(len(events.columns["action"]) for events in source.taken.values()) == early
    _, out = unpickle._columns(snapshot, source)
    return {name: column.tolist() for name, column in out.arrays}


def test_events_that_are_taken_out_as_they_come(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give the same columns as those that are read at once; stacks of blocks stay."""
    one, other = built.training(400, leak=100), built.training(300)
    other.number = 1
    taken = built.snapshot(one, other)
    for order in (list(taken), list(reversed(taken))):
        data = pickle.dumps({key: taken[key] for key in order})
        monkeypatch.setattr(unpickle, "_AT_ONCE", 1 << 40)
        expected = _columns(data, early=False)
        monkeypatch.setattr(unpickle, "_AT_ONCE", 1 << 10)
        monkeypatch.setattr(unpickle, "_FEW", 10)
        assert _columns(data, early=True) == expected
    assert len(expected["events.0.action"]) == len(one.events)
    assert max(expected["blocks.stack"]) >= 0


def test_sums_cannot_overflow(tmp_path: Path) -> None:
    """Sizes are bounded together, too."""
    device = built.Device()
    for _ in range(40_000):
        device.alloc(1 << 47)
    _refused(built.write(tmp_path / "x.pickle", device))


def test_older_forms_are_read(tmp_path: Path) -> None:
    """A list of segments alone; blocks without addresses, with a history of their stacks."""
    segment = built.training().segment()
    for block in segment["blocks"]:
        size, stack = block.pop("requested_size"), block.pop("frames")
        del block["address"]
        if block["state"] == "active_allocated":
            block["history"] = [{"addr": 0, "real_size": size, "frames": stack}]
    path = tmp_path / "x.pickle"
    path.write_bytes(pickle.dumps([segment]))
    done = run("memory", path)
    assert done.code == 0, done.stderr
    assert "Peak: 12.6 MB allocated before the first event" in done.stdout
    assert "no events were recorded" in done.stdout


def test_a_file_that_changes_while_it_is_read_is_warned_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program may go on to write it."""
    path = built.write(tmp_path / "x.pickle", built.training())
    unpickled = snapshot._unpickled

    def changing(path: Path) -> memoryview:
        content = unpickled(path)
        built.write(path, built.training(9))
        return content

    monkeypatch.setattr(snapshot, "_unpickled", changing)
    done = run("memory", path)
    assert done.code == 0
    assert "the file changed while it was read" in done.stderr
