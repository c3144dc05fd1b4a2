"""Nested ranges of a trace: rounding, stacks, modules."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyprof import marker, schema
from pyprof.readers.kineto.columns import Threads, timed
from pyprof.readers.kineto.file.events import from_values
from pyprof.readers.kineto.nest import nested
from pyprof.readers.kineto.ranges import Ranges
from tests.readers.kineto_json import event, kernel, launch, op, read, texts
from tests.texts import with_texts

GPU = kernel(1, 500)


def python(name: str, ts: float, dur: float) -> dict[str, Any]:
    return event("python_function", name, ts, dur)


def rows(folder: Path, events: list[dict[str, Any]]) -> list[tuple[int, int, str]]:
    """Return start and end in microseconds, and the name that the text begins with."""
    table = with_texts(read(folder, [*events, GPU]).ranges).to_pylist()
    return [(r["start"] // 1000, r["end"] // 1000, r["text"].split(",")[0]) for r in table]


def test_parents_come_first(tmp_path: Path) -> None:
    """Of ranges with equal bounds the one that began first, in any file order."""
    events = [
        op("aten::c", 10, 5, External_id=3),
        op("aten::b", 10, 5, External_id=2),
        op("aten::a", 10, 5, External_id=1),
    ]
    assert [name for _, _, name in rows(tmp_path, events)] == ["aten::a", "aten::b", "aten::c"]


@pytest.mark.parametrize(
    ("start", "dur", "parent_end", "expected"),
    [(15, 16, 30, (15, 30)), (29, 50, 29, (29, 79))],
    ids=["child", "neighbour"],
)
def test_a_child_ends_with_its_parent_and_a_neighbour_is_none(
    tmp_path: Path, start: int, dur: int, parent_end: int, expected: tuple[int, int]
) -> None:
    """Microseconds rounded one by one let a child end later: it is clipped."""
    events = [op("aten::a", 10, 20, External_id=1), op("aten::b", start, dur, External_id=2)]
    assert rows(tmp_path, events) == [(10, parent_end, "aten::a"), (*expected, "aten::b")]


def test_a_crossing_annotation_is_not_nested(tmp_path: Path) -> None:
    events = [event("user_annotation", "a", 0, 100), event("user_annotation", "b", 50, 100), GPU]
    assert read(tmp_path, events).ranges["style"].to_pylist() == [schema.NESTED, schema.FREE]


def test_a_range_without_a_length_has_no_end(tmp_path: Path) -> None:
    begun = event("user_annotation", "a", 0, 1)
    del begun["dur"]
    capture = read(tmp_path, [begun, op("aten::mm", 4, 5), GPU])
    assert capture.ranges["end"].to_pylist() == [None, 9_000]


def _frames_or_name(text: str) -> str | tuple[str, ...]:
    """Return the frames of a trace; of any other text, what precedes the first comma."""
    return marker.decode_trace(text) or text.partition(",")[0]


MAIN, MM = python("train.py(3): main", 0, 100), op("aten::mm", 20, 10)
BOTH = ("train.py:3", "model.py:12")
CALLED = {"Call stack": "model.py(30): forward;<built-in f>;train.py(3): <module>"}
OWN, OF_LAYER = (marker.encode_trace([line]) for line in ("train.py:5", "a.py:1"))
PATH = {"Module Hierarchy": "TOP(Net)::forward.fc(Linear)::forward"}
FUNCTION = op("MyFunction", 10, 50, Sequence_number=1, Fwd_thread_id=0)


def test_lines_of_frames_are_those_of_functions(tmp_path: Path) -> None:
    """As a note says, unless markers state exact lines."""
    said = "note: lines are those where functions begin"
    own = event("user_annotation", OWN, 19, 12)
    for recorded, is_said in (([MAIN, MM], True), ([MM], False), ([MAIN, own, MM], False)):
        warnings = read(tmp_path, [*recorded, GPU]).warnings
        assert any(text.startswith(said) for text in warnings) is is_said


NET = python("nn.Module: Net_0", 0, 100)
AROUND = {
    # the frames around an op are its trace, once, outermost first, without builtins
    "frames around ops": (
        [MAIN, python("model.py(12): forward", 10, 80), python("<built-in method mm>", 15, 30),
         op("aten::matmul", 20, 20), op("aten::mm", 22, 10), op("aten::add", 60, 5)],
        [BOTH, "aten::matmul", "aten::mm", BOTH, "aten::add"],
    ),
    # those between two ops belong to the inner one
    "frames inside an op": (
        [MAIN, FUNCTION, python("fn.py(7): forward", 12, 40), MM],
        [("train.py:3",), "MyFunction", ("train.py:3", "fn.py:7"), "aten::mm"],
    ),
    # as of a Triton kernel; the launch inside an op is the op's, and a wait launches nothing
    "frames around a launch in no op": (
        [MAIN, launch(1, 5), python("model.py(12): forward", 10, 80), op("aten::mm", 20, 10),
         launch(2, 22), kernel(2, 600), launch(3, 60), kernel(3, 700),
         launch(4, 70, name="cudaStreamSynchronize")],
        [BOTH, "aten::mm", ("train.py:3",), BOTH],
    ),
    # the lines of PyProf's own trace are exact
    "frames around an own trace": (
        [MAIN, event("user_annotation", OWN, 10, 50), python("wrap.py(1): wrapper", 12, 40), MM],
        [("train.py:5",), "aten::mm"],
    ),
    # a `Call stack` has the innermost frame first, and is put around the outermost op
    "the stack of 2021": (
        [event("Operator", "aten::matmul", 0, 20, External_id=1, **CALLED),
         event("Operator", "aten::mm", 5, 10, External_id=2, **CALLED)],
        [("train.py:3", "model.py:30"), "aten::matmul", "aten::mm"],
    ),
    "calls of modules": (
        [NET, python("nn.Module: Linear_1", 10, 50), MM],
        ["layer:Net_0", "layer:Linear_1", "aten::mm"],
    ),
    # PyProf's layers have paths, so class names would add nothing
    "modules around an own layer": (
        [NET, event("user_annotation", "layer:net.fc", 10, 60),
         event("user_annotation", OF_LAYER, 11, 50), MM],
        ["layer:net.fc", ("a.py:1",), "aten::mm"],
    ),
    # the modules of a scripted model, outermost first, once each
    "a hierarchy of modules": (
        [op("aten::linear", 0, 20, **PATH), op("aten::addmm", 5, 10, **PATH)],
        ["layer:TOP(Net)", "layer:fc(Linear)", "aten::linear", "aten::addmm"],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("events", "expected"), AROUND.values(), ids=AROUND)
def test_stacks_and_modules_are_ranges_around_ops(
    events: list[dict[str, Any]], expected: list[str | tuple[str, ...]], tmp_path: Path
) -> None:
    written = texts(read(tmp_path, [*events, GPU]))
    assert [_frames_or_name(text) for text in written] == expected
    if expected[0] == BOTH:
        assert marker.decode_functions(written[0]) == ("main", "forward")


SPANS = st.lists(
    st.tuples(st.integers(0, 40), st.integers(0, 20), st.booleans()), min_size=1, max_size=25
)


@settings(deadline=None)
@given(SPANS)
def test_every_range_stays(spans: list[tuple[int, int, bool]]) -> None:
    ranges = Ranges(Threads())
    for kind in (True, False):
        chosen = [span for span in spans if span[2] is kind]
        written = [event("any", "aten::a", start, length) for start, length, _ in chosen]
        ranges.add(timed(from_values(written)), ops=kind)
    columns = ranges.columns()
    layout = nested(columns, ranges.python())
    assert sorted(layout.order.tolist()) == list(range(len(spans)))
    assert (layout.end >= columns.start).all()
    assert (layout.end <= columns.end).all()
