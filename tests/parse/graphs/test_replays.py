"""Replays of a trace: names and sizes of their kernels and copies."""

from pathlib import Path

from tests.readers import kineto_graphs
from tests.readers.kineto_graphs import PLAIN, Node, Replay, captured, replayed, write
from tests.readers.kineto_json import event


def test_mangled_and_plain_names_are_equal(tmp_path: Path) -> None:
    """A replay may have mangled names where the capture has plain ones."""
    plain, mangled = "sgl::act<float>(float*)", "_ZN3sgl3actIfEEvPf"
    nodes = (Node("my::x", plain), Node("my::y", "other"))
    ran = (Node("my::x", mangled), Node("my::y", "other"))
    path = write(tmp_path, replayed([("", [Replay(ran)])]), {"one.json": captured([nodes])})
    assert kineto_graphs.ops(path) == ["x", "y"]


def test_grids_tell_equal_names_apart(tmp_path: Path) -> None:
    """On several streams kernels of one name and different grids start in any order."""
    nodes = [Node("aten::mm", "gemm", 7, (1, 1, 1)), Node("aten::addmm", "gemm", 8, (2, 1, 1))]
    events = replayed([("", [Replay(nodes, [1, 0])])], amd=False)
    path = write(tmp_path, events, {"one.json": captured([nodes])})
    assert kineto_graphs.ops(path) == ["addmm", "mm"]


def test_another_grid_is_not_an_equal_run(tmp_path: Path) -> None:
    """Kernels of one name and another grid work on other shapes."""
    wider = [Node(n.op, n.kernel, grid=(9, 1, 1)) for n in kineto_graphs.LONG]
    main = kineto_graphs.eager_long() + replayed([("", [Replay(wider)])], amd=False)
    assert kineto_graphs.ops(write(tmp_path, main, {}))[-9:] == [None] * 9


def test_copies_only_matter_as_nodes(tmp_path: Path) -> None:
    """With kernels only, the graph's copies still keep their positions."""
    copy = event("gpu_memcpy", "Memcpy DtoD (Device -> Device)", 1_001_900, 2, pid=0, tid=7,
                 device=0, stream=7, correlation=100_001, bytes=64)  # fmt: skip
    events = captured([PLAIN])
    events.insert(-1, event("cuda_runtime", "hipMemcpyAsync", events[-1]["ts"] - 1, 0.5,
                            correlation=500))  # fmt: skip
    path = write(tmp_path, [*replayed([("", [Replay(PLAIN)])]), copy], {"one.json": events})
    rows = kineto_graphs.records(path, kernels_only=True).table().to_pylist()
    assert [row["op"] for row in rows] == [["a"], ["b"], ["c"]]
    assert len(kineto_graphs.rows(path)) == len(PLAIN) + 1
