"""Ranges of a trace, and the threads of their forward ops."""

from pathlib import Path

import pytest

from pyprof import marker
from tests.readers.kineto_json import event, kernel, op, read, texts


def test_arrows_of_two_windows_with_one_id(tmp_path: Path) -> None:
    """Arrow ids start at 1 in each window; none leads to another window or id."""
    arrow = {"cat": "fwdbwd", "name": "fwdbwd", "id": 1, "pid": 7}
    events = [kernel(1, 5)]
    for begin, forward, number in ((0, 22, 4), (100, 21, 5)):
        events += [
            op("aten::mm", begin + 1, 5, tid=21, Sequence_number=begin, Fwd_thread_id=0),
            op("aten::mm", begin + 1, 5, tid=22, Sequence_number=begin, Fwd_thread_id=0),
            op("MmBackward0", begin + 20, 5, tid=23, Sequence_number=begin, Fwd_thread_id=number),
            arrow | {"ph": "f", "ts": begin + 20, "tid": 23},
            arrow | {"ph": "s", "ts": begin + 1, "tid": forward},
        ]
    events += [
        op("aten::mm", 201, 5, tid=21, Sequence_number=200, Fwd_thread_id=0),
        op("MmBackward0", 220, 5, tid=23, Sequence_number=200, Fwd_thread_id=6),
        arrow | {"ph": "f", "ts": 220, "tid": 23},
        arrow | {"ph": "f", "ts": 3, "tid": 23, "id": 2},
        arrow | {"ph": "s", "ts": 201, "tid": 22, "id": 2},
        op("MmBackward0", 230, 5, tid=23, Sequence_number=200, Fwd_thread_id=7),
        arrow | {"ph": "f", "ts": 230, "tid": 23, "id": 3},
    ]
    rows = read(tmp_path, events).ranges.to_pylist()
    told = {
        row["start"]: row["forward_thread"] for row in rows if row["forward_thread"] is not None
    }
    assert told == {20_000: 1, 120_000: 0, 220_000: 0, 230_000: 0}


def test_forward_thread_by_number(tmp_path: Path) -> None:
    """Without arrows it is the thread with most sequence numbers in common."""
    events = [
        op("aten::mm", 1, 2, tid=21, Sequence_number=9, Fwd_thread_id=0),
        op("aten::mm", 4, 2, tid=22, Sequence_number=9, Fwd_thread_id=0),
        op("aten::mm", 7, 2, tid=22, Sequence_number=10, Fwd_thread_id=0),
        op("MmBackward0", 20, 5, tid=23, Sequence_number=9, Fwd_thread_id=4),
        op("MmBackward0", 30, 5, tid=23, Sequence_number=10, Fwd_thread_id=4),
        kernel(1, 5),
    ]
    rows = read(tmp_path, events).ranges.to_pylist()
    assert [row["forward_thread"] for row in rows] == [None, None, None, 1, 1]


def test_own_markers_are_kept_verbatim(tmp_path: Path) -> None:
    written = marker.encode_op(marker.Call("torch", "cat", ('say "ü"\n',)))
    name = marker.encode_annotation(written)
    assert name != written
    capture = read(tmp_path, [event("user_annotation", name, 1, 9), kernel(1, 5)])
    assert texts(capture) == [written]


def test_own_markers_are_not_ops(tmp_path: Path) -> None:
    names = [
        "layer:a::b",
        marker.encode_trace(["a.py:1"]),
        "{'mod': 'a::b', 'op': 'c', 'args': []}",
    ]
    events = [op(name, ts, 9 - 2 * ts, External_id=ts) for ts, name in enumerate(names)]
    assert texts(read(tmp_path, [*events, kernel(1, 50)])) == names


@pytest.mark.parametrize("name", ["aten::mm", "MmBackward0"])
def test_an_annotation_with_the_name_of_an_op_is_a_layer(name: str, tmp_path: Path) -> None:
    capture = read(tmp_path, [event("user_annotation", name, 1, 9), kernel(1, 5)])
    assert texts(capture) == [marker.encode_layer(name)]


def test_annotations_of_2021_are_not_ops(tmp_path: Path) -> None:
    """Until torch 1.12 annotations had the category of ops; they stay as they are."""
    events = [event("Operator", "ProfilerStep#5", 1, 9, External_id=1), kernel(1, 5)]
    assert texts(read(tmp_path, events)) == ["ProfilerStep#5"]
