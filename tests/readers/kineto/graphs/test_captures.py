"""Traces of graph captures next to a trace of replays, in any place and state."""

import gzip
from pathlib import Path

import pytest

from pyprof import readers
from pyprof.readers import settings as inputs
from tests.known import known
from tests.readers import kineto_graphs
from tests.readers.kineto_graphs import PLAIN, STEP, Node, Replay, captured, replayed, write
from tests.readers.kineto_json import event, text


def test_graph_captures_do_not_change_the_trace(tmp_path: Path) -> None:
    """Their ranges, calls and times never ran in it: only parse uses them."""
    main = replayed([("step[DECODE bs=4]", [Replay(PLAIN)])])
    alone = readers.read(write(tmp_path / "alone", main, {}))
    both = readers.read(write(tmp_path / "both", main, {"one.json": captured([PLAIN])}))
    for name in ("activities", "calls", "ranges", "devices"):
        assert getattr(both, name).equals(getattr(alone, name)), name
    assert both.threads.slice(0, len(alone.threads)).equals(alone.threads)
    assert len(known(both.graph_captures).ranges) == len(PLAIN)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "one.json"),
        (b"{}", "no list of traceEvents"),
        (b"\x1f\x8b damaged", "one.json"),
        (b'{"traceEvents": []}', "no graph was captured"),
        # it may have launches without their ops
        (text(captured([PLAIN])).encode()[:-40], "is cut short"),
    ],
)
def test_a_graph_capture_that_cannot_be_read_is_named(
    tmp_path: Path, content: bytes, said: str
) -> None:
    path = write(tmp_path, replayed([(STEP, [Replay(PLAIN)])]), {})
    (tmp_path / "capture_traces" / "one.json").write_bytes(content)
    kineto_graphs.unattributed(path, "one.json", said)


@pytest.mark.parametrize("details", ["no list", [1, {"file": 3}], {"file": "one.json"}])
def test_an_invalid_list_of_graph_captures_is_ignored(tmp_path: Path, details: object) -> None:
    """The files themselves may have what it lacks."""
    files = {"one.json": captured([PLAIN])}
    path = write(tmp_path, replayed([(STEP, [Replay(PLAIN)])]), files, details)
    assert kineto_graphs.ops(path) == ["a", "b", "c"]


def test_a_capture_takes_its_batch_size_from_the_range_around_it(tmp_path: Path) -> None:
    """Without a list: `capture_16_FULL` is for a step of 9, not for one of 32."""
    around = event("user_annotation", "capture_16_FULL", 0, 1000)
    files = {"one.json": [around, *captured([PLAIN])]}
    path = write(tmp_path, replayed([("step[DECODE bs=32]", [Replay(PLAIN)])]), files)
    kineto_graphs.unattributed(path, "one.json")
    path = write(tmp_path, replayed([("step[DECODE bs=9]", [Replay(PLAIN)])]), files)
    assert kineto_graphs.ops(path) == ["a", "b", "c"]


def test_graph_captures_may_lie_anywhere(tmp_path: Path) -> None:
    path = write(tmp_path, replayed([("", [Replay(PLAIN)])]), {})
    away = tmp_path / "away"
    beside = write(away, [], {"one.json": captured([PLAIN])}, kineto_graphs.details(one=4)).parent
    folder = beside / "capture_traces"
    zipped = tmp_path / "one.json.gz"
    zipped.write_bytes(gzip.compress((folder / "one.json").read_bytes()))
    for place in (away, folder, folder / "one.json", folder / "execution_details.json", zipped):
        with inputs.using([str(place)]):
            assert kineto_graphs.ops(path) == ["a", "b", "c"], place
    assert kineto_graphs.ops(path) == [None] * 3


def test_each_rank_has_its_own_captures(tmp_path: Path) -> None:
    wider = [Node(node.op, node.kernel, sizes=(32, 32)) for node in PLAIN]
    path = write(tmp_path, replayed([("", [Replay(PLAIN)])]), {})
    folder = tmp_path / "capture_traces"
    for rank, nodes in enumerate((wider, PLAIN)):
        ranked = text(captured([nodes]), distributedInfo={"rank": rank})
        (folder / f"r{rank}.json").write_text(ranked)
    path.write_text(text(replayed([("", [Replay(PLAIN)])]), distributedInfo={"rank": 1}))
    assert [row["sizes"][0] for row in kineto_graphs.rows(path)] == [[16, 16]] * 3
