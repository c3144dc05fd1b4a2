"""The op of GPU work: at its launch, or at its graph's capture."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pyprof import readers, schema
from pyprof.marker import Call, Tensor, encode_layer, encode_op
from pyprof.parse import parse
from pyprof.prof.columns.standard import COLUMNS
from pyprof.prof.table import Table
from pyprof.records.records import Records
from tests.builders import Range, Work, nsys_db
from tests.parse.record_lines import MM, record_lines

MM_FLOPS = 2 * 4 * 6 * 2
RELU = encode_op(Call("torch", "relu", (Tensor((4, 6), "float16"),)))
NODE = schema.VIAS.index("graph node")
TWIN = schema.VIAS.index("eager twin")


def replay(corr: int, at: int, *names: str, api: str = "cudaGraphLaunch_v10000") -> list[Work]:
    """Launch a graph at some time: one call, and a kernel of each name."""
    call = (at, at + 10)
    return [
        Work(name, at=(at + 100 * n, at + 100 * n + 50), call=call if n == 1 else None,
             corr=corr, api=api)
        for n, name in enumerate(names, 1)
    ]  # fmt: skip


def parsed(
    folder: Path,
    work: list[Work],
    ranges: list[Range],
    sites: list[tuple[int, int]],
    nodes: list[int | None],
    thread: int | None = 0,
) -> Records:
    """Parse a capture whose activities are of these nodes: each captured at (time, via)."""
    capture = readers.read(nsys_db(folder / "a.sqlite", work, ranges))
    time, via = zip(*sites, strict=True) if sites else ((), ())
    columns = {"thread": [thread] * len(sites), "time": time, "via": via}
    place = capture.activities.schema.get_field_index("graph_node")
    activities = capture.activities.set_column(
        place, capture.activities.schema.field(place), pa.array(nodes, pa.int32())
    )
    graph_nodes = schema.table(schema.GRAPH_NODES, columns)
    capture = dataclasses.replace(capture, activities=activities, graph_nodes=graph_nodes)
    schema.check(capture)
    return parse(capture)


def lines(records: Records) -> list[dict[str, Any]]:
    return [json.loads(line) for line in record_lines(records)]


CAPTURED = [
    Range(encode_layer("net"), (10, 90)),
    Range(MM, (20, 40)),
    Range(RELU, (50, 60)),
    Range(RELU, (900, 2000)),  # around the replays: an op of its own
]


def test_a_node_captured_outside_of_layers_is_in_none(tmp_path: Path) -> None:
    """Without a capture, the layer around its graph's launch is used instead."""
    ranges = [Range(MM, (20, 40)), Range("warm-up", (900, 2000))]
    work = replay(1, 1000, "gemm", "gemm")
    found = lines(parsed(tmp_path, work, ranges, [(30, NODE)], [0, None]))
    assert [(line["op"], line["layer"]) for line in found] == [(["mm"], []), ([], ["warm-up"])]


def test_a_captured_kernel_has_the_op_of_its_capture(tmp_path: Path) -> None:
    """Not the one around the replay's launch; in each replay, in order of start."""
    work = replay(1, 1000, "gemm", "relu") + replay(2, 1500, "gemm", "relu")
    sites = [(30, NODE), (55, TWIN)]
    found = lines(parsed(tmp_path, work, CAPTURED, sites, [0, 1, 0, 1]))
    assert [line["op"] for line in found] == [["mm"], ["relu"]] * 2
    assert [line["layer"] for line in found] == [["net"]] * 4
    assert [line["via"] for line in found] == ["graph node", "eager twin"] * 2
    assert [line["replay"] for line in found] == [0, 0, 1, 1]
    assert [line["launch"] for line in found] == [[1000, 1010]] * 2 + [[1500, 1510]] * 2
    assert len({line["opId"] for line in found}) == 4


@pytest.mark.slow
@pytest.mark.parametrize(
    "api", ["cudaGraphLaunch_v10000", "cudaGraphLaunch_ptsz_v10000", "cuGraphLaunch",
            "hipGraphLaunch"]
)  # fmt: skip
def test_a_replay_takes_no_op_or_layer_from_around_its_launch(tmp_path: Path, api: str) -> None:
    """Its kernels say why, and keep their launch."""
    records = parsed(tmp_path, replay(1, 1000, "gemm", "relu", api=api), CAPTURED, [], [None, None])
    for line in lines(records):
        assert not line["op"]
        assert not line["marker"]
        assert not line["layer"]
        assert "via" not in line
        assert (line["launch"], line["tid"], line["replay"]) == ([1000, 1010], 11, 0)
    (why,) = set(COLUMNS["why"].values(Table(records)).to_pylist())
    assert "CUDA graph" in why
    assert "--cuda-graph-trace=node" in why


@pytest.mark.slow
def test_the_launch_of_a_whole_graph_has_the_layers_around_it(tmp_path: Path) -> None:
    """Only layers outside of all ops: the graph did not run the ops around its launch."""
    at, call = (1100, 1200), (1000, 1010)
    work = [Work(at=at, call=call, kind="graph", api="cudaGraphLaunch_v10000")]
    layer = Range(encode_layer("decode"), (800, 3000))
    for ranges in (
        [layer],
        [layer, *CAPTURED],
        [*CAPTURED, Range(encode_layer("in"), (950, 1900))],
    ):
        (line,) = lines(parsed(tmp_path, work, ranges, [], [None]))
        assert line["layer"] == (["decode"] if layer in ranges else [])
        assert (line["op"], line["marker"], line["launch"]) == ([], [], [1000, 1010])
        assert line.get("via") == ("user range" if line["layer"] else None)
    (why,) = COLUMNS["why"].values(Table(parsed(tmp_path, work, [layer], [], [None]))).to_pylist()
    assert "--cuda-graph-trace=node" in why


def test_eager_kernels_are_tied_to_their_launch(tmp_path: Path) -> None:
    work = [Work("gemm", at=(30, 35), call=(25, 28)), Work("other", at=(95, 99), call=(91, 92)),
            *replay(7, 1000, "gemm")]  # fmt: skip
    eager, outside, replayed = lines(parsed(tmp_path, work, CAPTURED, [], [None] * 3))
    assert (eager["op"], eager["via"]) == (["mm"], "launch")
    assert "replay" not in eager
    assert "via" not in outside
    assert not replayed["op"]


def test_a_node_of_no_known_thread_is_tied_to_nothing(tmp_path: Path) -> None:
    work = replay(1, 1000, "gemm")
    (line,) = lines(parsed(tmp_path, work, CAPTURED, [(30, NODE)], [0], thread=None))
    assert not line["op"]
    assert "via" not in line


def test_captured_backward_work_reaches_its_forward_op(tmp_path: Path) -> None:
    """By sequence numbers at its capture, as eager work does by those at its launch.

    `via` of eager backward work says that its op is that of the forward call.
    """
    shapes = "sizes = [[4, 6], [6, 2]]"
    ranges = [
        Range(encode_layer("net"), (10, 45)),
        Range(MM, (15, 40)),
        Range(f"aten::mm, seq = 7, op_id = 1, {shapes}", (20, 30)),
        Range("autograd::engine::evaluate_function: MmBackward0, seq = 7, op_id = 2", (60, 100)),
        Range("MmBackward0, seq = 7, op_id = 3, sizes = [[4, 2]]", (65, 95)),
        Range(f"aten::mm, seq = 0, op_id = 4, {shapes}", (70, 80)),
        Range(RELU, (900, 2000)),
    ]
    eager = [Work("forward", at=(26, 28), call=(22, 24)), Work("back", at=(79, 81), call=(75, 77))]
    graph = replay(9, 1000, "forward", "back")
    found = lines(
        parsed(tmp_path, eager + graph, ranges, [(23, NODE), (76, NODE)], [None, None, 0, 1])
    )
    assert [line["via"] for line in found] == ["launch", "forward op", "graph node", "graph node"]
    for key in ("dir", "op", "fwdOp", "fwdLayer", "fwdMarker", "seqId", "layer"):
        assert found[0].get(key) == found[2].get(key), key
        assert found[1].get(key) == found[3].get(key), key
    assert (found[3]["dir"], found[3]["fwdOp"], found[3]["fwdLayer"]) == ("bprop", ["mm"], ["net"])


def test_replays_without_a_recorded_launch_are_told_apart(tmp_path: Path) -> None:
    """By their correlation id; else by how often each node ran."""
    kernels = [Work("gemm", at=(1000 + 100 * n, 1050 + 100 * n), corr=50 + n) for n in range(2)]
    records = parsed(tmp_path, kernels, CAPTURED, [(30, NODE)], [0, 0])
    assert [line["replay"] for line in lines(records)] == [0, 1]
    assert Table(records).costs.flops.tolist() == [MM_FLOPS] * 2


def test_the_column_via(tmp_path: Path) -> None:
    """Empty if no op was found; files of older versions have none."""
    work = [Work("gemm", at=(30, 35), call=(25, 28)), *replay(9, 1000, "gemm", "relu")]
    records = parsed(tmp_path, work, CAPTURED, [(30, NODE)], [None, 0, None])
    column = COLUMNS["via"]
    assert column.values(Table(records)).to_pylist() == ["launch", "graph node", None]
    old = Records(3, {name: values for name, values in records.columns.items()
                      if name not in ("via", "replay")})  # fmt: skip
    assert column.values(Table(old)).to_pylist() == [None] * 3
