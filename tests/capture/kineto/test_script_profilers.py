"""A script's own torch.profiler pauses ours, and its traces are part of the capture."""

import tempfile
from pathlib import Path
from types import SimpleNamespace

import pytest

torch = pytest.importorskip("torch")

from pyprof import marker
from pyprof.capture.kineto.script_profilers import ScriptTrace
from pyprof.readers import kineto
from tests.capture.conftest import Capture
from tests.capture.kineto.captured import ran, rows, texts
from tests.texts import texts as texts_of

OWN = """
import os, torch, warnings
warnings.simplefilter("ignore")  # that events are cleared
os.chdir(FOLDER)
def export(profiler):
    global keys
    keys = {event.key for event in profiler.key_averages()}
    profiler.export_chrome_trace(f"own_{profiler.step_num}.json")
schedule = torch.profiler.schedule(wait=1, warmup=1, active=1, repeat=2)
with torch.profiler.profile(
    activities=[torch.profiler.ProfilerActivity.CPU], schedule=schedule, on_trace_ready=export
) as profiler:
    for step in range(8):
        torch.addmm(torch.ones(2), torch.ones(step + 1, 3), torch.ones(3, 2))
        profiler.step()
assert all(key.startswith(("aten::", "ProfilerStep")) for key in keys), keys
"""

SINGLE = ("aten::sin", "aten::tanh")
ALONE = """
import sys, torch
for op in (torch.sin, torch.tanh):
    with torch.PROFILER as profiler:
        op(torch.ones(3))
    EXPORT
"""


def test_script_with_its_own_profiler(capture: Capture) -> None:
    text = """
import sys, torch
torch.ones(3).tanh()
with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profiler:
    torch.ones(3).sin()
sys.exit(sum(event.name == "aten::sin" for event in profiler.events()))
"""
    outcome = capture(text, whole=True)
    assert outcome.code == 1
    (note,) = (note for note in outcome.notes if "its own torch.profiler" in note)
    assert "is part of this capture, without shapes (record_shapes=True) and source" in note
    assert ran(outcome) == {"tanh", "sin"}


def test_steps_of_the_scripts_own_profiler(capture: Capture, here: Path) -> None:
    elsewhere = here / "elsewhere"
    elsewhere.mkdir()
    outcome = capture(OWN.replace("FOLDER", repr(str(elsewhere))))
    assert outcome.code == 0
    found = texts(outcome)
    assert rows(found, "aten::addmm") == [1, 4, 7, 8]  # where shapes were recorded
    named = [marker.decode_seq(text).name for text in found]
    assert named.count("aten::addmm") == 6  # none is of the steps in which a profiler warmed up
    theirs = texts_of(kineto.read(elsewhere / "own_6.json").ranges)
    assert not any(marker.decode_trace(text) for text in theirs)


@pytest.mark.slow
def test_a_profiler_that_is_stopped_twice(capture: Capture) -> None:
    """That would end ours, and torch would crash later. Both continue."""
    outcome = capture("""
import contextlib, torch
profiler = torch.autograd.profiler.profile(use_kineto=True)
with profiler:
    torch.ones(3).sin()
torch.ones(3).tanh()
with contextlib.suppress(RuntimeError):  # which older torch raises
    profiler.__exit__(None, None, None)
torch.ones(3).cos()
""")
    assert ran(outcome) == {"sin", "tanh", "cos"}


@pytest.mark.few(1)
@pytest.mark.parametrize("asked", [True, False])
def test_markers_in_the_scripts_own_profile(capture: Capture, asked: bool) -> None:  # noqa: FBT001
    text = """
import sys, pyprof, torch
INIT
with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profiler:
    torch.ones(3).sin()
sys.exit(sum("traceMarker" in event.key for event in profiler.key_averages()))
"""
    init = 'pyprof.init(emit="profiler")' if asked else ""
    assert capture(text.replace("INIT", init)).code == int(asked)


@pytest.mark.few(2)
@pytest.mark.slow
@pytest.mark.parametrize("export", ["pass", "profiler.export_chrome_trace(sys.argv[0] + '.json')"])
@pytest.mark.parametrize("profiler", ["profiler.profile()", "autograd.profiler.profile()"])
def test_a_script_with_only_its_own_profiler_is_captured(
    profiler: str, export: str, capture: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    outcome = capture(ALONE.replace("PROFILER", profiler).replace("EXPORT", export))
    assert outcome.exit_code() == 0
    found = [marker.decode_seq(text).name for text in texts(outcome)]
    assert [name for name in found if name in SINGLE] == [*SINGLE]
    if export != "pass":
        theirs = texts_of(kineto.read(tmp_path / "train.py.json").ranges)
        assert "aten::tanh" in {marker.decode_seq(text).name for text in theirs}
    assert not [*temporary.glob("*pyprof-*")]  # torch's compiler may leave its cache


def test_a_script_can_export_its_own_trace_once(capture: Capture) -> None:
    """Torch refuses a second time; ours does not take its place."""
    text = ALONE.replace("PROFILER", "profiler.profile()").replace("EXPORT", """
    profiler.export_chrome_trace(sys.argv[0] + ".json")
    try: profiler.export_chrome_trace(sys.argv[0] + ".json")
    except RuntimeError: continue
    sys.exit(7)
""")  # fmt: skip
    assert capture(text).code == 0


def test_a_trace_without_room_for_a_copy_remains_the_scripts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    profiler = SimpleNamespace(record_shapes=False, with_stack=False, kineto_results=None)
    trace, theirs, ours = ScriptTrace(profiler), tmp_path / "own.json", tmp_path / "net.json"
    theirs.write_text("{}")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "full"))
    trace.keep(theirs)
    trace.export_chrome_trace(str(ours))
    assert (theirs.read_text(), ours.read_text()) == ("{}", "{}")


def test_inductors_autotuning_is_not_captured(capture: Capture) -> None:
    """It times kernels with profilers of its own."""
    outcome = capture("""
import torch
def timed():
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]):
        torch.ones(3).sin()
exec(timed.__code__, {"__name__": "torch._inductor.utils", "torch": torch})
torch.ones(3).tanh()
""")
    assert ran(outcome) == {"tanh"}


def test_own_profiler_outside_of_the_range(capture: Capture) -> None:
    outcome = capture("""
import pyprof, torch
with pyprof.profile():
    torch.ones(3).tanh()
with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]):
    torch.ones(3).sin()
""")
    assert ran(outcome) == {"tanh"}
    assert any("was not exported" in note for note in outcome.notes)


@pytest.mark.few(1)
@pytest.mark.parametrize("before", [True, False])
def test_range_within_the_scripts_own_profiler(capture: Capture, before: bool) -> None:  # noqa: FBT001
    text = """
import sys, pyprof, torch
if BEFORE:
    with pyprof.profile():
        torch.ones(3).tanh()
with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profiler:
    torch.ones(3).sin()
    with pyprof.profile():
        torch.ones(3).cos()
sys.exit(sum(event.name in {"aten::sin", "aten::cos"} for event in profiler.events()))
"""
    outcome = capture(text.replace("BEFORE", str(before)))
    assert outcome.code == 2
    assert ran(outcome) == {"sin", "cos", *(["tanh"] if before else [])}
    assert any("its own torch.profiler" in note for note in outcome.notes)
