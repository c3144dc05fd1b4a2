"""Replays in traces of torch.profiler, tied to the traces of their capture."""

import gzip
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyprof import readers
from pyprof.arrays import Int64Array
from pyprof.parse import parse
from pyprof.parse.graphs import replays
from pyprof.readers import settings as inputs
from pyprof.records.records import Records
from tests.readers.kineto_graphs import Node, Replay, captured, replayed, write
from tests.readers.kineto_json import event, kernel, launch, op, text

Rows = list[dict[str, Any]]


def _parse(path: Path, *, kernels_only: bool = False) -> Records:
    return parse(readers.read(path), kernels_only=kernels_only)


def _rows(path: Path) -> Rows:
    rows: Rows = _parse(path).table().to_pylist()
    return rows


def _ops(path: Path) -> list[str | None]:
    return [row["op"][-1] if row["op"] else None for row in _rows(path)]


def _details(**sizes: int) -> list[dict[str, object]]:
    return [
        {"file": f"{name}.json", "batch_size": size, "mode": "FULL"} for name, size in sizes.items()
    ]


PLAIN = (Node("my::a", "first"), Node("my::b", "second"), Node("my::c", "first"))


# --- random graphs --------------------------------------------------------------------------------


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


@st.composite
def recorded(draw: st.DrawFn) -> tuple[dict[int, list[list[Node]]], list[tuple[str, list[Replay]]]]:
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
    details = _details(**{f"s{size}": size for size in made})
    return write(Path(folder), replayed(steps), files, details)


def _expected(steps: list[tuple[str, list[Replay]]]) -> list[str]:
    return [
        replay.nodes[which].op.removeprefix("my::")
        for _, replays in steps
        for replay in replays
        for which in (replay.order or range(len(replay.nodes)))
        if which not in replay.lost
    ]


FEW = settings(max_examples=settings().max_examples // 3)  # each writes files, and reads them


@FEW
@given(recorded())
def test_every_replayed_kernel_has_the_op_of_its_capture(
    given_: tuple[dict[int, list[list[Node]]], list[tuple[str, list[Replay]]]],
) -> None:
    """Streams, repeated names, several captures, batch sizes and pieces: all are found."""
    made, steps = given_
    with TemporaryDirectory() as folder:
        rows = _rows(_written(folder, made, steps))
        assert [row["op"][-1] if row["op"] else None for row in rows] == _expected(steps)
        assert {row["via"] for row in rows} == {"graph capture"}


@FEW
@given(recorded(), st.data())
def test_what_is_lost_makes_no_op_wrong(
    given_: tuple[dict[int, list[list[Node]]], list[tuple[str, list[Replay]]]], data: st.DataObject
) -> None:
    """Kernels of replays, or launches of captures, are dropped: an op is right, or not known."""
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
        rows = _ops(_written(folder, made, steps))
        expected = _expected(steps)
        assert len(rows) == len(expected)
        assert all(found in {None, right} for found, right in zip(rows, expected, strict=True))


@FEW
@given(recorded(), st.sampled_from(["hip", "cuda", "cuda with ids"]), st.data())
def test_without_steps_no_op_is_wrong(
    given_: tuple[dict[int, list[list[Node]]], list[tuple[str, list[Replay]]]],
    tool: str,
    data: st.DataObject,
) -> None:
    """No batch size is stated, recording begins amid a step, kernels are lost."""
    made, steps = given_
    replays = [replay for _, found in steps for replay in found]
    replays = replays[data.draw(st.integers(0, len(replays) - 1)) :]
    for replay in replays:
        lost = st.sets(st.sampled_from(range(len(replay.nodes))), max_size=2)
        replay.lost = frozenset(data.draw(lost))
    files = {f"s{n}.json": captured(found, named=tool == "hip") for n, found in made.items()}
    main = replayed([("", replays)], amd=tool == "hip", graph=9 * (tool == "cuda with ids"))
    with TemporaryDirectory() as folder:
        rows = _ops(write(Path(folder), main, files))
        expected = _expected([("", replays)])
        assert len(rows) == len(expected)
        assert all(found in {None, right} for found, right in zip(rows, expected, strict=True))


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
    """The replay or the capture lost up to a quarter: an op is right, or not known."""
    nodes, order = given_
    lost = frozenset(data.draw(st.sets(st.sampled_from(range(len(nodes))), min_size=1,
                                       max_size=len(nodes) // 4)))  # fmt: skip
    kept = nodes
    if data.draw(st.booleans(), "of the replay"):
        replay = Replay(nodes, order, lost)
    else:
        replay = Replay(nodes, order)
        kept = [replace(node, lost=n in lost) for n, node in enumerate(nodes)]
    main = replayed(
        [("", [replay, replay])], amd=tool == "hip", graph=9 * (tool == "cuda with ids")
    )
    files = {"one.json": captured([kept], named=tool == "hip")}
    with TemporaryDirectory() as folder:
        rows = _ops(write(Path(folder), main, files))
        expected = _expected([("", [replay, replay])])
        assert len(rows) == len(expected)
        assert all(found in {None, right} for found, right in zip(rows, expected, strict=True))


# --- one thing at a time --------------------------------------------------------------------------


def test_a_replay_says_how_its_ops_were_found(tmp_path: Path) -> None:
    """Op, shapes, grid and `via` come from the capture; that they are inferred is said."""
    path = write(tmp_path, replayed([("", [Replay(PLAIN)])]), {"one.json": captured([PLAIN])})
    records = _parse(path)
    rows = records.table().to_pylist()
    assert [row["op"] for row in rows] == [["a"], ["b"], ["c"]]
    assert {row["via"] for row in rows} == {"graph capture"}
    assert [row["sizes"] for row in rows] == [[[16, 16], [16, 16]]] * 3
    assert [row["grid"] for row in rows] == [[4, 2, 1]] * 3
    assert [row["replay"] for row in rows] == [0, 0, 0]
    (warning,) = records.warnings
    assert "3 of 3 replayed kernels and copies are matched by name and order" in warning
    assert "one.json" in warning


def test_names_are_alike_mangled_or_not(tmp_path: Path) -> None:
    """A replay may have mangled names of which the capture has the plain ones."""
    plain, mangled = "sgl::act<float>(float*)", "_ZN3sgl3actIfEEvPf"
    nodes = (Node("my::x", plain), Node("my::y", "other"))
    ran = (Node("my::x", mangled), Node("my::y", "other"))
    path = write(tmp_path, replayed([("", [Replay(ran)])]), {"one.json": captured([nodes])})
    assert _ops(path) == ["x", "y"]


def test_grids_tell_equal_names_apart(tmp_path: Path) -> None:
    """On several streams kernels of one name and other grids start in any order."""
    nodes = [Node("aten::mm", "gemm", 7, (1, 1, 1)), Node("aten::addmm", "gemm", 8, (2, 1, 1))]
    events = replayed([("", [Replay(nodes, [1, 0])])], amd=False)
    path = write(tmp_path, events, {"one.json": captured([nodes])})
    assert _ops(path) == ["addmm", "mm"]


def test_the_recording_leaves_the_capture_as_it_is(tmp_path: Path) -> None:
    """Its ranges, calls and times are no part of what ran: only parse looks at them."""
    main = replayed([("step[DECODE bs=4]", [Replay(PLAIN)])])
    alone = readers.read(write(tmp_path / "alone", main, {}))
    both = readers.read(write(tmp_path / "both", main, {"one.json": captured([PLAIN])}))
    for name in ("activities", "calls", "ranges", "devices"):
        assert getattr(both, name).equals(getattr(alone, name)), name
    assert both.threads.slice(0, len(alone.threads)).equals(alone.threads)
    assert both.graph_captures is not None
    assert len(both.graph_captures.ranges) == len(PLAIN)


def test_sequence_numbers_of_a_recording_are_others(tmp_path: Path) -> None:
    """A backward node of the capture belongs to no forward op that ran later, of equal number."""
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
    (row,) = _rows(write(tmp_path, ran, {"one.json": backward}))
    assert row["op"] == ["MulBackward0"]
    assert not row["fwdOp"]


def test_a_step_that_lost_a_whole_graph_may_have_lost_most_of_another(tmp_path: Path) -> None:
    """What is left of five kernels looks like the graph of one, which has another op."""
    one, last = [Node("my::one", "p")], [Node("my::last", "q")]
    five = [Node(f"my::five_{place}", "p") for place in range(5)]
    replays = [
        Replay(one),
        Replay(five, lost=frozenset(range(4))),
        Replay(last, lost=frozenset({0})),
    ]
    main = replayed([("step[DECODE bs=4]", replays)])
    path = write(tmp_path, main, {"s4.json": captured([one, five, last])}, _details(s4=4))
    assert _ops(path) == [None, None]


LAYERS = [
    Node(f"my::{name}_{layer}", name) for layer in range(6) for name in ("norm", "qkv", "mlp")
] + [Node("my::head", "head"), Node("my::sample", "sample")]
OPS = [node.op.removeprefix("my::") for node in LAYERS]


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
    """All replays miss the same rows: the rest has its op, what could be two rows has none."""
    replay = Replay(LAYERS, lost=frozenset(lost))
    path = write(tmp_path, replayed([("", [replay] * 4)]), {"one.json": captured([LAYERS])})
    expected = [None if n in unknown else op for n, op in enumerate(OPS) if n not in lost]
    assert _ops(path) == expected * 4
    said = " ".join(_parse(path).warnings)
    assert f"{4 * len(lost)} of 80 kernels and copies of captured graphs are missing" in said
    assert "another model" not in said
    assert ("could be of several launches" in said) == bool(unknown)


def test_a_capture_that_lost_a_launch_is_aligned(tmp_path: Path) -> None:
    """The kernel whose launch is missing has no op; the others have theirs."""
    kept = [replace(node, lost=n == 7) for n, node in enumerate(LAYERS)]
    path = write(tmp_path, replayed([("", [Replay(LAYERS)])]), {"one.json": captured([kept])})
    assert _ops(path) == [None if n == 7 else op for n, op in enumerate(OPS)]


@pytest.mark.parametrize("order", [[*range(18), 19, 18], range(20)], ids=["order", "names"])
def test_what_contradicts_the_capture_is_refused(tmp_path: Path, order: Sequence[int]) -> None:
    """A row is missing, and the rest is in another order, or holds what was not captured."""
    ran = LAYERS if order[-1] == 18 else [*LAYERS[:-1], Node("my::other", "other")]
    replay = Replay(ran, order, frozenset({4}))
    path = write(tmp_path, replayed([("", [replay])]), {"one.json": captured([LAYERS])})
    assert _ops(path) == [None] * 19
    assert "no replay fits the captured graphs (one.json)" in " ".join(_parse(path).warnings)


def test_two_graphs_that_may_be_what_is_left_are_refused(tmp_path: Path) -> None:
    """Without batch sizes a replay that lost a row may be of either captured graph."""
    other = [Node(node.op + "b", node.kernel) for node in LAYERS]
    files = {"one.json": captured([LAYERS]), "two.json": captured([other])}
    replay = Replay(LAYERS, lost=frozenset({4}))
    assert set(_ops(write(tmp_path, replayed([("", [replay])]), files))) == {None}


# --- CUDA: calls without names --------------------------------------------------------------------

MIXED = (Node("aten::mm", "ampere_sgemm_128x64_tn"), Node("aten::relu", "vectorized_elementwise"))


def test_calls_without_names_are_matched_by_order(tmp_path: Path) -> None:
    """CUDA's calls do not say what they launch: number and order decide, and ops must fit."""
    main = replayed([("", [Replay(MIXED)])], amd=False)
    path = write(tmp_path, main, {"one.json": captured([MIXED], named=False)})
    assert _ops(path) == ["mm", "relu"]
    assert "order alone" in " ".join(_parse(path).warnings)


def test_an_order_that_does_not_fit_is_not_taken(tmp_path: Path) -> None:
    """A product's kernel under an activation says that the order is another one."""
    main = replayed([("", [Replay(MIXED)])], amd=False)
    path = write(tmp_path, main, {"one.json": captured([MIXED[::-1]], named=False)})
    assert _ops(path) == [None, None]


def test_node_ids_tell_the_order_of_nodes(tmp_path: Path) -> None:
    """Kernels that start in another order are still those of their nodes; some may be lost."""
    nodes = [MIXED[0], Node("aten::relu", "vectorized_elementwise", stream=8)]
    first, again = Replay(nodes, [1, 0]), Replay(nodes, lost=frozenset({0}))
    main = [
        *replayed([("", [first])], amd=False, graph=3),
        *_later(replayed([("", [again])], amd=False, graph=3)),
    ]
    path = write(tmp_path, main, {"one.json": captured([nodes], named=False)})
    assert _ops(path) == ["relu", "mm", "relu"]


BLOCK = (
    Node("aten::mm", "ampere_sgemm_128x64_tn"), Node("aten::relu", "vectorized_elementwise"),
    Node("aten::bmm", "ampere_sgemm_64x64_nn"), Node("aten::softmax", "softmax_warp_forward"),
)  # fmt: skip


@pytest.mark.parametrize("ids", [0, 9])
def test_calls_without_names_are_aligned_by_their_ops(tmp_path: Path, ids: int) -> None:
    """The last of 21 is missing in all replays: each product's kernel fits one product only."""
    nodes = [*(BLOCK * 5), Node("aten::argmax", "reduce_kernel")]
    replay = Replay(nodes, lost=frozenset({20}))
    main = replayed([("", [replay] * (1 if ids else 4))], amd=False, graph=ids)
    path = write(tmp_path, main, {"one.json": captured([nodes], named=False)})
    right = [node.op.removeprefix("aten::") for node in nodes[:20]]
    found = _ops(path)
    assert all(op in {None, own} for op, own in zip(found, right * 4, strict=False))
    assert [op for op in found if op][:19] == right[:19]
    assert "are missing in their replays" in " ".join(_parse(path).warnings)


def test_calls_without_names_need_nearly_all(tmp_path: Path) -> None:
    """Of a short graph, what is left fits many: none has an op."""
    main = replayed([("", [Replay(BLOCK, lost=frozenset({3}))])], amd=False)
    path = write(tmp_path, main, {"one.json": captured([BLOCK], named=False)})
    assert _ops(path) == [None] * 3


def _later(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    for entry in events:
        entry["ts"] += 1e6
        if "correlation" in entry["args"]:
            entry["args"]["correlation"] += 1000
    return events


def test_graphs_are_numbered_as_they_were_captured(tmp_path: Path) -> None:
    """Graphs captured in the trace itself: the n-th number is the n-th capture."""
    other = (Node("aten::bmm", "sgemm"), Node("aten::tanh", "elementwise_kernel"))
    main = captured([MIXED, other], named=False)
    main += replayed([("", [Replay(MIXED), Replay(other)])], amd=False, graph=5)
    assert _ops(write(tmp_path, main, {})) == ["mm", "relu", "bmm", "tanh"]


# --- eager twins ----------------------------------------------------------------------------------


def _eager(ops: Sequence[str], names: Sequence[str], at: float, corr: int) -> list[dict[str, Any]]:
    events = []
    for place, (name, run) in enumerate(zip(ops, names, strict=True)):
        now = at + 20 * place
        ran = kernel(corr + place, now + 8, 4, name=run)
        ran["args"] |= {"block": [64, 1, 1]}
        events += [op(name, now, 15, External_id=corr + place), launch(corr + place, now + 2), ran]
    return events


LONG = PLAIN * 3
"""As many kernels as it takes to tell a sequence from another."""
ABC = ["my::a", "my::b", "my::c"]


def test_a_replay_has_the_ops_of_its_eager_twin(tmp_path: Path) -> None:
    """The same kernels with the same grids ran outside graphs: their ops are its ops."""
    names = [node.kernel for node in LONG]
    main = _eager(ABC * 3, names, 100, 1)
    main += replayed([("", [Replay(LONG)])], amd=False)
    path = write(tmp_path, main, {})
    assert _ops(path) == ["a", "b", "c"] * 6
    assert Counter(row["via"] for row in _rows(path)) == {"launch": 9, "eager twin": 9}
    assert any("inferred" in warning for warning in _parse(path).warnings)


def test_twins_that_disagree_tell_nothing(tmp_path: Path) -> None:
    """Where the same kernels ran for other ops, too, none is known."""
    names = [node.kernel for node in LONG]
    main = _eager(ABC * 3, names, 100, 1)
    main += _eager(["my::a", "my::d", "my::c"] * 3, names, 500, 11)
    main += replayed([("", [Replay(LONG)])], amd=False)
    assert _ops(write(tmp_path, main, {}))[-9:] == [None] * 9


def test_other_grids_are_no_twin(tmp_path: Path) -> None:
    """Kernels of one name work on other shapes with another grid."""
    wider = [Node(n.op, n.kernel, grid=(9, 1, 1)) for n in LONG]
    main = _eager(ABC * 3, [node.kernel for node in LONG], 100, 1)
    main += replayed([("", [Replay(wider)])], amd=False)
    assert _ops(write(tmp_path, main, {}))[-9:] == [None] * 9


def test_a_few_kernels_alike_are_no_twin(tmp_path: Path) -> None:
    """Any ops may run kernels of these names."""
    main = _eager(ABC, [node.kernel for node in PLAIN], 100, 1)
    main += replayed([("", [Replay(PLAIN)])], amd=False)
    assert _ops(write(tmp_path, main, {}))[-3:] == [None] * 3


def test_what_holds_for_all_replays_is_found_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A long capture has thousands of replays: nothing goes through all kernels for each."""
    looked_up = Counter[int]()
    kinds = replays.kinds

    def counted(table: pa.Table) -> Int64Array:
        looked_up[count] += 1
        return kinds(table)

    monkeypatch.setattr(replays, "kinds", counted)
    for count in (2, 9):
        main = _eager(ABC * 3, [node.kernel for node in LONG], 100, 1)
        main += replayed([("", [Replay(LONG)] * count)], amd=False)
        assert _ops(write(tmp_path, main, {})) == ["a", "b", "c"] * 3 * (1 + count)
    assert 0 < looked_up[9] == looked_up[2]


# --- bad input ------------------------------------------------------------------------------------


def _unattributed(path: Path, *said: str) -> None:
    records = _parse(path)
    rows = records.table().to_pylist()
    assert [row["op"] for row in rows] == [[]] * len(PLAIN)
    assert {row["via"] for row in rows} <= {None, "user range"}  # no op
    warned = " ".join(records.warnings)
    assert all(text in warned for text in said), warned


STEP = "step[DECODE bs=8]"


def test_the_capture_of_another_model(tmp_path: Path) -> None:
    """Kernels of other names: nothing is tied, and the file is named."""
    other = [Node("my::z", "third"), Node("my::y", "fourth"), Node("my::x", "first")]
    path = write(tmp_path, replayed([(STEP, [Replay(PLAIN)])]), {"one.json": captured([other])})
    _unattributed(path, "one.json", "3 of 3 replayed kernels and copies have no op")


def test_a_batch_size_that_was_not_written(tmp_path: Path) -> None:
    """The list names the right file, which is not there: a larger batch's shapes are wrong."""
    files = {"s16.json": captured([PLAIN])}
    main = replayed([(STEP, [Replay(PLAIN)])])
    _unattributed(write(tmp_path, main, files, _details(s8=8, s16=16)), "s8.json", "batch size 8")


def test_a_batch_that_is_filled_up_has_the_next_larger_graph(tmp_path: Path) -> None:
    """Nothing was captured for 8: the graph of 16 was replayed."""
    files = {name: captured([PLAIN]) for name in ("s4.json", "s16.json", "s32.json")}
    main = replayed([(STEP, [Replay(PLAIN)])])
    path = write(tmp_path, main, files, _details(s4=4, s16=16, s32=32))
    assert _ops(path) == ["a", "b", "c"]
    assert "s16.json" in " ".join(_parse(path).warnings)


def test_captures_that_are_alike_but_in_their_ops(tmp_path: Path) -> None:
    """Without a batch size either may be it."""
    wider = [Node(node.op, node.kernel, sizes=(32, 32)) for node in PLAIN]
    files = {"one.json": captured([PLAIN]), "two.json": captured([wider])}
    path = write(tmp_path, replayed([("", [Replay(PLAIN)])]), files)
    _unattributed(path, "fit several captured graphs")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "one.json"),
        (b"{}", "no list of traceEvents"),
        (b"\x1f\x8b damaged", "one.json"),
        (b'{"traceEvents": []}', "no graph was captured"),
    ],
)
def test_a_trace_that_cannot_be_read(tmp_path: Path, content: bytes, said: str) -> None:
    """Whatever it holds, the replay is read, and the file is named."""
    path = write(tmp_path, replayed([(STEP, [Replay(PLAIN)])]), {})
    (tmp_path / "capture_traces" / "one.json").write_bytes(content)
    _unattributed(path, "one.json", said)


def test_a_trace_that_is_cut_short(tmp_path: Path) -> None:
    """Launches may be there without their ops: it is not used."""
    path = write(tmp_path, replayed([(STEP, [Replay(PLAIN)])]), {"one.json": captured([PLAIN])})
    one = tmp_path / "capture_traces" / "one.json"
    whole = one.read_bytes()
    one.write_bytes(whole[: len(whole) - 40])
    _unattributed(path, "one.json", "is cut short")


@pytest.mark.parametrize("lost", ["BeginCapture", "EndCapture"])
def test_a_trace_that_lacks_the_bounds_of_a_capture(tmp_path: Path, lost: str) -> None:
    """The graphs of identical layers would be taken for one another: it is not used."""
    events = captured([PLAIN, PLAIN])
    events.remove(next(entry for entry in events if entry["name"].endswith(lost)))
    path = write(tmp_path, replayed([(STEP, [Replay(PLAIN)])]), {"one.json": events})
    _unattributed(path, "one.json", "outside this trace")


def test_what_is_left_of_a_graph_is_no_other_graph(tmp_path: Path) -> None:
    """Outside of steps: a replay of which a kernel was lost has the kernels of a smaller graph."""
    smaller = [Node("my::y", node.kernel) for node in PLAIN[:2]]
    files = {"one.json": captured([PLAIN]), "two.json": captured([smaller])}
    main = replayed([("", [Replay(PLAIN, lost=frozenset({2}))])])
    assert _ops(write(tmp_path, main, files)) == [None, None]


@pytest.mark.parametrize("details", ["no list", [1, {"file": 3}], {"file": "one.json"}])
def test_a_list_of_files_that_is_none(tmp_path: Path, details: object) -> None:
    """What the list does not say, the file itself may."""
    files = {"one.json": captured([PLAIN])}
    path = write(tmp_path, replayed([(STEP, [Replay(PLAIN)])]), files, details)
    assert _ops(path) == ["a", "b", "c"]


def test_the_range_around_a_capture_tells_its_batch_size(tmp_path: Path) -> None:
    """Without a list: `capture_16_FULL` is not of a step of 32."""
    around = event("user_annotation", "capture_16_FULL", 0, 1000)
    files = {"one.json": [around, *captured([PLAIN])]}
    path = write(tmp_path, replayed([("step[DECODE bs=32]", [Replay(PLAIN)])]), files)
    _unattributed(path, "one.json")


def test_what_really_ran_was_not_captured(tmp_path: Path) -> None:
    """A launch between begin and end of a capture whose kernel the trace holds made no node."""
    events = captured([PLAIN])
    inside = events[2]["ts"] + 2
    events.append(launch(900, inside, name="hipLaunchKernel"))
    events.append(kernel(900, inside + 50, name="first"))
    path = write(tmp_path, replayed([(STEP, [Replay(PLAIN)])]), {"one.json": events})
    assert _ops(path) == ["a", "b", "c"]


def test_graph_captures_may_lie_anywhere(tmp_path: Path) -> None:
    """A file, a folder or a list of files that the user names; gzip is read, too."""
    path = write(tmp_path, replayed([("", [Replay(PLAIN)])]), {})
    away = tmp_path / "away"
    beside = write(away, [], {"one.json": captured([PLAIN])}, _details(one=4)).parent
    folder = beside / "capture_traces"
    zipped = tmp_path / "one.json.gz"
    zipped.write_bytes(gzip.compress((folder / "one.json").read_bytes()))
    for place in (away, folder, folder / "one.json", folder / "execution_details.json", zipped):
        with inputs.using([str(place)]):
            assert _ops(path) == ["a", "b", "c"], place
    assert _ops(path) == [None] * 3


def test_each_rank_has_its_own_captures(tmp_path: Path) -> None:
    """Of traces of several ranks in one folder those of the trace's own rank are taken."""
    wider = [Node(node.op, node.kernel, sizes=(32, 32)) for node in PLAIN]
    path = write(tmp_path, replayed([("", [Replay(PLAIN)])]), {})
    folder = tmp_path / "capture_traces"
    for rank, nodes in enumerate((wider, PLAIN)):
        ranked = text(captured([nodes]), distributedInfo={"rank": rank})
        (folder / f"r{rank}.json").write_text(ranked)
    path.write_text(text(replayed([("", [Replay(PLAIN)])]), distributedInfo={"rank": 1}))
    assert [row["sizes"][0] for row in _rows(path)] == [[16, 16]] * 3


def test_copies_only_matter_as_nodes(tmp_path: Path) -> None:
    """Kernels alone are asked for: the copies of the graph still hold their places."""
    copy = event("gpu_memcpy", "Memcpy DtoD (Device -> Device)", 1_001_900, 2, pid=0, tid=7,
                 device=0, stream=7, correlation=100_001, bytes=64)  # fmt: skip
    events = captured([PLAIN])
    events.insert(-1, event("cuda_runtime", "hipMemcpyAsync", events[-1]["ts"] - 1, 0.5,
                            correlation=500))  # fmt: skip
    path = write(tmp_path, [*replayed([("", [Replay(PLAIN)])]), copy], {"one.json": events})
    rows = _parse(path, kernels_only=True).table().to_pylist()
    assert [row["op"] for row in rows] == [["a"], ["b"], ["c"]]
    assert len(_rows(path)) == len(PLAIN) + 1
