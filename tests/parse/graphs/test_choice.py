"""Which captured graph a replay is: by batch size, and if several fit."""

from pathlib import Path

from tests.readers import kineto_graphs
from tests.readers.kineto_graphs import PLAIN, STEP, Node, Replay, captured, replayed, write


def test_a_step_that_lost_a_whole_graph_may_have_lost_most_of_another(tmp_path: Path) -> None:
    """The rest of five kernels looks like a graph of one, whose op is another."""
    one, last = [Node("my::one", "p")], [Node("my::last", "q")]
    five = [Node(f"my::five_{place}", "p") for place in range(5)]
    replays = [
        Replay(one),
        Replay(five, lost=frozenset(range(4))),
        Replay(last, lost=frozenset({0})),
    ]
    main = replayed([("step[DECODE bs=4]", replays)])
    path = write(
        tmp_path, main, {"s4.json": captured([one, five, last])}, kineto_graphs.details(s4=4)
    )
    assert kineto_graphs.ops(path) == [None, None]


def test_replays_that_fit_two_graphs_are_refused(tmp_path: Path) -> None:
    """Without batch sizes, a replay that lost a row may be either captured graph."""
    other = [Node(node.op + "b", node.kernel) for node in kineto_graphs.LAYERS]
    files = {"one.json": captured([kineto_graphs.LAYERS]), "two.json": captured([other])}
    replay = Replay(kineto_graphs.LAYERS, lost=frozenset({4}))
    assert set(kineto_graphs.ops(write(tmp_path, replayed([("", [replay])]), files))) == {None}


def test_the_capture_of_another_model_is_refused(tmp_path: Path) -> None:
    other = [Node("my::z", "third"), Node("my::y", "fourth"), Node("my::x", "first")]
    path = write(tmp_path, replayed([(STEP, [Replay(PLAIN)])]), {"one.json": captured([other])})
    kineto_graphs.unattributed(path, "one.json", "3 of 3 replayed kernels and copies have no op")


def test_a_batch_size_that_was_not_written(tmp_path: Path) -> None:
    """The list names the right file, which is missing; a larger batch's shapes would be wrong."""
    files = {"s16.json": captured([PLAIN])}
    main = replayed([(STEP, [Replay(PLAIN)])])
    kineto_graphs.unattributed(
        write(tmp_path, main, files, kineto_graphs.details(s8=8, s16=16)), "s8.json", "batch size 8"
    )


def test_a_padded_batch_has_the_next_larger_graph(tmp_path: Path) -> None:
    """Nothing was captured for 8 and 3: the graphs of 16 and 4 were replayed."""
    files = {
        f"s{size}.json": captured([[Node(f"{node.op}{size}", node.kernel) for node in PLAIN]])
        for size in (4, 16, 32)
    }
    main = replayed([(STEP, [Replay(PLAIN)]), ("step[DECODE bs=3]", [Replay(PLAIN)])])
    path = write(tmp_path, main, files, kineto_graphs.details(s4=4, s16=16, s32=32))
    assert kineto_graphs.ops(path) == ["a16", "b16", "c16", "a4", "b4", "c4"]
    assert "s16.json" in " ".join(kineto_graphs.records(path).warnings)


def test_captures_that_differ_in_ops_alone_are_refused(tmp_path: Path) -> None:
    """Without a batch size it may be either."""
    wider = [Node(node.op, node.kernel, sizes=(32, 32)) for node in PLAIN]
    files = {"one.json": captured([PLAIN]), "two.json": captured([wider])}
    path = write(tmp_path, replayed([("", [Replay(PLAIN)])]), files)
    kineto_graphs.unattributed(path, "of graphs left without an op: several captured graphs")


def test_an_incomplete_graph_is_no_smaller_graph(tmp_path: Path) -> None:
    """Outside of steps, a replay that lost a kernel has the kernels of a smaller graph."""
    smaller = [Node("my::y", node.kernel) for node in PLAIN[:2]]
    files = {"one.json": captured([PLAIN]), "two.json": captured([smaller])}
    main = replayed([("", [Replay(PLAIN, lost=frozenset({2}))])])
    assert kineto_graphs.ops(write(tmp_path, main, files)) == [None, None]
