"""Traces of torch_npu: hardware work, its launches, and shapes written as text."""

from pathlib import Path
from typing import Any

import pytest

from pyprof import readers
from pyprof.parse import parse
from tests.readers.ascend_json import BASE_US, HARDWARE, OP_THREAD, STREAM, call, write, x
from tests.readers.test_nsys import rows


@pytest.mark.parametrize(
    ("queued", "arrow"),
    [(False, True), (False, False), (True, True)],
    ids=["call and arrow", "call", "arrow past a queue"],
)
def test_hardware_work_comes_out_once_with_its_op(
    tmp_path: Path, *, queued: bool, arrow: bool
) -> None:
    events = [each for step in range(3) for each in call(step, queued=queued, arrow=arrow)]
    capture = readers.read(write(tmp_path / "trace_view.json", events))
    assert capture.warnings == ()
    assert rows(capture.devices, "device", "name") == [(0, "Ascend NPU")]
    found = parse(capture).table().to_pylist()
    assert [row["kLongName"] for row in found] == ["MatMulV2"] * 3
    assert [row["kDuration"] for row in found] == [55_250] * 3
    assert {(row["device"], row["stream"], row["tid"]) for row in found} == {(0, STREAM, OP_THREAD)}
    assert [row["op"] for row in found] == [["linear"]] * 3
    assert found[0]["sizes"] == [[8, 16], [32, 16], [32]]
    assert found[0]["dtypes"] == ["float16"] * 3
    assert found[0]["trace"] == ["/a/train.py:30", "/a/train.py:12"]


def test_threads_that_repeat_the_streams_work_are_left_out(tmp_path: Path) -> None:
    step = {"ph": "M", "name": "thread_name", "pid": HARDWARE, "tid": 70_001,
            "args": {"name": "Step Trace(Model ID:1)"}}  # fmt: skip
    events = [step, x(HARDWARE, 70_001, "Iteration 1", 0, 999), x(HARDWARE, STREAM, "Add", 4, 5)]
    assert _read_rows(tmp_path, events, "name") == [("Add",)]


@pytest.mark.parametrize("name", ["EVENT_WAIT", "EVENT_RECORD_SQE", "N/A"])
def test_a_stream_that_waits_for_another_does_no_work(name: str, tmp_path: Path) -> None:
    wait = x(HARDWARE, 3, name, 0, 99, **{"Task Type": "EVENT_WAIT_SQE"})
    add = x(HARDWARE, STREAM, "Add", 4, 5, **{"Task Type": "AI_VECTOR_CORE"})
    assert _read_rows(tmp_path, [wait, add], "name") == [("Add",)]


def _read_rows(folder: Path, events: list[dict[str, Any]], *names: str) -> list[tuple[object, ...]]:
    return rows(readers.read(write(folder / "trace_view.json", events)).activities, *names)


def test_work_without_any_link_is_kept(tmp_path: Path) -> None:
    events = [x(HARDWARE, STREAM, "MatMulV2", 400, 55.25), x(HARDWARE, 3, "Notify_Wait", 500, 2)]
    expected = [(2, None, "MatMulV2"), (3, None, "Notify_Wait")]
    assert _read_rows(tmp_path, events, "stream", "corr", "name") == expected


def test_times_are_exact_to_the_nanosecond(tmp_path: Path) -> None:
    """As floats of microseconds since 1970 both events would begin at the same time."""
    events = [x(HARDWARE, STREAM, name, at, 0.013) for name, at in (("b", 0.018), ("a", 0.005))]
    base = BASE_US * 1000
    assert _read_rows(tmp_path, events, "start", "end", "name") == [
        (base + 5, base + 18, "a"),
        (base + 18, base + 31, "b"),
    ]


def test_times_with_more_digits_are_as_exact_as_floats(tmp_path: Path) -> None:
    event = {**x(HARDWARE, STREAM, "a", 0, 1.5), "ts": f"{BASE_US}.2500001"}
    assert _read_rows(tmp_path, [event], "start") == [(BASE_US * 1000 + 250,)]
