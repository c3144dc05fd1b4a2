"""Where the nodes of CUDA graphs were captured, from nsys in node mode."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pyprof import readers, schema
from pyprof.marker import Call, Tensor, encode_op
from pyprof.parse import parse_file
from tests import damage
from tests.builders import LAYOUTS, Layout, Node, Range, Work, nsys_db
from tests.parse.record_lines import record_lines

NODES = LAYOUTS["2024.6"]


def op(name: str) -> str:
    return encode_op(Call("torch", name, (Tensor((4, 6), "float16"),)))


def launch(at: int = 1000, *nodes: int | None, pid: int = 1, corr: int = 900) -> list[Work]:
    """Launch a graph: one call, and a kernel of each node, 100 ns after another."""
    return [
        Work("kernel", at=(at + 100 * n, at + 100 * n + 50), call=(at, at + 10) if n == 1 else None,
             corr=corr, api="cudaGraphLaunch_v10000", node=node, pid=pid)
        for n, node in enumerate(nodes, 1)
    ]  # fmt: skip


ADD, MUL, AROUND = (
    Range(op("add"), (10, 20)),
    Range(op("mul"), (30, 40)),
    Range(op("relu"), (50, 9999)),
)
"""Two ops that are captured, and one around what comes later: instantiation and replays."""


def parsed(
    folder: Path,
    work: list[Work],
    nodes: list[Node],
    layout: Layout = NODES,
    ranges: tuple[Range, ...] = (ADD, MUL, AROUND),
) -> list[dict[str, Any]]:
    records = parse_file(nsys_db(folder / "a.sqlite", work, ranges, layout, nodes))
    return [json.loads(line) for line in record_lines(records)]


def ops(lines: list[dict[str, Any]]) -> list[str | None]:
    return [line["op"][-1] if line["op"] else None for line in lines]


@pytest.mark.slow
@pytest.mark.parametrize(
    "nodes",
    [
        [],
        [Node(11, 60, of=1)],  # the graph was made before the capture began
        [Node(1, 15, of=0, name="Graph Node Destruction")],
        [Node(11, 60, of=12), Node(12, 60, of=11)],  # a circle, which damaged files hold
        [Node(11, 2000)],  # made after it ran
        [Node(0, 15)],
    ],
    ids=["none", "missing", "destroyed", "circle", "later", "no id"],
)
def test_a_graph_captured_before_the_recording_has_no_op(tmp_path: Path, nodes: list[Node]) -> None:
    """Nothing is guessed from its launch or its instantiation."""
    lines = parsed(tmp_path, launch(1000, 11, 1, 0, None), nodes)
    assert ops(lines) == [None] * 4
    assert not any("via" in line for line in lines)


@pytest.mark.slow
def test_a_repeated_id_is_that_of_the_latest_node_before(tmp_path: Path) -> None:
    """Ids may restart after a pause; rows may be duplicated."""
    nodes = [Node(1, 15), Node(1, 15), Node(11, 22, of=1), Node(1, 35), Node(11, 45, of=1)]
    work = launch(23, 11) + launch(1000, 11, corr=901)
    ranges = (ADD, MUL)
    assert ops(parsed(tmp_path, work, nodes, ranges=ranges)) == ["mul", "mul"]
    early = [replace(work[0], at=(24, 26), call=(23, 24)), *work[1:]]
    assert ops(parsed(tmp_path, early, nodes, ranges=ranges)) == ["add", "mul"]


@pytest.mark.slow
def test_old_exports(tmp_path: Path) -> None:
    """In 2022 nodes were among the graphs' events; other exports lack the original nodes.

    Nodes made during instantiation are then not tied to the ops around it.
    """
    nodes = [Node(1, 15), Node(2, 35), Node(11, 65)]
    older = replace(NODES, nodes="CUDA_GRAPH_EVENTS")
    assert ops(parsed(tmp_path, launch(1000, 1, 2), nodes, older)) == ["add", "mul"]
    older = replace(older, originals=False)
    instantiated = Work("other", at=(90, 92), call=(60, 70), api="cudaGraphInstantiate_v11000")
    work = [instantiated, *launch(1000, 1, 2, 11)]
    assert ops(parsed(tmp_path, work, nodes, older))[1:] == ["add", "mul", None]
    assert ops(parsed(tmp_path, launch(1000, 1), [], NODES)) == [None]


def test_a_missing_column_gives_no_op(tmp_path: Path) -> None:
    layout = replace(NODES, kernel=())
    assert ops(parsed(tmp_path, launch(1000, 1), [Node(1, 15)], layout)) == [None]


def test_the_table_of_the_schema(tmp_path: Path) -> None:
    nodes = [Node(1, 15), Node(11, 60, of=1), Node(12, 61, of=1)]
    capture = readers.read(
        nsys_db(tmp_path / "a.sqlite", launch(1000, 11, 12), [ADD], NODES, nodes)
    )
    schema.check(capture)
    assert capture.graph_nodes.select(["time", "via"]).to_pylist() == [
        {"time": 15, "via": schema.VIAS.index("graph node")}
    ]
    assert capture.activities.column("graph_node").to_pylist() == [0, 0]


def test_a_kernel_without_a_start_is_of_the_latest_graph_with_its_node(tmp_path: Path) -> None:
    """Ids may recur."""
    nodes = [Node(1, 15), Node(2, 35), Node(11, 60, of=1), Node(11, 1500, of=2)]
    path = nsys_db(tmp_path / "a.sqlite", launch(1000, 11, 11), [ADD, MUL], NODES, nodes)
    damage.sql(path, "UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET start = NULL WHERE start = 1200")
    found = readers.read(path).activities.select(["start", "graph_node"]).to_pylist()
    assert {row["start"]: row["graph_node"] for row in found} == {None: 1, 1100: 0}
