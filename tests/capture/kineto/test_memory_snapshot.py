"""`pyprof capture --memory`: memory events in the trace, and torch's snapshot next to it."""

import os
import pickle
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from pyprof.allocations import read
from pyprof.capture.kineto import memory_snapshot
from pyprof.commands.capture import print_outcome
from pyprof.process.overwrite_guard import snapshot_beside
from tests.allocations import built
from tests.capture.conftest import Capture
from tests.commands import run
from tests.known import known, raising

TRAIN = """
import torch
model = torch.nn.Linear(64, 32)
optimizer = torch.optim.Adam(model.parameters())
for step in range(5):
    optimizer.zero_grad()
    loss = model(torch.ones(16, 64)).sum()
    loss.backward()
    optimizer.step()
"""


def test_a_run_on_the_cpu_records_memory(
    capture: Capture, capsys: pytest.CaptureFixture[str]
) -> None:
    outcome = capture(TRAIN, memory=True)
    assert outcome.path is not None
    (device,) = read.read(outcome.path).devices
    labels = device.history.labels
    assert "Linear" in labels["layer"].names
    assert {name.rpartition("/")[2] for name in labels["line"].names} >= {"train.py:7"}
    assert device.steps[0] == "Optimizer.step"
    assert len(device.steps[1]) == 5
    assert device.notes == ()
    assert not snapshot_beside(outcome.path).exists()  # of GPUs only
    assert "Linear" in run("memory", outcome.path).stdout
    print_outcome(outcome)
    assert f"next: pyprof memory {outcome.path}\n" in capsys.readouterr().err


@pytest.mark.slow
def test_memory_is_recorded_only_on_request(capture: Capture) -> None:
    """It costs time and memory."""
    outcome = capture(TRAIN)
    assert outcome.recordings == ()
    assert "no memory was recorded" in run("memory", known(outcome.path)).stderr


class _Gpu:
    """Stands for torch's allocator of a GPU."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, ranges: bool = True) -> None:
        self.asked: list[dict[str, Any]] = []
        self._ranges = ranges
        monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
        monkeypatch.setattr(torch.cuda, "_lazy_call", lambda call: call())
        monkeypatch.setattr(torch.cuda.memory, "_record_memory_history", self.record)
        monkeypatch.setattr(torch.cuda.memory, "_dump_snapshot", self.dump)

    def record(self, **how: object) -> None:
        if not self._ranges and "global_record_annotations" in how:
            raise TypeError("unexpected keyword")
        self.asked.append(how)

    def dump(self, name: str) -> None:
        Path(name).write_bytes(pickle.dumps(built.snapshot(built.training())))


@pytest.mark.slow
def test_a_snapshot_lies_beside_the_trace(
    capture: Capture, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    gpu = _Gpu(monkeypatch)
    for _ in range(2):
        outcome = capture(TRAIN, memory=True)
    assert outcome.path is not None
    path = snapshot_beside(outcome.path)
    assert path.name == "net.memory.pickle"
    assert read.read(path).devices[0].history.peak > 0
    assert outcome.recordings == (path,)
    assert gpu.asked[0]["max_entries"] > 0
    assert "earlier run" not in capsys.readouterr().err
    for number, old in enumerate(["net.memory.pickle.old", "net.memory.pickle.old1"]):
        outcome.path.unlink()
        path.write_bytes(b"%d" % number)
        capture(TRAIN, memory=True)
        assert path.with_name(old).read_bytes() == b"%d" % number
        assert f"was of an earlier run: it is {path.with_name(old)} now" in capsys.readouterr().err
        assert read.read(path).devices[0].history.peak > 0


@pytest.mark.long
def test_a_snapshot_of_an_earlier_run_is_set_aside(
    capture: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise it would seem to be of a run without --memory."""
    with monkeypatch.context() as with_gpu:
        _Gpu(with_gpu)
        outcome = capture(TRAIN, memory=True)
    assert outcome.path is not None
    snapshot = snapshot_beside(outcome.path)
    content = snapshot.read_bytes()
    os.utime(snapshot, (1, 1))
    outcome = capture(TRAIN)
    assert not snapshot.exists()
    assert snapshot.with_name("net.memory.pickle.old").read_bytes() == content
    assert any("was of an earlier run" in note for note in outcome.notes)
    assert "Memory\n" not in run("summary", str(outcome.path)).stdout
    assert not any("earlier" in note for note in capture(TRAIN).notes)


@pytest.mark.parametrize(
    "name",
    ["net.pt.trace.json.gz", "net.pt.trace.json", "net.json", "net.json.gz", "net.sqlite",
     "net.nsys-rep"],
)  # fmt: skip
def test_a_snapshot_is_found_beside_captures_of_all_sorts(name: str) -> None:
    assert snapshot_beside(Path("x") / name) == Path("x/net.memory.pickle")


def test_an_older_torch_records_no_ranges(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gpu = _Gpu(monkeypatch, ranges=False)
    memory_snapshot.begin()
    assert [sorted(how) for how in gpu.asked] == [["max_entries"]]
    monkeypatch.delattr(torch.cuda.memory, "_record_memory_history")
    monkeypatch.delattr(torch.cuda.memory, "_dump_snapshot")
    memory_snapshot.begin()
    assert memory_snapshot.write(tmp_path / "x.memory.pickle") == ""
    assert [*tmp_path.iterdir()] == []


def test_a_snapshot_that_fails_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _Gpu(monkeypatch)

    def full(name: str) -> None:
        Path(name).write_bytes(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(torch.cuda.memory, "_dump_snapshot", full)
    assert "No space left" in memory_snapshot.write(tmp_path / "x.memory.pickle")
    assert [*tmp_path.iterdir()] == []


def test_a_trace_is_kept_if_its_snapshot_cannot_be_written(
    capture: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    _Gpu(monkeypatch)
    full = raising(OSError(28, "No space left on device"))
    monkeypatch.setattr(torch.cuda.memory, "_dump_snapshot", full)
    outcome = capture(TRAIN, memory=True)
    assert known(outcome.path).is_file()
    assert outcome.code == 0
    (note,) = [note for note in outcome.notes if "snapshot is lost" in note]
    assert note.endswith("net.memory.pickle: No space left on device; the memory snapshot is lost")
