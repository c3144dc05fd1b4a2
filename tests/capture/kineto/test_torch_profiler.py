"""Captures by torch.profiler in the script's own process, on the CPU."""

import errno
import gzip
import json
import os
import re
import signal
import sys
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import pyprof
from pyprof import marker
from pyprof.analysis.time.timeline import timeline
from pyprof.capture.kineto import torch_profiler, trace_file
from pyprof.capture.kineto.recorder import ALL_THREADS
from pyprof.capture.kineto.trace_file import join_trace_windows
from pyprof.capture.nsight import nsys_capture
from pyprof.capture.request import Outcome, Request, StepsToRecord
from pyprof.capture.script import Target
from pyprof.errors import PyprofError
from pyprof.parse import parse_file
from pyprof.process import signals
from tests.capture.conftest import Capture
from tests.capture.kineto.captured import (
    TRAIN,
    WAIT_FOR_THE_GUARD,
    WINDOWS,
    grow_at_once,
    ran,
    rows,
    texts,
)
from tests.known import known, raising


@pytest.mark.slow
def test_a_whole_run_has_all_steps(capture: Capture) -> None:
    outcome = capture(TRAIN, whole=True)
    assert outcome.code == 0
    found = texts(outcome)
    assert rows(found, "aten::addmm") == [4, 5, 6, 7, 8, 9]
    assert marker.decode_trace(next(t for t in found if "linear" not in t and "trace" in t))
    assert any(t.startswith("layer:") for t in found)
    traces = {frames for text in found if (frames := marker.decode_trace(text))}
    assert {frames[0].rpartition("/")[2].partition(":")[0] for frames in traces} == {"train.py"}


def test_only_the_scripts_range_is_captured(capture: Capture) -> None:
    text = """
import torch
import torch.cuda.profiler as profiler
with torch.autograd.profiler.emit_nvtx():
    torch.ones(2).exp()
    profiler.start()
    torch.ones(3).tanh()
    profiler.stop()
    torch.ones(4).sin()
"""
    assert ran(capture(text)) == {"tanh"}


SCHEDULE = """
import pyprof, torch
with pyprof.profile(schedule=torch.profiler.schedule(wait=1, warmup=1, active=2, repeat=2)):
    for step in range(12):
        torch.addmm(torch.ones(2), torch.ones(step + 1, 3), torch.ones(3, 2))
        pyprof.step()
"""


@pytest.mark.few(2)
@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "options", "steps"),
    [
        (SCHEDULE, {}, [2, 3, 6, 7]),
        (TRAIN, {"steps": StepsToRecord(1, 1, 2)}, [2, 3]),
        (TRAIN, {"steps": StepsToRecord(0, 1, 1, 2)}, [1, 3]),
        (TRAIN, {"steps": StepsToRecord(0, 1, 1, 0)}, [1, 3, 5]),
    ],
)
def test_windows_by_steps(
    capture: Capture, text: str, options: dict[str, Any], steps: list[int]
) -> None:
    found = texts(capture(text, **options))
    rows_of_first = 1 if text == SCHEDULE else 4
    assert rows(found, "aten::addmm") == [step + rows_of_first for step in steps]
    marks = [text for text in found if text.startswith("ProfilerStep")]
    assert marks == [f"ProfilerStep#{step}" for step in steps]


@pytest.mark.parametrize("instrument", [True, False])
def test_pauses_of_real_windows(capture: Capture, instrument: bool) -> None:  # noqa: FBT001
    path = known(capture(WINDOWS, instrument=instrument).path)
    found = parse_file(path)
    with gzip.open(path) as file:
        events = json.load(file)["traceEvents"]
    stop, begin = (
        next(event["ts"] for event in events if event["name"] == f"cudaProfiler{name}")
        for name in ("Stop", "Start")
    )
    start, end, window = (found.numpy(name) for name in ("start", "end", "window"))
    assert set(window.tolist()) == {0, 1}
    assert ((begin - stop) * 1000) <= start[window == 1].min() - end[window == 0].max()
    when = known(timeline(found))
    (device,) = when.devices
    assert device.windows == 2
    assert device.span_ns == sum(
        int(end[window == place].max() - start[window == place].min()) for place in (0, 1)
    )
    assert device.busy_ns + device.idle_ns == device.span_ns


THREE = """
import pyprof, torch
net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 2))
with pyprof.profile(schedule=torch.profiler.schedule(wait=0, warmup=1, active=1, repeat=3)):
    for step in range(6):
        net(torch.ones(step + 12, 3)).sum().backward()
        pyprof.step()
"""


def test_backward_ops_of_real_windows_are_of_their_own_forward_op(capture: Capture) -> None:
    outcome = capture(THREE)
    records = parse_file(known(outcome.path)).table().to_pylist()
    tied = [row for row in records if row["dir"] == "bprop" and row["fwdOp"]]
    batches = {
        (row["window"], size)
        for row in tied
        for text in row["fwdSeqMarker"]
        for size in re.findall(r"\b1\d\b", text)
    }
    assert batches == {(0, "13"), (1, "15"), (2, "17")}  # of steps 1, 3 and 5
    numbers = [[n for row in tied if row["window"] == w for n in row["seqId"]] for w in range(3)]
    assert max(numbers[0]) < min(numbers[1]) <= max(numbers[1]) < min(numbers[2])


def test_the_scripts_range_replaces_the_whole_run(capture: Capture) -> None:
    text = """
import pyprof, torch
torch.ones(2).exp()
with pyprof.profile():
    torch.ones(3).tanh()
"""
    outcome = capture(text)
    assert ran(outcome) == {"tanh"}
    assert any("the range that the script started" in note for note in outcome.notes)
    assert ran(capture(text, whole=True)) == {"tanh", "exp"}


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("text", "options", "said"),
    [
        (TRAIN, {"steps": StepsToRecord(9, 1, 1)}, "ended before step 10"),
        ("print(1)", {}, "ran no torch op"),
        ("import torch; torch.empty(3)[1:]", {}, "ran no torch op"),
    ],
)
def test_without_anything_captured_there_is_no_file(
    capture: Capture, text: str, options: dict[str, Any], said: str, tmp_path: Path
) -> None:
    outcome = capture(text, **options)
    assert outcome.path is None
    assert said in outcome.notes[-1]
    assert outcome.exit_code() == 1
    assert [path.name for path in tmp_path.iterdir()] == ["train.py"]


@pytest.mark.few(1)
@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        "# torch.profiler.profile, profiler.start()",
        "'with pyprof.profile():'",
        "from torch.profiler import profile",
        "if not torch: torch.cuda.profiler.start()",
    ],
)
def test_a_range_that_is_only_mentioned_changes_nothing(capture: Capture, text: str) -> None:
    outcome = capture(f"import torch\n{text}\ntorch.ones(3).tanh()")
    assert ran(outcome) == {"tanh"}
    assert any("which started no range" in note for note in outcome.notes)


@pytest.mark.slow
def test_a_range_after_too_much(capture: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    grow_at_once(monkeypatch)
    outcome = capture(f"""
import pyprof
{WAIT_FOR_THE_GUARD}
torch.ones(3).sin()
with pyprof.profile():
    torch.ones(3).cos()
""")
    assert ran(outcome) == {"cos"}


@pytest.mark.few(1)
@pytest.mark.parametrize(("end", "code"), [("raise ValueError", 1), ("import sys; sys.exit(3)", 3)])
def test_script_that_fails(capture: Capture, end: str, code: int) -> None:
    outcome = capture(f"import torch\ntorch.ones(3).tanh()\n{end}", whole=True)
    assert (outcome.code, ran(outcome)) == (code, {"tanh"})


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="signals of Unix")
def test_a_signal_while_the_file_is_written(
    capture: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*given: Any) -> bool:  # noqa: ANN401 - those of join
        os.kill(os.getpid(), signal.SIGTERM)
        return join_trace_windows(*given)

    monkeypatch.setattr(trace_file, "join_trace_windows", interrupted)
    with pytest.raises(signals.Ended), signals.ending():
        capture(TRAIN, whole=True)
    assert {path.name for path in tmp_path.iterdir()} == {"train.py", "net.pt.trace.json.gz"}
    assert parse_file(tmp_path / "net.pt.trace.json.gz").rows


@pytest.mark.few(1)
@pytest.mark.parametrize("place", ["everywhere", "beside", "target", "of the target's disk"])
def test_a_full_disk(
    place: str, capture: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fail = raising(OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)))
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))
    monkeypatch.setattr(
        trace_file, "_choose_folder", lambda it: it if place == "beside" else it / "tmp"
    )
    if place == "everywhere":
        monkeypatch.setattr(trace_file, "join_trace_windows", fail)
    elif place == "target":
        monkeypatch.setattr("shutil.copyfile", fail)
    outcome = capture(TRAIN, whole=True)
    there = {path.name for path in tmp_path.iterdir()}
    if place in ("beside", "of the target's disk"):
        target = tmp_path / "net.pt.trace.json.gz"
        assert (outcome.code, outcome.path) == (0, target)
        assert parse_file(target).rows
        assert there == {"train.py", "tmp", target.name}
        assert list((tmp_path / "tmp").iterdir()) == []
        return
    assert (outcome.code, there) == (1, {"train.py", "tmp"})
    assert "No space left on device; " in outcome.notes[0]
    assert (outcome.path is None) == (place == "everywhere")
    if outcome.path is not None:
        assert str(outcome.path) in outcome.notes[0]
        assert parse_file(outcome.path).rows


@pytest.mark.skipif(sys.platform == "win32", reason="links need rights there")
def test_a_capture_follows_a_link(capture: Capture, tmp_path: Path) -> None:
    link = tmp_path / "net.pt.trace.json.gz"
    link.symlink_to("real.gz")
    assert capture(TRAIN, whole=True).path == link
    assert link.is_symlink()
    assert parse_file(tmp_path / "real.gz").rows
    link.unlink()
    link.symlink_to(link.name)
    with pytest.raises(PyprofError, match="a link to itself"):
        capture(TRAIN, whole=True)


def test_without_init_stacks_and_modules_give_lines_and_layers(capture: Capture) -> None:
    found = texts(capture(TRAIN, whole=True, instrument=False))
    assert not any("'mod': 'torch'" in text for text in found)
    assert "layer:Linear_0" in found
    assert any("train.py" in text for text in found)


def test_ops_on_nested_tensors_cost_what_they_move(capture: Capture) -> None:
    """Their sizes are not recorded, but those of the calls inside are."""
    outcome = capture(
        "import torch\nparts = [torch.ones(5, 8), torch.ones(9, 8)]\n"
        "torch.nested.nested_tensor(parts, layout=torch.jagged).clone()\n"
    )
    frame = pyprof.load(known(outcome.path))
    (copied,) = frame[frame["op"] == "clone"]["bytes"]
    assert copied == 2 * 4 * (5 + 9) * 8


@pytest.mark.slow
def test_forked_workers(capture: Capture) -> None:
    text = """
import torch, warnings
warnings.simplefilter("ignore")
data = torch.utils.data.TensorDataset(torch.ones(8, 3))
for (batch,) in torch.utils.data.DataLoader(data, batch_size=4, num_workers=2):
    batch.tanh()
"""
    outcome = capture(text, whole=True)
    assert outcome.code == 0
    assert sum(text.startswith("aten::tanh") for text in texts(outcome)) == 2


def test_each_rank_writes_its_own_file(capture: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    outcome = capture("import torch; torch.ones(1)", whole=True)
    assert known(outcome.path).name == "net.rank1.pt.trace.json.gz"


def test_special_characters_in_arguments_are_kept(capture: Capture, tmp_path: Path) -> None:
    text = """
import torch, pyprof
with pyprof.annotate('say "it\\'s" \\\\ Übung'):
    torch.ones(1)
"""
    outcome = capture(text, whole=True)
    assert 'layer:say "it\'s" \\ Übung' in texts(outcome)
    with gzip.open(tmp_path / "net.pt.trace.json.gz") as file:
        header = json.load(file)
    assert header["torch_version"] == torch.__version__


@pytest.mark.slow
def test_environment_and_warning_filters_are_unchanged(
    capture: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("KINETO_LOG_LEVEL", "TORCHINDUCTOR_CPP_ENABLE_KERNEL_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    before = [dict(os.environ), repr(warnings.filters)]
    seen = tmp_path / "seen.json"
    capture(f"""
import json, os, warnings
with open({str(seen)!r}, "w") as file:
    json.dump([dict(os.environ), repr(warnings.filters)], file)
""")
    assert json.loads(seen.read_text()) == before


def test_a_traceback_is_that_of_the_script(
    capture: Capture, capsys: pytest.CaptureFixture[str]
) -> None:
    capture("""
import torch
torch.nn.Sequential(torch.nn.Linear(4, 2))(torch.ones(2, 3))
""")
    shown = capsys.readouterr().err
    assert shown.count("train.py") == 1
    assert "linear.py" in shown
    assert str(Path(pyprof.__file__).parent) not in shown


def test_ops_after_the_last_line_are_recorded(capture: Capture) -> None:
    outcome = capture("""
import atexit, threading, torch
ended = threading.Event()
def work():
    ended.wait()
    torch.ones(3).tanh()
threading.Thread(target=work).start()
atexit.register(lambda: torch.ones(3).sin())
torch.ones(3).cos()
ended.set()
""")
    assert ran(outcome) == {"cos", "sin", *(["tanh"] if ALL_THREADS else [])}


def test_a_missing_folder_is_refused_before_the_run(tmp_path: Path) -> None:
    request = Request(Target("train.py"), str(tmp_path / "gone" / "net"), whole=True)
    with pytest.raises(PyprofError, match="no such folder"):
        torch_profiler.run(request)


@pytest.mark.parametrize("runner", [torch_profiler.run, partial(nsys_capture.run, nsys="nsys")])
def test_a_read_only_folder_is_refused_before_the_run(
    runner: Callable[[Request], Outcome], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise the run would be lost."""
    monkeypatch.setattr(os, "access", lambda *_: False)  # who runs the tests may be allowed to
    with pytest.raises(PyprofError, match="no permission"):
        runner(Request(Target("train.py"), str(tmp_path / "net"), whole=True))
