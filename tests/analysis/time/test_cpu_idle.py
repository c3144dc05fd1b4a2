"""Idle time on a CPU: each instant has one cause."""

from pathlib import Path

import pytest

from pyprof import schema
from pyprof.analysis.time.cpu_idle import loading_ranges, outermost_calls
from pyprof.analysis.time.idle import CAUSES, CPU_CAUSES
from pyprof.analysis.time.timeline import DeviceTime, timeline
from pyprof.marker import encode_seq
from pyprof.parse import parse
from pyprof.readers import read
from tests.analysis.captures import US, Range, Work, capture, op, trace
from tests.builders import nsys_db
from tests.capture_files.model import Range as NsysRange
from tests.capture_files.model import Work as NsysWork
from tests.known import known

NODE = "autograd::engine::evaluate_function: MineBackward"
LOADER = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"


def _device(ranges: list[Range], *, with_capture: bool = True) -> DeviceTime:
    """Analyse ops that work from 0 to 100 us and from 1000 to 1100 us."""
    bounds = [(0, 100 * US), (1000 * US, 1100 * US)]
    work = [Work(at, at, "aten::mm", schema.CPU, grid=None) for at in bounds]
    net = capture(work, ranges=[*(op("mm", at) for at in bounds), *ranges])
    found = known(timeline(parse(net), net if with_capture else None))
    return found.devices[0]


def _at(begin: int, end: int) -> tuple[int, int]:
    return begin * US, end * US


STORIES = {
    "nothing": ([], {"host": 900}),
    "a loader": ([Range(LOADER, _at(150, 950))], {"loading": 800, "dispatch": 100}),
    "a tensor of a list": ([op("tensor", _at(110, 990))], {"ops": 880, "dispatch": 20}),
    "a view in a long pause": (
        [op("view", _at(500, 510))], {"ops": 10, "host": 890}),
    "a view in a loader": (
        [Range(LOADER, _at(110, 990)), op("view", _at(500, 510))],
        {"loading": 880, "dispatch": 20}),
    "an op in an op": (
        [op("stack", _at(110, 990)), op("view", _at(500, 510))], {"ops": 880, "dispatch": 20}),
    "a node in C++": ([Range(encode_seq("MulBackward0", seq=1), _at(110, 990))],
        {"ops": 880, "dispatch": 20}),
    "a function's backward pass": (
        [Range(encode_seq(name, seq=1), _at(110, 990)) for name in (NODE, "MineBackward")],
        {"host": 900}),
    "an optimizer's step": ([Range("Optimizer.step#Mine.step", _at(110, 990))], {"host": 900}),
    "ops one after the other": (
        [op("view", _at(begin, begin + 10)) for begin in range(110, 1000, 20)],
        {"ops": 450, "dispatch": 450}),
}  # fmt: skip


@pytest.mark.parametrize(("ranges", "expected_us"), STORIES.values(), ids=STORIES)
def test_idle_time_on_a_cpu_by_cause(ranges: list[Range], expected_us: dict[str, int]) -> None:
    """Causes that are not 0, in us; together they are the idle time."""
    device = _device(ranges)
    found = {cause: time.total // US for cause, time in device.idle.items() if time.total}
    assert found == expected_us
    assert set(device.idle) == {*CAUSES, *CPU_CAUSES}  # so that devices can be compared
    assert sum(time.total for time in device.idle.values()) == device.idle_ns


def test_time_inside_an_op_around_its_work() -> None:
    """Short pauses are its dispatch, long ones an op without work."""
    device = _device([op("linear", _at(850, 1150))])
    assert device.idle["dispatch"].total == 0
    assert device.idle["ops"].total == 150 * US
    device = _device([op("linear", _at(950, 1150))])
    assert device.idle["dispatch"].total == 50 * US


def test_without_a_capture_pauses_are_short_or_long() -> None:
    device = _device([Range(LOADER, _at(150, 950))], with_capture=False)
    assert device.idle["host"].total == device.idle_ns == 900 * US


def test_ranges_of_data_loaders_are_found_by_name(tmp_path: Path) -> None:
    compiler = "AOTAutogradCache.inductor_load_data: compile_id=0/0"
    names = ("DataLoader.__next__", "get_batch", "forward", "optimizer", compiler)
    ranges = [NsysRange(name, (10 * place, 10 * place + 5)) for place, name in enumerate(names)]
    ranges.append(NsysRange("get_batch", (90, 95)))
    found = loading_ranges(read(nsys_db(tmp_path / "net.sqlite", [NsysWork(call=(1, 2))], ranges)))
    assert set(found) == {"DataLoader.__next__", "get_batch"}
    start, end = found["get_batch"]
    assert (end - start).tolist() == [5, 5]


def test_the_line_of_a_call_is_not_in_a_framework() -> None:
    """torch.profiler writes frames of PyTorch relative to where packages are installed."""
    frames = ("/src/net.py:3", "torch/nn/functional.py:1500")
    ranges = [trace(_at(0, 50), *frames), op("tanh", _at(10, 20)), op("relu", _at(60, 70))]
    net = capture([Work(_at(10, 20), (0, US), "aten::tanh", schema.CPU, grid=None)], ranges=ranges)
    calls = outermost_calls(net)
    assert [calls.name.at(call) for call in (0, 1)] == ["tanh", "relu"]
    assert [calls.line.at(call) for call in (0, 1)] == ["/src/net.py:3", None]
