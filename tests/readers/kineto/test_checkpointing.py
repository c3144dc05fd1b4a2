"""Ops that gradient checkpointing left before they ran."""

from pathlib import Path

from pyprof import marker
from tests.readers.kineto_calls import Called, call, events
from tests.readers.kineto_json import read, texts

X = [4, 6]


def _hooks() -> Called:
    return call("detach", [X])


def _node(number: int, *inside: Called) -> Called:
    return call("MulBackward0", [X], *inside, seq=number, forward=1)


def _stopped(folder: Path, *calls: Called) -> list[str]:
    decoded = map(marker.decode_seq, texts(read(folder, events(calls))))
    return [found.name for found in decoded if found.stopped]


def test_each_node_has_its_own(tmp_path: Path) -> None:
    """Two checkpoints are two forward passes that end early; what is outside of nodes does not."""
    forward = call("mul", [X, X], _hooks(), seq=3)
    nodes = [
        _node(at, call("sin", [X], _hooks(), seq=at + 10), call(last, [X], seq=at + 11))
        for at, last in ((1, "cos"), (2, "gelu"))
    ]
    assert _stopped(tmp_path, forward, *nodes) == ["aten::cos", "aten::gelu"]


def test_with_what_is_around_it_as_far_as_the_node(tmp_path: Path) -> None:
    """A call that was left inside of a call leaves that, too."""
    last = call("linear", [X], call("addmm", [X], _hooks(), seq=12), seq=12)
    assert _stopped(tmp_path, _node(1, last)) == ["aten::linear", "aten::addmm"]


def test_views_do_not_stop(tmp_path: Path) -> None:
    """A pass that ended in a view ended by itself."""
    assert not _stopped(
        tmp_path, _node(1, call("sin", [X], _hooks(), seq=2), call("t", [X], seq=3))
    )


def test_a_text_says_it_in_the_end() -> None:
    text = marker.encode_seq("aten::mul", seq=3, op_id=4, sizes=[X, X], inputs=["", ""])
    before, after = marker.decode_seq(text), marker.decode_seq(text + marker.STOPPED)
    assert (before.stopped, after.stopped) == (False, True)
    assert (after.name, after.seq, after.op_id) == (before.name, before.seq, before.op_id)
    assert after.call == before.call
