"""The recorder if torch's profiler fails, or an older torch's would."""

import re
import warnings
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from pathlib import Path

from pyprof.capture.kineto import recorder as recorders
from pyprof.capture.kineto.recorder import Recorder
from pyprof.capture.request import StepsToRecord
from pyprof.readers import kineto
from tests.capture.conftest import Capture
from tests.known import known
from tests.texts import texts

RANGE = """
import pyprof, torch
torch.ones(2).exp()
with pyprof.profile():
    torch.ones(3).tanh()
print("to the end")
"""
STEPS = """
import pyprof, torch
for step in range(4):
    torch.ones(3).tanh()
    pyprof.step()
"""
_COMPLAINT = re.compile(r"disableProfiler|cancel", re.IGNORECASE)
"""Torch's message about a profiler that was prepared and never started, and Kineto's."""


def test_torchs_warning_of_several_cycles_is_not_shown(
    capture: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Warnings are errors here: it would end the recording."""
    prepare = torch.profiler.profile.prepare_trace

    def warn(self: Any) -> None:  # noqa: ANN401 - torch's profiler
        warnings.warn("Warning: Profiler clears events at the end of each cycle.", stacklevel=2)
        prepare(self)

    monkeypatch.setattr(torch.profiler.profile, "prepare_trace", warn)
    outcome = capture(RANGE)
    assert outcome.path is not None
    assert not [note for note in outcome.notes if "failed" in note]


@pytest.mark.parametrize("step", ["prepare_trace", "start_trace", "stop_trace"])
def test_a_profiler_that_fails_leaves_the_script_alone(
    step: str, capture: Capture, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    theirs = getattr(torch.profiler.profile, step)

    def fails(profiler: object) -> None:
        if step != "prepare_trace":
            theirs(profiler)
        if step == "start_trace":  # nothing of it is left
            torch.profiler.profile.stop_trace(profiler)
        raise RuntimeError("Python replay stack\nis empty.")

    monkeypatch.setattr(torch.profiler.profile, step, fails)
    outcome = capture(RANGE, instrument=False)
    assert capsys.readouterr().out == "to the end\n"
    assert outcome.path is None
    lost = "torch.profiler failed, and what it had recorded is lost: Python replay stack is empty."
    assert [note for note in outcome.notes if "failed" in note] == [lost]


@pytest.mark.slow
def test_steps_that_end_while_it_warms_up(
    capture: Capture, capfd: pytest.CaptureFixture[str]
) -> None:
    for _ in range(2):
        outcome = capture(STEPS, steps=StepsToRecord(0, 1, 1, 0))
        known(outcome.path).unlink()
    assert not _COMPLAINT.search(capfd.readouterr().err)


def test_a_scripts_profiler_while_it_warms_up(
    capture: Capture, capfd: pytest.CaptureFixture[str]
) -> None:
    script = """
import pyprof, torch
pyprof.step()
with torch.profiler.profile() as theirs:
    torch.ones(3).tanh()
print(len([event for event in theirs.events() if event.name == "aten::tanh"]))
pyprof.step()
torch.ones(3).sin()
"""
    outcome = capture(script, steps=StepsToRecord(1, 1, 1))
    out, err = capfd.readouterr()
    assert out == "1\n"
    assert not _COMPLAINT.search(err)
    assert outcome.path is not None


@pytest.mark.parametrize(
    ("script", "options", "lines"),
    [
        (STEPS, {}, False),
        (STEPS, {"whole": True}, True),
        (STEPS, {"steps": StepsToRecord(0, 1, 1)}, True),
        (RANGE, {}, True),
    ],
    ids=["provisional", "whole", "steps", "range"],
)
def test_stacks_of_older_torch(
    script: str, options: dict[str, Any], lines: bool,  # noqa: FBT001
    capture: Capture, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """A recording that a range may end has none there; a note says so if it is kept."""
    monkeypatch.setattr(recorders, "STACKS_FROM_ANYWHERE", False)
    outcome = capture(script, instrument=False, **options)
    shown = texts(kineto.read(known(outcome.path)).ranges)
    assert any("train.py" in text for text in shown) is lines
    assert any("no source lines" in note for note in outcome.notes) is not lines


def test_a_profiler_of_older_torch_after_anothers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Calls that the other saw begin may end in the next recording, which has no stacks."""
    monkeypatch.setattr(recorders, "STACKS_FROM_ANYWHERE", False)
    recorder = Recorder(stacks=True, rank=lambda: None)
    recorder.start()
    recorder.pause()
    recorder.resume()
    torch.ones(3).tanh()
    recorder.stop()
    assert recorder.lacks_stacks
    assert recorder.windows == 2
    assert recorder.write(tmp_path / "net.pt.trace.json.gz")
