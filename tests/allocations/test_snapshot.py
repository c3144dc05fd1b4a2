"""Snapshots of every age are read in full, and impossible values are refused."""

from pathlib import Path

import pytest

from pyprof.allocations import snapshot
from tests.allocations import built
from tests.commands import printed, refused, run


def test_stacks_are_compared_in_full(tmp_path: Path) -> None:
    """Even if their ends are the same; equal stacks are one."""
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


EVENT = [
    ("addr", -5), ("addr", 1 << 63), ("size", -1), ("size", 1 << 60), ("time_us", 1 << 62),
    ("size", "large"), ("addr", None), ("time_us", 1.5), ("action", ["alloc"]), ("frames", "main"),
    ("frames", [None]), ("frames", [{"name": 1}]),
]  # fmt: skip
SEGMENT = [
    ("device", -1), ("device", 1 << 30), ("allocated_size", -5), ("allocated_size", 1 << 41),
    ("active_size", 1 << 62), ("total_size", 1 << 20), ("address", 1 << 20),
]  # fmt: skip


@pytest.mark.parametrize(
    ("part", "where", "value"),
    [
        *(pytest.param("event", *each, marks=pytest.mark.slow) for each in EVENT),
        *(("segment", *each) for each in SEGMENT),
    ],
)
def test_impossible_values_are_refused(
    tmp_path: Path, part: str, where: str, value: object
) -> None:
    taken = built.snapshot(built.training())
    changed = taken["device_traces"][0][1] if part == "event" else taken["segments"][0]
    changed[where] = value
    refused("memory", built.pickled(tmp_path, taken))


@pytest.mark.parametrize("target", ["x.txt", "x.json", "x.csv", "x.html"])
def test_invalid_unicode_is_written(tmp_path: Path, target: str) -> None:
    """Pickles hold lone surrogates and more."""
    device = built.Device()
    device.range("\ud800 \x1b[31m", begins=True)
    device.alloc(100, ("f", "/home/\udfff/a.py", 1))
    path = built.write(tmp_path / "x.pickle", device)
    printed("memory", path, "-o", tmp_path / target)


def test_older_forms_are_read(tmp_path: Path) -> None:
    segment = built.training().segment()
    for block in segment["blocks"]:
        size, stack = block.pop("requested_size"), block.pop("frames")
        del block["address"]
        if block["state"] == "active_allocated":
            block["history"] = [{"addr": 0, "real_size": size, "frames": stack}]
    shown = printed("memory", built.pickled(tmp_path, [segment]))
    assert "Peak: 12.6 MB allocated before the first event" in shown
    assert "no events were recorded" in shown


def test_a_file_that_changes_while_it_is_read_is_warned_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = built.write(tmp_path / "x.pickle", built.training())
    unpickled = snapshot._unpickle

    def changing(path: Path) -> memoryview:
        content = unpickled(path)
        built.write(path, built.training(9))
        return content

    monkeypatch.setattr(snapshot, "_unpickle", changing)
    done = run("memory", path)
    assert done.code == 0
    assert "the file changed while it was read" in done.stderr
