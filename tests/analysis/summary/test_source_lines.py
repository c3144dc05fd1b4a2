"""GPU time by source line."""

import pytest

from pyprof import schema
from pyprof.analysis.summary.source_lines import (
    line_times,
    lines_answer,
    source_lines,
    summarise_lines,
    user_lines,
)
from pyprof.inputs.source import Source
from pyprof.marker import Tensor
from tests.analysis.answered import answered
from tests.analysis.captures import US, Range, Work, capture, op, table, trace, training


def test_a_line_has_its_self_time_and_its_total() -> None:
    found = source_lines(table(training(2)))
    lines = [(line.line, line.calls, line.time_ns, line.own_ns) for line in line_times(found)]
    assert lines == [
        ("/src/net.py:5", 2, 120 * US, 120 * US),
        ("/src/net.py:6", 2, 100 * US, 100 * US),
        ("/src/train.py:20", 8, 244 * US, 24 * US),
    ]
    assert (found.unknown_ns, found.total_ns) == (0, 244 * US)


def test_a_recursive_line_counts_once() -> None:
    stack = ("/a.py:3", "/a.py:3", "/a.py:7")
    net = capture([Work((5, 10), (2, 3))], ranges=[trace((1, 9), *stack)])
    lines = line_times(source_lines(table(net)))
    assert [(line.number, line.time_ns, line.own_ns) for line in lines] == [(7, 5, 5), (3, 5, 0)]


def test_rows_without_a_line_are_counted_separately() -> None:
    found = source_lines(table(capture([Work((5, 10), (2, 3))])))
    assert (line_times(found), found.unknown_ns) == ((), 5)


def _ops_in_steps(steps: int) -> schema.Capture:
    """Write steps of eight small ops of one line each."""
    work: list[Work] = []
    ranges: list[Range] = []
    for step in range(steps):
        for place in range(8 * step, 8 * step + 8):
            at = (20 * place * US, (20 * place + 10) * US)
            around = (at[0] - 100, at[1] + 100)
            work.append(Work(at, at, "aten::tanh", schema.CPU, grid=None))
            ranges += [trace(around, "/net.py:5"), op("tanh", at, Tensor((16, 32), "float32"))]
        ranges.append(Range(f"step {step}", (160 * step * US - 200, 160 * (step + 1) * US - 300)))
    return capture(work, ranges=ranges)


@pytest.mark.parametrize("chosen", [None, "2:5"])
def test_the_advice_is_that_of_the_summary(chosen: str | None) -> None:
    """A line that calls eight ops in each of ten steps is not a loop over 80 of them."""
    net = _ops_in_steps(10)
    source = Source(table(net), net)
    advice = lines_answer(summarise_lines(source, chosen)).advice
    assert advice == answered(source, chosen).advice
    assert advice[0].title == "a Python loop calls small ops, up to 8 times a step from one line"
    assert advice[0].gain_step_ns is not None


@pytest.mark.parametrize(("frames", "expected"), [
    (["/a.py:3", "/x/site-packages/lib/m.py:9"], [("/a.py", 3)]),
    ([r"C:\src\a.py:3"], [(r"C:\src\a.py", 3)]),
    (["<frozen importlib>:3", "nonsense", "a.py:x", ":3"], []),
])  # fmt: skip
def test_user_lines_leave_out_installed_libraries(
    frames: list[str], expected: list[tuple[str, int]]
) -> None:
    assert user_lines(frames) == expected
