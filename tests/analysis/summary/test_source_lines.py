"""GPU time by source line."""

from pathlib import Path

import pytest

from pyprof.analysis.summary.source_lines import line_times, source_lines, user_lines
from pyprof.inputs import source
from tests.analysis.captures import US, Work, capture, table, trace, training


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


@pytest.mark.parametrize(
    ("frames", "expected"),
    [
        (["/a.py:3", "/x/site-packages/lib/m.py:9"], [("/a.py", 3)]),
        ([r"C:\src\a.py:3"], [(r"C:\src\a.py", 3)]),
        (["<frozen importlib>:3", "nonsense", "a.py:x", ":3"], []),
    ],
)
def test_user_lines_leave_out_installed_libraries(
    frames: list[str], expected: list[tuple[str, int]]
) -> None:
    """And anything that is no frame."""
    assert user_lines(frames) == expected


@pytest.mark.slow
@pytest.mark.parametrize(
    "file", ["nvprof-v100-apex/net.sql", "nvprof-v100-apex/net.dict",
             "nsys2024.2-a100-pyprof-markers/net.sqlite"],
)  # fmt: skip
def test_self_times_of_real_captures_add_up(file: str, captures: Path) -> None:
    whole = source.load(str(captures / file)).table
    found = source_lines(whole)
    own = sum(line.own_ns for line in line_times(found))
    assert own + found.unknown_ns == found.total_ns == int(whole.duration_ns.sum())
    assert own > 0
