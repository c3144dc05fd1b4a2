"""Captures of CUDA graphs are recorded; stand-ins replace the GPU."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from pyprof import readers
from pyprof.capture.kineto import recorder as recorders
from pyprof.capture.kineto.recorder import Recorder
from pyprof.capture.kineto.recording import watch_graphs
from pyprof.readers.settings import own_captures_path
from tests.texts import texts


class Graph:
    """Stands in for torch.cuda.CUDAGraph: captures what is called between begin and end."""

    def __init__(self, *, fails: bool = False) -> None:
        self.fails = fails
        self.called: list[str] = []

    def capture_begin(self, pool: object = None) -> str:
        if self.fails:
            raise RuntimeError("cannot begin")
        self.called.append(f"begin {pool}")
        return "begun"

    def capture_end(self) -> None:
        self.called.append("end")


class _Tree(Graph):
    """Inherits what captures, as CUDA graphs of old versions of torch did."""


@pytest.mark.parametrize("kind", [Graph, _Tree])
def test_hooks_run_before_and_after_a_graph_capture(kind: type[Graph]) -> None:
    told: list[str] = []
    attributes = dict(vars(kind))
    with watch_graphs(kind, lambda: told.append("before"), lambda: told.append("after")):
        graph = kind()
        assert graph.capture_begin(pool=3) == "begun"
        assert told == ["before"]
        graph.capture_end()
    assert (told, graph.called) == (["before", "after"], ["begin 3", "end"])
    assert dict(vars(kind)) == attributes


def test_a_capture_that_cannot_begin_has_ended() -> None:
    told: list[str] = []
    with (
        watch_graphs(Graph, lambda: told.append("before"), lambda: told.append("after")),
        pytest.raises(RuntimeError, match="cannot begin"),
    ):
        Graph(fails=True).capture_begin()
    assert told == ["before", "after"]


@pytest.fixture
def recorder(monkeypatch: pytest.MonkeyPatch) -> Iterator[Recorder]:
    """Return a recorder of captures; a product stands in for the call that begins one."""
    monkeypatch.setattr(recorders, "_CAPTURE", re.compile(rb"aten::mm"))
    found = Recorder(stacks=False, rank=lambda: None)
    with watch_graphs(Graph, found.graph_begins, found.graph_ended):
        yield found


def _capture() -> None:
    graph = Graph()
    graph.capture_begin()
    torch.ones(8, 8) @ torch.ones(8, 8)
    graph.capture_end()


def _names(path: Path) -> set[str]:
    found = texts(readers.read(path).ranges)
    return {name for name in ("aten::mm", "aten::tanh") for text in found if text.startswith(name)}


def _beside(path: Path) -> Path:
    return path.parent / "capture_traces" / "net.graphs.pt.trace.json.gz"


def test_an_end_that_fails_shows_its_own_error() -> None:
    class Broken(Graph):
        def capture_end(self) -> None:
            raise RuntimeError("invalidated")

    def fail() -> None:
        raise ValueError("not seen")

    with watch_graphs(Broken, lambda: None, fail), pytest.raises(RuntimeError, match="invalidated"):
        Broken().capture_end()


@pytest.mark.parametrize("provisional", [False, True], ids=["nothing before", "dropped before"])
def test_graphs_captured_before_the_range_are_recorded_separately(
    recorder: Recorder, tmp_path: Path, *, provisional: bool
) -> None:
    path = tmp_path / "net.pt.trace.json.gz"
    if provisional:
        recorder.start(provisional=True)
    _capture()
    recorder.start()
    torch.tanh(torch.ones(64, 64))
    recorder.stop()
    assert recorder.windows == 1
    assert recorder.write(path)
    assert _names(path) == {"aten::tanh"}
    assert _names(_beside(path)) == {"aten::mm"}


def test_graphs_captured_in_the_range_are_in_its_recording(
    recorder: Recorder, tmp_path: Path
) -> None:
    path = tmp_path / "net.pt.trace.json.gz"
    recorder.start()
    _capture()
    recorder.stop()
    assert recorder.write(path)
    assert _names(path) == {"aten::mm"}
    assert not _beside(path).exists()


def test_without_graphs_nothing_is_recorded_separately(recorder: Recorder, tmp_path: Path) -> None:
    """A recording in which no graph was captured is deleted."""
    path = tmp_path / "net.pt.trace.json.gz"
    _beside(path).parent.mkdir()
    _beside(path).write_bytes(b"of an earlier capture")
    recorder.start(provisional=True)
    torch.ones(8, 8) @ torch.ones(8, 8)
    recorder.start()
    torch.tanh(torch.ones(64, 64))
    recorder.stop()
    assert recorder.write(path)
    assert not _beside(path).parent.exists()


def test_a_range_that_begins_in_a_capture_goes_on(recorder: Recorder) -> None:
    graph = Graph()
    graph.capture_begin()
    recorder.start()
    graph.capture_end()
    assert recorder.running
    recorder.stop()
    assert (recorder.running, recorder.windows) == (False, 1)


def test_each_trace_of_a_folder_has_its_own_graph_captures(tmp_path: Path) -> None:
    from pyprof.readers.kineto.graphs import captures  # noqa: PLC0415 - as torch may be missing

    path, other = (tmp_path / f"{name}.pt.trace.json.gz" for name in ("net", "other"))
    folder = tmp_path / "capture_traces"
    folder.mkdir()
    for one in (path, other):
        own_captures_path(one).write_bytes(b"{}")
    (folder / "bs_8.json").write_bytes(b"{}")
    found = captures.traces(path).files
    assert [file.path.name for file in found] == ["bs_8.json", "net.graphs.pt.trace.json.gz"]
