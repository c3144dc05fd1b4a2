"""Nested ranges of a trace: rounding, stacks, modules."""

from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from pyprof import marker, schema
from pyprof.arrays import MISSING
from pyprof.readers.kineto import nest
from pyprof.readers.kineto.columns import Threads, timed
from pyprof.readers.kineto.file.events import from_values
from pyprof.readers.kineto.nest import FrameChains, nested
from pyprof.readers.kineto.op_texts import OP
from pyprof.readers.kineto.ranges import Columns, Ranges
from tests.known import known
from tests.readers.kineto_json import event, kernel, op, read, texts
from tests.texts import spelt

GPU = kernel(1, 500)


def python(name: str, ts: float, dur: float) -> dict[str, Any]:
    return event("python_function", name, ts, dur)


def rows(folder: Path, events: list[dict[str, Any]]) -> list[tuple[int, int, str]]:
    """Return start and end in microseconds, and the name that the text begins with."""
    table = spelt(read(folder, [*events, GPU]).ranges).to_pylist()
    return [(r["start"] // 1000, r["end"] // 1000, r["text"].split(",")[0]) for r in table]


def test_parents_come_first(tmp_path: Path) -> None:
    """Of ranges with equal bounds the one that began first, in any file order."""
    events = [
        op("aten::c", 10, 5, External_id=3),
        op("aten::b", 10, 5, External_id=2),
        op("aten::a", 10, 5, External_id=1),
    ]
    assert [name for _, _, name in rows(tmp_path, events)] == ["aten::a", "aten::b", "aten::c"]


def test_child_ends_with_its_parent(tmp_path: Path) -> None:
    """Microseconds rounded one by one let a child end later: it is clipped."""
    events = [op("aten::a", 10, 20, External_id=1), op("aten::b", 15, 16, External_id=2)]
    assert rows(tmp_path, events) == [(10, 30, "aten::a"), (15, 30, "aten::b")]


def test_neighbour_does_not_become_a_child(tmp_path: Path) -> None:
    """A range that begins as the one before ends is its sibling."""
    events = [op("aten::a", 10, 20, External_id=1), op("aten::b", 29, 50, External_id=2)]
    assert rows(tmp_path, events) == [(10, 29, "aten::a"), (29, 79, "aten::b")]


def test_a_crossing_annotation_is_not_nested(tmp_path: Path) -> None:
    events = [event("user_annotation", "a", 0, 100), event("user_annotation", "b", 50, 100), GPU]
    assert read(tmp_path, events).ranges["style"].to_pylist() == [schema.NESTED, schema.FREE]


def test_a_range_without_a_length_has_no_end(tmp_path: Path) -> None:
    begun = event("user_annotation", "a", 0, 1)
    del begun["dur"]
    capture = read(tmp_path, [begun, op("aten::mm", 4, 5), GPU])
    assert capture.ranges["end"].to_pylist() == [None, 9_000]


def test_stack_from_python_functions(tmp_path: Path) -> None:
    """The frames around an op are its trace, once, outermost first, without builtins."""
    events = [
        python("train.py(3): main", 0, 100),
        python("model.py(12): forward", 10, 80),
        python("<built-in method mm of type object at 0x7f>", 15, 30),
        op("aten::matmul", 20, 20),
        op("aten::mm", 22, 10),
        op("aten::add", 60, 5),
    ]
    found = texts(read(tmp_path, [*events, GPU]))
    assert [marker.classify(t).name for t in found] == ["TRACE", "SEQ", "SEQ", "TRACE", "SEQ"]
    assert marker.decode_trace(found[0]) == ("train.py:3", "model.py:12")
    assert marker.decode_functions(found[0]) == ("main", "forward")
    assert found[0] == found[3]


def test_frames_inside_an_op(tmp_path: Path) -> None:
    """Frames between two ops belong to the inner one."""
    events = [
        python("train.py(3): main", 0, 100),
        op("MyFunction", 10, 50, Sequence_number=1, Fwd_thread_id=0),
        python("fn.py(7): forward", 12, 40),
        op("aten::mm", 20, 10),
    ]
    found = [marker.decode_trace(t) for t in texts(read(tmp_path, [*events, GPU]))]
    assert [frames for frames in found if frames] == [("train.py:3",), ("train.py:3", "fn.py:7")]


def test_own_trace_wins_over_frames(tmp_path: Path) -> None:
    """Inside PyProf's own trace marker no other is added: its lines are exact."""
    own = marker.encode_trace(["train.py:5"])
    events = [
        python("train.py(3): main", 0, 100),
        event("user_annotation", own, 10, 50),
        python("wrap.py(1): wrapper", 12, 40),
        op("aten::mm", 20, 10),
    ]
    found = texts(read(tmp_path, [*events, GPU]))
    assert [marker.decode_trace(t) for t in found] == [("train.py:5",), ()]


def test_stack_of_2021(tmp_path: Path) -> None:
    """A `Call stack` has the innermost frame first, and is put around the outermost op."""
    stack = "model.py(30): forward;<built-in f>;train.py(3): <module>"
    events = [
        event("Operator", "aten::matmul", 0, 20, External_id=1, Call_stack=stack),
        event("Operator", "aten::mm", 5, 10, External_id=2, Call_stack=stack),
    ]
    found = texts(read(tmp_path, [*events, GPU]))
    assert [marker.decode_trace(t) for t in found] == [("train.py:3", "model.py:30"), (), ()]


def test_module_calls_are_layers_around_their_ops(tmp_path: Path) -> None:
    events = [
        python("nn.Module: Net_0", 0, 100),
        python("nn.Module: Linear_1", 10, 50),
        op("aten::linear", 20, 10),
    ]
    found = texts(read(tmp_path, [*events, GPU]))
    assert found == ["layer:Net_0", "layer:Linear_1", "aten::linear"]


def test_own_layers_win_over_modules(tmp_path: Path) -> None:
    """PyProf's layers have paths, so class names would add nothing."""
    events = [
        python("nn.Module: Net_0", 0, 100),
        event("user_annotation", "layer:net.fc", 10, 60),
        event("user_annotation", marker.encode_trace(["a.py:1"]), 11, 50),
        op("aten::linear", 20, 10),
    ]
    found = texts(read(tmp_path, [*events, GPU]))
    assert [marker.classify(t).name for t in found] == ["LAYER", "TRACE", "SEQ"]


def test_module_hierarchy(tmp_path: Path) -> None:
    """The modules of a scripted model are layers around the op, outermost first, once each."""
    path = "TOP(Net)::forward.fc(Linear)::forward"
    events = [
        op("aten::linear", 0, 20, Module_Hierarchy=path),
        op("aten::addmm", 5, 10, Module_Hierarchy=path),
    ]
    found = texts(read(tmp_path, [*events, GPU]))
    assert [marker.layer_name(t) for t in found[:2]] == ["TOP(Net)", "fc(Linear)"]
    assert found[2:] == ["aten::linear", "aten::addmm"]


SPANS = st.lists(
    st.tuples(st.integers(0, 40), st.integers(0, 20), st.booleans()), min_size=1, max_size=25
)


@settings(deadline=None)
@given(SPANS)
def test_every_range_stays(spans: list[tuple[int, int, bool]]) -> None:
    """Whatever ranges cross, each comes out once, and none ends before it starts."""
    ranges = Ranges(Threads())
    for kind in (True, False):
        chosen = [span for span in spans if span[2] is kind]
        written = [event("any", "aten::a", start, length) for start, length, _ in chosen]
        ranges.add(timed(from_values(written)), ops=kind)
    columns = ranges.columns()
    layout = nested(columns, ranges.python(), FrameChains())
    assert sorted(layout.order.tolist()) == list(range(len(spans)))
    assert (layout.end >= columns.start).all()
    assert (layout.end <= columns.end).all()


@given(
    st.lists(
        st.tuples(
            st.booleans(),
            st.integers(0, 1),
            st.integers(0, 12),
            st.sampled_from([0, 1, 2, 3, 8, 9_000, None]),
        ),
        max_size=14,
    )
)
def test_the_fast_path_nests_as_the_sweep_does(
    listed: list[tuple[bool, int, int, int | None]],
) -> None:
    """Unless a range goes on after its parent.

    Python calls may cross anything.
    """
    listed.sort(key=lambda row: row[0])  # Python's come last
    count, all_ = sum(not row[0] for row in listed), len(listed)
    thread, start = (np.array([row[n] for row in listed], np.int64) for n in (1, 2))
    end = np.array(
        [nest._FOREVER if length is None else ts + length for _, _, ts, length in listed], np.int64
    )
    order = np.lexsort((np.arange(all_), -end, start, thread))
    none = np.full(all_, -1)
    columns = Columns(start, end, thread, np.full(all_, OP), np.arange(all_), *[none] * 5)
    sweep = nest._Sweep(columns, end, count)
    sweep.run(order)
    calls = known(nest._calls(order, thread, start, end, count))
    assert calls.tolist() == sweep.calls
    parents = nest._parents(order[order < count], thread, start, end)
    crossing = [
        (a, b)
        for a, b in permutations(range(count), 2)
        if thread[a] == thread[b] and start[a] < start[b] < end[a] < end[b]
    ]
    assert (parents is None) == bool(crossing)
    if parents is not None:
        assert parents.tolist() == sweep.parents
        assert sweep.ends == end.tolist()


@given(st.lists(st.tuples(st.integers(MISSING, 24), st.booleans()), min_size=1, max_size=25))
def test_the_op_around_each_op_is_found(tree: list[tuple[int, bool]]) -> None:
    """The nearest one, and the nearest that works, by jumps and one by one."""
    parent = np.array([min(above, place - 1) for place, (above, _) in enumerate(tree)])
    chosen = np.array([flag for _, flag in tree])

    def around(place: int) -> list[int]:
        found = []
        while (place := int(parent[place])) != MISSING:
            found.append(place)
        return found

    nearest = [next((p for p in around(n) if chosen[p]), MISSING) for n in range(len(tree))]
    assert nest.nearest(parent, chosen).tolist() == nearest
    assert nest.within(chosen, parent).tolist() == [
        any(chosen[p] for p in around(n)) for n in range(len(tree))
    ]
