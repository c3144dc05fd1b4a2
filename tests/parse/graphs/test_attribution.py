"""Replays in traces of torch.profiler, tied to the traces of their captures."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeAlias

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.readers import kineto_graphs
from tests.readers.kineto_graphs import PLAIN, Node, Replay, captured, replayed, write
from tests.readers.kineto_json import event, op


@st.composite
def graphs(draw: st.DrawFn, number: int) -> list[list[Node]]:
    made = []
    for graph in range(draw(st.integers(1, 3))):
        sizes = draw(st.lists(st.tuples(st.sampled_from("pqr"), st.integers(1, 3)), min_size=1,
                              max_size=8))  # fmt: skip
        made.append(
            [
                Node(f"my::op_{number}_{graph}_{place}", kernel=name, stream=stream)
                for place, (name, stream) in enumerate(sizes)
            ]
        )
    return made


@st.composite
def orders(draw: st.DrawFn, nodes: Sequence[Node]) -> list[int]:
    """Order the kernels of a replay as a GPU may: a stream, and what has one name, in order."""
    left, order = list(range(len(nodes))), list[int]()
    while left:
        free = [
            place
            for at, place in enumerate(left)
            if all(
                nodes[place].stream != nodes[other].stream
                and nodes[place].kernel != nodes[other].kernel
                for other in left[:at]
            )
        ]
        order.append(draw(st.sampled_from(free)))
        left.remove(order[-1])
    return order


Recorded: TypeAlias = tuple[dict[int, list[list[Node]]], list[tuple[str, list[Replay]]]]


@st.composite
def recorded(draw: st.DrawFn) -> Recorded:
    sizes = draw(st.lists(st.integers(1, 64), min_size=1, max_size=3, unique=True))
    made = {size: draw(graphs(size)) for size in sizes}
    steps = []
    for size in draw(st.lists(st.sampled_from(sizes), min_size=1, max_size=4)):
        step = [Replay(nodes, draw(orders(nodes))) for nodes in made[size]]
        steps.append((f"step[DECODE bs={size}]", step))
    return made, steps


def _written(
    folder: str, made: dict[int, list[list[Node]]], steps: list[tuple[str, list[Replay]]]
) -> Path:
    files = {f"s{size}.json": captured(found, at=1e5) for size, found in made.items()}
    details = kineto_graphs.details(**{f"s{size}": size for size in made})
    return write(Path(folder), replayed(steps), files, details)


def _expected(steps: list[tuple[str, list[Replay]]]) -> list[str]:
    return [
        replay.nodes[which].op.removeprefix("my::")
        for _, replays in steps
        for replay in replays
        for which in (replay.order or range(len(replay.nodes)))
        if which not in replay.lost
    ]


def _traced(
    folder: Path,
    replays: list[Replay],
    nodes: Sequence[Node],
    *,
    named: bool = True,
    graph: int = 0,
) -> Path:
    """Write replays outside of steps, and a graph's capture: AMD's calls name their kernels."""
    main = replayed([("", replays)], amd=named, graph=graph)
    return write(folder, main, {"one.json": captured([nodes], named=named)})


def _check_none_is_wrong(path: Path, steps: list[tuple[str, list[Replay]]]) -> None:
    pairs = zip(kineto_graphs.ops(path), _expected(steps), strict=True)
    assert all(found in {None, right} for found, right in pairs)


FEW = settings(max_examples=settings().max_examples // 3)  # each writes files, and reads them


@pytest.mark.slow
@FEW
@given(recorded())
def test_every_replayed_kernel_has_the_op_of_its_capture(
    given_: Recorded,
) -> None:
    made, steps = given_
    with TemporaryDirectory() as folder:
        rows = kineto_graphs.rows(_written(folder, made, steps))
        assert [row["op"][-1] if row["op"] else None for row in rows] == _expected(steps)
        assert {row["via"] for row in rows} == {"graph capture"}


@pytest.mark.slow
@FEW
@given(recorded(), st.data())
def test_lost_rows_make_no_op_wrong(given_: Recorded, data: st.DataObject) -> None:
    made, steps = given_
    if data.draw(st.booleans(), "of the replay"):
        for _, replays in steps:
            for replay in replays:
                lost = st.sets(st.sampled_from(range(len(replay.nodes))))
                replay.lost = frozenset(data.draw(lost))
    else:
        drop = st.booleans()
        for found in made.values():
            for nodes in found:
                nodes[:] = [Node(n.op, n.kernel, n.stream, lost=data.draw(drop)) for n in nodes]
    with TemporaryDirectory() as folder:
        _check_none_is_wrong(_written(folder, made, steps), steps)


@pytest.mark.slow
@FEW
@given(recorded(), st.sampled_from(["hip", "cuda", "cuda with ids"]), st.data())
def test_without_steps_no_op_is_wrong(
    given_: Recorded,
    tool: str,
    data: st.DataObject,
) -> None:
    """No batch size is stated, recording begins mid-step, kernels are lost."""
    made, steps = given_
    replays = [replay for _, found in steps for replay in found]
    replays = replays[data.draw(st.integers(0, len(replays) - 1)) :]
    for replay in replays:
        lost = st.sets(st.sampled_from(range(len(replay.nodes))), max_size=2)
        replay.lost = frozenset(data.draw(lost))
    files = {f"s{n}.json": captured(found, named=tool == "hip") for n, found in made.items()}
    main = replayed([("", replays)], amd=tool == "hip", graph=9 * (tool == "cuda with ids"))
    with TemporaryDirectory() as folder:
        _check_none_is_wrong(write(Path(folder), main, files), [("", replays)])


@st.composite
def long_graph(draw: st.DrawFn) -> tuple[list[Node], list[int]]:
    """Make a graph of many kernels of few names, and an order in which it may have run."""
    names = draw(st.lists(st.sampled_from("pqrs"), min_size=8, max_size=40))
    streams = st.integers(1, draw(st.sampled_from([1, 1, 2])))
    nodes = [Node(f"my::op_{n}", name, draw(streams)) for n, name in enumerate(names)]
    return nodes, draw(orders(nodes))


@FEW
@given(long_graph(), st.sampled_from(["hip", "cuda", "cuda with ids"]), st.data())
def test_a_long_graph_that_lost_a_few_has_no_wrong_op(
    given_: tuple[list[Node], list[int]], tool: str, data: st.DataObject
) -> None:
    nodes, order = given_
    lost = frozenset(data.draw(st.sets(st.sampled_from(range(len(nodes))), min_size=1,
                                       max_size=len(nodes) // 4)))  # fmt: skip
    kept = nodes
    if data.draw(st.booleans(), "of the replay"):
        replay = Replay(nodes, order, lost)
    else:
        replay = Replay(nodes, order)
        kept = [replace(node, lost=n in lost) for n, node in enumerate(nodes)]
    graph = 9 * (tool == "cuda with ids")
    with TemporaryDirectory() as folder:
        path = _traced(Path(folder), [replay] * 2, kept, named=tool == "hip", graph=graph)
        _check_none_is_wrong(path, [("", [replay, replay])])


def test_a_replay_says_how_its_ops_were_found(tmp_path: Path) -> None:
    records = kineto_graphs.records(_traced(tmp_path, [Replay(PLAIN)], PLAIN))
    rows = records.table().to_pylist()
    assert [row["op"] for row in rows] == [["a"], ["b"], ["c"]]
    assert {row["via"] for row in rows} == {"graph capture"}
    assert [row["sizes"] for row in rows] == [[[16, 16], [16, 16]]] * 3
    assert [row["grid"] for row in rows] == [[4, 2, 1]] * 3
    assert [row["replay"] for row in rows] == [0, 0, 0]
    (warning,) = records.warnings
    assert "3 of 3 replayed kernels and copies are matched by name and order" in warning
    assert "one.json" in warning


def test_sequence_numbers_of_a_capture_do_not_match_later_ops(tmp_path: Path) -> None:
    forward = op("aten::mul", 1_000_050, 5, External_id=1, Sequence_number=5, Fwd_thread_id=0)
    backward = [
        *captured([()]),
        event("cuda_runtime", "hipStreamBeginCapture", 100, 1, tid=1, correlation=90),
        op("MulBackward0", 110, 20, tid=1, External_id=9, Sequence_number=5, Fwd_thread_id=1),
        event("cuda_runtime", "hipLaunchKernel", 115, 1, tid=1, correlation=91, kernel="first",
              grid=[4, 2, 1], block=[64, 1, 1]),
        event("cuda_runtime", "hipStreamEndCapture", 140, 1, tid=1, correlation=92),
    ]  # fmt: skip
    ran = [forward, *replayed([("", [Replay([Node("my::a", "first")])])])]
    (row,) = kineto_graphs.rows(write(tmp_path, ran, {"one.json": backward}))
    assert row["op"] == ["MulBackward0"]
    assert not row["fwdOp"]


OPS = [node.op.removeprefix("my::") for node in kineto_graphs.LAYERS]


@pytest.mark.parametrize(
    ("lost", "unknown"),
    [
        ({19}, set()),  # the tail
        ({0}, set()),  # the head
        ({7}, set()),  # a hole
        ({0, 10, 19}, set()),
        ({6, 7, 8}, {3, 4, 5, 9, 10, 11, 12, 13, 14, 15, 16, 17, 0, 1, 2}),  # a whole layer: which?
    ],
    ids=str,
)
def test_replays_that_lost_rows_are_aligned(
    tmp_path: Path, lost: set[int], unknown: set[int]
) -> None:
    replay = Replay(kineto_graphs.LAYERS, lost=frozenset(lost))
    path = _traced(tmp_path, [replay] * 4, kineto_graphs.LAYERS)
    expected = [None if n in unknown else op for n, op in enumerate(OPS) if n not in lost]
    assert kineto_graphs.ops(path) == expected * 4
    said = " ".join(kineto_graphs.records(path).warnings)
    assert f"{4 * len(lost)} of 80 kernels and copies of captured graphs are missing" in said
    assert "another model" not in said
    assert ("so that several launches fit" in said) == bool(unknown)


def test_a_capture_that_lost_a_launch_is_aligned(tmp_path: Path) -> None:
    kept = [replace(node, lost=n == 7) for n, node in enumerate(kineto_graphs.LAYERS)]
    path = _traced(tmp_path, [Replay(kineto_graphs.LAYERS)], kept)
    assert kineto_graphs.ops(path) == [None if n == 7 else op for n, op in enumerate(OPS)]


@pytest.mark.parametrize(
    ("ran", "order"),
    [
        (kineto_graphs.LAYERS, [*range(18), 19, 18]),
        ([*kineto_graphs.LAYERS[:-1], Node("my::other", "other")], range(20)),
    ],
    ids=["order", "names"],
)
def test_replays_that_contradict_the_capture_are_refused(
    tmp_path: Path, ran: list[Node], order: Sequence[int]
) -> None:
    path = _traced(tmp_path, [Replay(ran, order, frozenset({4}))], kineto_graphs.LAYERS)
    assert kineto_graphs.ops(path) == [None] * 19
    said = " ".join(kineto_graphs.records(path).warnings)
    assert "no replay fits the captured graphs (one.json)" in said


MIXED = (Node("aten::mm", "ampere_sgemm_128x64_tn"), Node("aten::relu", "vectorized_elementwise"))


def test_calls_without_names_are_matched_by_order(tmp_path: Path) -> None:
    """CUDA's calls do not name what they launch: number and order decide, and ops must fit."""
    path = _traced(tmp_path, [Replay(MIXED)], MIXED, named=False)
    assert kineto_graphs.ops(path) == ["mm", "relu"]
    assert "order alone" in " ".join(kineto_graphs.records(path).warnings)
    path = _traced(tmp_path, [Replay(MIXED)], MIXED[::-1], named=False)
    assert kineto_graphs.ops(path) == [None, None]


def test_node_ids_give_the_order_of_nodes(tmp_path: Path) -> None:
    nodes = [MIXED[0], Node("aten::relu", "vectorized_elementwise", stream=8)]
    first, again = Replay(nodes, [1, 0]), Replay(nodes, lost=frozenset({0}))
    main = [
        *replayed([("", [first])], amd=False, graph=3),
        *_later(replayed([("", [again])], amd=False, graph=3)),
    ]
    path = write(tmp_path, main, {"one.json": captured([nodes], named=False)})
    assert kineto_graphs.ops(path) == ["relu", "mm", "relu"]


BLOCK = (
    Node("aten::mm", "ampere_sgemm_128x64_tn"), Node("aten::relu", "vectorized_elementwise"),
    Node("aten::bmm", "ampere_sgemm_64x64_nn"), Node("aten::softmax", "softmax_warp_forward"),
)  # fmt: skip


@pytest.mark.parametrize("ids", [0, 9])
def test_calls_without_names_are_aligned_by_their_ops(tmp_path: Path, ids: int) -> None:
    """The last of 21 is missing in all replays: each product's kernel fits only one product."""
    nodes = [*(BLOCK * 5), Node("aten::argmax", "reduce_kernel")]
    replay = Replay(nodes, lost=frozenset({20}))
    path = _traced(tmp_path, [replay] * (1 if ids else 4), nodes, named=False, graph=ids)
    right = [node.op.removeprefix("aten::") for node in nodes[:20]]
    found = kineto_graphs.ops(path)
    assert all(op in {None, own} for op, own in zip(found, right * 4, strict=False))
    assert [op for op in found if op][:19] == right[:19]
    assert "are missing in their replays" in " ".join(kineto_graphs.records(path).warnings)


def test_short_graphs_without_names_are_not_aligned(tmp_path: Path) -> None:
    """The remaining kernels fit many ops, so none has one."""
    path = _traced(tmp_path, [Replay(BLOCK, lost=frozenset({3}))], BLOCK, named=False)
    assert kineto_graphs.ops(path) == [None] * 3


def _later(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    for entry in events:
        entry["ts"] += 1e6
        if "correlation" in entry["args"]:
            entry["args"]["correlation"] += 1000
    return events


def test_a_replay_has_the_ops_of_an_equal_eager_run(tmp_path: Path) -> None:
    replays = replayed([("", [Replay(kineto_graphs.LONG)])], amd=False)
    path = write(tmp_path, kineto_graphs.eager_long() + replays, {})
    assert kineto_graphs.ops(path) == ["a", "b", "c"] * 6
    assert Counter(row["via"] for row in kineto_graphs.rows(path)) == {"launch": 9, "eager twin": 9}
    assert any("inferred" in warning for warning in kineto_graphs.records(path).warnings)


def test_eager_runs_that_disagree_give_no_op(tmp_path: Path) -> None:
    """The same kernels ran for other ops, too."""
    main = kineto_graphs.eager_long()
    main += kineto_graphs.eager_long(500, 11, ["my::a", "my::d", "my::c"])
    main += replayed([("", [Replay(kineto_graphs.LONG)])], amd=False)
    assert kineto_graphs.ops(write(tmp_path, main, {}))[-9:] == [None] * 9


def test_a_few_equal_kernels_are_not_an_equal_run(tmp_path: Path) -> None:
    """Any ops may run kernels of these names."""
    main = kineto_graphs.eager(["my::a", "my::b", "my::c"], [node.kernel for node in PLAIN], 100, 1)
    main += replayed([("", [Replay(PLAIN)])], amd=False)
    assert kineto_graphs.ops(write(tmp_path, main, {}))[-3:] == [None] * 3
