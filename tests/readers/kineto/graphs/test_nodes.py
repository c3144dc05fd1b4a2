"""Nodes of graphs captured in the trace: launches between the begin and end of a capture."""

from pathlib import Path

import numpy as np
import pytest

from pyprof.arrays import MISSING
from pyprof.readers.kineto.graphs.nodes import _graphs, _Span
from tests.readers import kineto_graphs
from tests.readers.kineto_graphs import PLAIN, STEP, Node, Replay, captured, replayed, write
from tests.readers.kineto_json import kernel, launch

MIXED = (Node("aten::mm", "ampere_sgemm_128x64_tn"), Node("aten::relu", "vectorized_elementwise"))


def test_graphs_are_numbered_as_they_were_captured(tmp_path: Path) -> None:
    """In the trace itself: the n-th id is that of the n-th capture."""
    other = (Node("aten::bmm", "sgemm"), Node("aten::tanh", "elementwise_kernel"))
    main = captured([MIXED, other], named=False)
    main += replayed([("", [Replay(MIXED), Replay(other)])], amd=False, graph=5)
    assert kineto_graphs.ops(write(tmp_path, main, {})) == ["mm", "relu", "bmm", "tanh"]


@pytest.mark.parametrize("lost", ["BeginCapture", "EndCapture"])
def test_a_trace_that_lacks_the_bounds_of_a_capture(tmp_path: Path, lost: str) -> None:
    """It is not used: graphs of identical layers could not be told apart."""
    events = captured([PLAIN, PLAIN])
    events.remove(next(entry for entry in events if entry["name"].endswith(lost)))
    path = write(tmp_path, replayed([(STEP, [Replay(PLAIN)])]), {"one.json": events})
    kineto_graphs.unattributed(path, "one.json", "outside this trace")


def test_launches_with_a_kernel_were_not_captured(tmp_path: Path) -> None:
    events = captured([PLAIN])
    inside = events[2]["ts"] + 2
    events.append(launch(900, inside, name="hipLaunchKernel"))
    events.append(kernel(900, inside + 50, name="first"))
    path = write(tmp_path, replayed([(STEP, [Replay(PLAIN)])]), {"one.json": events})
    assert kineto_graphs.ops(path) == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("at_ns", "thread", "graph"),
    [(20, 0, 0), (30, 2, 0), (40, 3, MISSING), (150, 0, MISSING),
     (220, 0, 1), (220, 1, 2), (220, 2, MISSING), (295, 2, 1)],
    ids=["the capture's thread", "autograd's", "another process", "between captures",
         "the first of two", "the second of two", "either of two", "after one of two"],
)  # fmt: skip
def test_a_call_belongs_to_the_one_capture_that_it_can(at_ns: int, thread: int, graph: int) -> None:
    """Threads 0 and 1 capture, 2 may work for both, 3 is another process's."""
    spans = [_Span(10, 100, 0), _Span(200, 300, 0), _Span(210, 290, 1)]
    found = _graphs(spans, np.array([at_ns]), np.array([thread]), np.array([7, 7, 7, 8]))
    assert found.tolist() == [graph]
