"""Blocks recorded in this process: `with pyprof.profile("x") as p`."""

import gc
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import pandas as pd

import pyprof
from pyprof import instrument
from pyprof.capture.kineto import recorder
from pyprof.errors import PyprofError
from pyprof.instrument.ranges import emit
from tests import forks
from tests.analysis.captured import capture
from tests.commands import run
from tests.known import raising

pytestmark = pytest.mark.filterwarnings("ignore:CUDA initialization")  # a driver too old


@pytest.fixture(autouse=True)
def nothing_is_left(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No tool is there, and what is replaced while a block is recorded is put back."""
    monkeypatch.setattr(emit, "tool_listens", lambda: False)
    before = torch.relu, torch.cuda.profiler.start, torch.autograd.profiler.emit_nvtx
    yield
    after = torch.relu, torch.cuda.profiler.start, torch.autograd.profiler.emit_nvtx
    assert after == before
    assert not instrument.range_start
    instrument.stop()


def recorded(name: str = "x") -> Any:  # noqa: ANN401 - not for users to name
    """Record a block of one op."""
    with pyprof.profile(name) as p:
        torch.ones(3).exp()
    return p


def ops(frame: pd.DataFrame) -> list[str]:
    return [op for op in frame["op"] if op != "ones"]


@pytest.mark.slow
def test_a_block_is_recorded_and_read() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(8, 4))
    torch.ones(2).tanh()
    with pyprof.profile("a block") as p:
        model(torch.ones(2, 8))
    torch.ones(2).tanh()
    assert ops(p.frame) == ["linear"]
    (row,) = p.frame[p.frame["op"] == "linear"].to_dict("records")
    assert row["layer"] == "Sequential:0"
    assert re.fullmatch(r".*test_recorded_block\.py:\d+", row["line"])
    assert row["flops"] == 2 * 2 * 8 * 4
    assert p.frame is p.frame


def test_the_summary_is_that_of_the_command(tmp_path: Path) -> None:
    with pyprof.profile("net/1") as p:
        torch.ones(64, 64) @ torch.ones(64, 64)
    kept = p.save(tmp_path / "net.pt.trace.json.gz")
    assert repr(p.summary()) == p.summary() == run("summary", "-q", kept).stdout
    assert (
        p.summary("line", top=1) == run("summary", "-q", "--by", "line", "--top", "1", kept).stdout
    )
    assert p.path.name == "net-1.pt.trace.json.gz"
    with pytest.raises(ValueError, match="by is 'lines'; it must be one of op, layer, line"):
        p.summary("lines")  # type: ignore[arg-type]


@pytest.mark.slow
def test_another_tools_capture_is_not_replaced(tmp_path: Path) -> None:
    """It could not be taken again; ours is replaced, and nothing else is left."""
    p = recorded()
    theirs = capture(tmp_path / "net.sqlite")
    with pytest.raises(PyprofError, match="capture"):
        p.save(theirs)
    with pytest.raises(PyprofError, match="no such folder"):
        p.save(tmp_path / "none" / "x.json.gz")
    ours = [p.save(tmp_path / "x.pt.trace.json.gz") for _ in range(2)]
    assert sorted(tmp_path.iterdir()) == sorted([theirs, ours[0]])
    assert len(pyprof.load(ours[0])) == len(p.frame)


@pytest.mark.slow
def test_the_capture_is_gone_with_its_object() -> None:
    """Temporary files do not pile up."""
    p = recorded()
    folder = p.path.parent
    assert folder.is_dir()
    del p
    assert not folder.exists()


@pytest.mark.slow
def test_an_exception_passes_and_what_ran_is_kept() -> None:
    p = pyprof.profile("x")
    with pytest.raises(ZeroDivisionError), p:
        raise ZeroDivisionError(torch.ones(3).exp())
    assert ops(p.frame) == ["exp"]


@pytest.mark.slow
def test_an_object_records_again() -> None:
    p = pyprof.profile("x")
    with p:
        torch.ones(3).exp()
    with p:
        torch.ones(3).sin()
    assert ops(p.frame) == ["sin"]


def test_an_object_within_itself_is_one_block() -> None:
    p = pyprof.profile("x")
    with p:
        torch.ones(3).exp()
        with p:
            torch.ones(3).sin()
        torch.ones(3).cos()
    assert ops(p.frame) == ["exp", "sin", "cos"]


def test_a_block_within_a_block_is_a_layer_of_it() -> None:
    with pyprof.profile("outer") as outer:
        torch.ones(3).exp()
        with pyprof.profile("inner") as inner:
            torch.ones(3).sin()
    frame = outer.frame.set_index("op")
    assert ops(outer.frame) == ["exp", "sin"]
    assert frame.loc["sin", "module"] == "inner"
    with pytest.raises(PyprofError, match=r"part of pyprof.profile\('outer'\)"):
        _ = inner.frame


def test_a_range_within_a_block_narrows_it() -> None:
    with pyprof.profile("x") as p:
        torch.ones(3).exp()
        with pyprof.profile():
            torch.ones(3).sin()
        torch.ones(3).cos()
    assert ops(p.frame) == ["sin"]


def test_a_schedule_chooses_steps() -> None:
    schedule = torch.profiler.schedule(wait=1, warmup=1, active=1, repeat=2)
    with pyprof.profile("x", schedule=schedule) as p:
        for step in range(1, 7):
            torch.ones(step).exp()
            pyprof.step()
    assert [sizes[0][0] for sizes, op in zip(p.frame["sizes"], p.frame["op"], strict=True)
            if op == "exp"] == [3, 6]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("use", ["frame", "path", "summary", "save"])
def test_a_block_without_work_says_so(use: str) -> None:
    with pyprof.profile("x") as p:
        pass
    with pytest.raises(PyprofError, match="no torch op ran"):
        getattr(p, use)()
    assert "no torch op ran" in repr(p)
    assert "no torch op ran" in p._repr_html_()


def test_before_and_during_the_block_there_is_no_result() -> None:
    p = pyprof.profile("x")
    with pytest.raises(PyprofError, match="with statement"):
        _ = p.frame
    with p:
        torch.ones(3).exp()
        with pytest.raises(PyprofError, match="still recording"):
            _ = p.frame


def test_beside_another_profiler_the_block_runs() -> None:
    """Only one can record at a time: the user's does."""
    with (
        torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as other,
        pyprof.profile("x") as p,
    ):
        torch.ones(3).exp()
    assert "aten::exp" in {event.key for event in other.key_averages()}
    with pytest.raises(PyprofError, match=r"a torch.profiler was running"):
        _ = p.frame


@pytest.mark.slow
def test_a_profiler_inside_the_block_is_named() -> None:
    with pyprof.profile("x") as p:
        torch.ones(3).exp()
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]):
            torch.ones(3).sin()
    assert ops(p.frame) == ["exp", "sin"]
    assert "its own torch.profiler" in p._repr_html_()


def test_the_users_own_init_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    pyprof.init()
    recorded()
    assert (pyprof.enabled(), instrument.listening()) == (True, False)
    pushed: list[str] = []
    sink = emit.Sink(pushed.append, lambda: None)
    monkeypatch.setitem(instrument.lifecycle._SINKS, "nvtx", lambda: sink)
    pyprof.init(force=True)
    recorded()
    assert pushed == []
    torch.ones(3).exp()
    assert any("'exp'" in text for text in pushed)


def test_a_full_disk_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    full = raising(OSError(28, "No space left on device"))
    monkeypatch.setattr(recorder.Recorder, "write", full)
    with pyprof.profile("x") as p:
        pass
    with pytest.raises(PyprofError, match="No space left on device"):
        _ = p.frame


SCRIPT = """
import pyprof, torch
torch.ones(2).cos()
with pyprof.profile("the block") as p:
    torch.ones(2).exp()
try:
    p.frame
except Exception as error:
    print(type(error).__name__, error)
"""


@pytest.mark.slow
def test_a_capture_of_the_script_takes_the_block_for_its_range(tmp_path: Path) -> None:
    (tmp_path / "block.py").write_text(SCRIPT)
    done = forks.python("-m", "pyprof.capture", "--tool", "torch", "block.py", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "PyprofError recorded by the profiler that runs this program" in done.stdout
    frame = pyprof.load(tmp_path / "block.pt.trace.json.gz")
    assert (ops(frame), set(frame["module"])) == (["exp"], {"the block"})


@pytest.mark.slow
def test_a_script_records_too(tmp_path: Path) -> None:
    (tmp_path / "block.py").write_text(SCRIPT.replace("p.frame", "print(len(p.frame))"))
    done = forks.python("block.py", cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "2\n", "")


CELLS = (
    "import pyprof, torch\ndef activate(x):\n    return torch.tanh(x)",
    "with pyprof.profile('<script>x</script>') as p:\n    activate(torch.ones(3)).exp()\np",
    "print(p.frame[['op', 'line', 'trace']].to_csv(index=False))",
    "p.summary('line')",
)


def notebook(*cells: str) -> list[dict[str, Any]]:
    """Run cells in a kernel of their own; return what the last thing of each shows, by type."""
    nbclient, nbformat = pytest.importorskip("nbclient"), pytest.importorskip("nbformat")
    pytest.importorskip("ipykernel")
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    nbclient.NotebookClient(book, kernel_name="python3").execute()
    outputs = [cell.outputs[-1] if cell.outputs else {} for cell in book.cells]
    return [output.get("data") or {"text/plain": output.get("text", "")} for output in outputs]


def test_in_ipython_lines_name_the_cell(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A notebook's kernel is such a shell; its own frames are left out."""
    interactive = pytest.importorskip("IPython.core.interactiveshell")
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])  # IPython takes its place
    shell = interactive.InteractiveShell.instance()
    shell.history_manager.enabled = False
    try:
        for cell in CELLS[:2]:
            shell.run_cell(cell, store_history=True).raise_error()
        frame = shell.user_ns["p"].frame
    finally:
        interactive.InteractiveShell.clear_instance()
    (tanh,) = frame[frame["op"] == "tanh"]["trace"]
    assert tanh == "cell [2]:2,cell [1]:3"


@pytest.mark.long
def test_in_a_notebook_lines_name_the_cell() -> None:
    _, shown, table, summary = notebook(*CELLS)
    assert "<script>" not in shown["text/html"]
    assert "&lt;script&gt;x&lt;/script&gt;" in shown["text/html"]
    assert "cell [1]:3" in shown["text/html"]
    assert table["text/plain"].split() == [
        "op,line,trace",
        *("ones,cell", "[2]:2,cell", "[2]:2"),
        *("tanh,cell", '[1]:3,"cell', "[2]:2,cell", '[1]:3"'),
        *("exp,cell", "[2]:2,cell", "[2]:2"),
    ]
    assert "\ncell [1]:3" in summary["text/plain"]


@pytest.mark.parametrize("name", ["\U0001d54f" * 100, "\ud800<b>", "\0", "../../x", ""])
def test_any_name_is_recorded_and_shown(name: str) -> None:
    """File systems take 255 bytes of it, and a notebook no surrogate."""
    p = recorded(name)
    assert "exp" in ops(p.frame)
    shown = p._repr_html_().encode().decode()
    assert shown.count("<b>") == 1


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such files")
def test_a_capture_replaces_no_device(tmp_path: Path) -> None:
    p = recorded()
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    (tmp_path / "link").symlink_to(pipe)
    for place in (pipe, tmp_path / "link", tmp_path, tmp_path / ("n" * 300), Path("/proc/x.json")):
        with pytest.raises(PyprofError, match="choose another place"):
            p.save(place)
    assert pipe.is_fifo()
    (tmp_path / "net.json").symlink_to(tmp_path / "there.json")
    assert p.save(tmp_path / "net.json") == tmp_path / "net.json"
    assert (tmp_path / "net.json").is_symlink()
    assert (tmp_path / "there.json").is_file()


def test_modules_are_looked_for_before_the_recording(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else that time, which grows with the heap, would be the host's in the report."""
    recording: list[bool] = []
    search = gc.get_objects

    def noted() -> list[object]:
        recording.append(emit.profiler_records())
        return search()

    model = torch.nn.Sequential(torch.nn.Linear(2, 3))
    monkeypatch.setattr(gc, "get_objects", noted)
    for _ in range(2):
        with pyprof.profile("model") as block:
            model(torch.ones(2, 2))
        assert "0" in set(block.frame["module"])
    assert recording == [False, False]
