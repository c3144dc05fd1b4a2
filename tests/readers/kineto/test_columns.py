"""Integer columns from arbitrary values in a trace."""

import json
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pyprof import readers
from pyprof.readers.kineto.columns import ints, microseconds, times, whole_number
from tests.commands import run
from tests.readers.kineto_json import Event, kernel, launch, op, read, text

_JSON = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(-(2**31) - 2, 2**31 + 1),
    st.floats(),
    st.text(max_size=4),
    st.integers().map(str),
    st.lists(st.integers(), max_size=2),
    st.dictionaries(st.text(max_size=2), st.integers(), max_size=1),
)


@given(st.lists(_JSON), st.sampled_from([pa.int64(), pa.int32()]))
@example([2.5, 1], pa.int64())  # Arrow would truncate it
@example([7, 2.5, None], pa.int64())
def test_a_column_holds_what_each_value_stands_for(values: list[object], kind: pa.DataType) -> None:
    limit = 2 ** (kind.bit_width - 1)
    numbers = [whole_number(value) for value in values]
    fitting = [n if n is not None and -limit <= n < limit else None for n in numbers]
    column = ints(values, kind)
    assert column.type == kind
    assert column.to_pylist() == fitting


@given(st.lists(_JSON))
@example([True, 4.5])
def test_a_boolean_is_not_a_time(values: list[object]) -> None:
    """NumPy would convert true to 1."""
    assert [time is None for time in times(values).to_pylist()] == [
        microseconds(value) is None for value in values
    ]


ODD: list[object] = [None, [], [1], {}, {"a": 1}, 1.5, True, 10**30, -(10**30), "", "x", 2**64]
"""What no trace holds in place of a number or a name."""


@pytest.mark.parametrize("key", ["pid", "tid", "name", "ts", "dur", "args", "cat", "ph", "id"])
def test_values_of_wrong_types_cost_only_their_event(key: str, tmp_path: Path) -> None:
    flow: Event = {"ph": "s", "cat": "fwdbwd", "name": "fwdbwd", "id": 1, "pid": 7, "tid": 1,
                   "ts": 1}  # fmt: skip
    frame = op("train.py(3): main", 0, 90) | {"cat": "python_function"}
    events = [kernel(1, 10), launch(1, 2), op("aten::mm", 1, 5), flow, frame]
    odd = [{**event, key: value} for value in ODD for event in events]
    (tmp_path / "trace.json").write_text(text([*odd, kernel(2, 20), launch(2, 12)]))
    done = run("prof", "--csv", "-c", "kernel,sil", tmp_path / "trace.json")
    assert done.code == 0
    assert '"gemm","5000"' in done.stdout


def test_an_hip_call_may_have_any_name(tmp_path: Path) -> None:
    call = launch(1, 2) | {"name": ["x"]}
    call["args"]["shared memory"] = 5
    assert read(tmp_path, [kernel(1, 10), call]).activities["smem"].to_pylist() == [2048]


@pytest.mark.parametrize("value", ["5", "5.0", 5])
def test_a_duration_may_be_a_text(value: object, tmp_path: Path) -> None:
    """Chrome's viewer accepts it; a range of unknown length would enclose all others."""
    events = [event for n in range(3) for event in
              (op("aten::mm", 10 * n, 5) | {"dur": value}, launch(n + 1, 10 * n + 1),
               kernel(n + 1, 100 + n) | {"dur": value})]  # fmt: skip
    capture = read(tmp_path, events)
    assert capture.ranges["end"].to_pylist() == [5_000, 15_000, 25_000]
    spans = zip(*(capture.activities[name].to_pylist() for name in ("start", "end")), strict=True)
    assert [end - start for start, end in spans] == [5_000] * 3


@pytest.mark.parametrize("value", [None, "soon", [1], 1e300, "1e300", "inf", True])
def test_events_without_a_time_are_kept_and_warned_of(value: object, tmp_path: Path) -> None:
    capture = read(tmp_path, [kernel(1, 10), kernel(2, 20) | {"ts": value}])
    assert capture.activities.num_rows == 2
    assert capture.activities["start"].null_count == 1
    said = readers.read(tmp_path / "trace.json").warnings
    assert any("1 of 2" in text for text in said), said


def test_deeply_nested_lists_are_not_sizes(tmp_path: Path) -> None:
    deep: object = []
    for _ in range(900):
        deep = [deep]
    keys = ("Input Dims", "Input type", "Input Strides", "Concrete Inputs")
    event = op("aten::mm", 1, 5)
    event["args"] = dict.fromkeys(keys, deep)
    (tmp_path / "trace.json").write_text(text([event, launch(1, 2), kernel(1, 10)]))
    done = run("prof", "--csv", "-c", "op", tmp_path / "trace.json")
    assert (done.code, done.stdout.splitlines()[1:]) == (0, ['"mm"'])


def test_invalid_element_counts_of_a_collective_are_dropped(tmp_path: Path) -> None:
    event = kernel(1, 10)
    event["args"] |= {"Collective name": "allreduce", "In msg nelems": [[[1]]], "Group size": 2}
    (said,) = read(tmp_path, [event]).activities["collective"].to_pylist()
    assert json.loads(said) == {"name": "allreduce", "size": 2}
