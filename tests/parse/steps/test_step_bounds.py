"""Rows are assigned to steps by launch time."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyprof.analysis.time.steps import find_steps
from pyprof.arrays import MISSING
from pyprof.parse import parse
from pyprof.parse.steps.step_bounds import Bounds, assign_rows
from pyprof.records.records import DictionaryColumn, Records
from pyprof.schema import Capture
from tests.analysis.captures import ADD, Range, Work, capture, trace


@given(
    st.lists(st.tuples(st.integers(0, 20), st.integers(1, 9)), max_size=8),
    st.lists(st.integers(-3, 35), max_size=8),
)
def test_a_row_is_in_the_step_that_began_last_unless_that_is_over(
    steps: list[tuple[int, int]], launches: list[int]
) -> None:
    steps.sort()
    start = np.array([begin for begin, _ in steps], np.int64)
    bounds = Bounds("", start, start + np.array([length for _, length in steps], np.int64))
    expected = []
    for launch in launches:
        begun = [place for place, (begin, _) in enumerate(steps) if begin <= launch]
        over = not begun or launch >= sum(steps[begun[-1]])
        expected.append(MISSING if over else begun[-1])
    found, _ = assign_rows(bounds, np.array(launches, np.int64), np.zeros(len(launches), np.int64))
    assert found.tolist() == expected


def test_a_step_cut_by_a_pause_begins_in_the_window_in_which_it_ends() -> None:
    bounds = Bounds("ranges", np.array([0, 100]), np.array([100, 200]))
    launch, window = np.array([10, 60, 150]), np.array([0, 1, 1])
    found, start = assign_rows(bounds, launch, window)
    assert (found.tolist(), start.tolist()) == ([MISSING, 0, 1], [60, 100])


def _turns(turns: str, *more: Work, lines: bool = False, one_shape: bool = False) -> Capture:
    """Write steps of optimizers of one class, each named by a letter: a product, then its kernels.

    They differ in the size of their kernels, or in the line that calls them.
    """
    work, ranges = [*more], []
    for number, letter in enumerate(turns):
        at, place = 1000 * number, ord(letter) - ord("a") + 1
        work.append(Work((at, at + 90), (at, at + 5)))
        work += [
            Work((at + 100 + 10 * k, at + 105 + 10 * k), (at + 100 + 10 * k, at + 104 + 10 * k),
                 ADD, grid=(7 if one_shape else 7 * place, 1, 1))
            for k in range(4 if number == turns.index(letter) else 3)  # state is created once
        ]  # fmt: skip
        if lines:
            ranges.append(trace((at + 98, at + 200), f"/src/train.py:{place}"))
        ranges.append(Range("Optimizer.step#Adam.step", (at + 99, at + 190)))
    return capture(work, ranges=ranges)


@pytest.mark.parametrize("known", ["ranges", "records", "rows alone"])
@pytest.mark.parametrize(
    ("turns", "expected"),
    [("ab" * 10, 10), ("abc" * 4, 4), ("ab" * 4 + "a", 4), ("a" * 20, 20), ("aaab" * 5, 5),
     ("a" * 8 + "b" * 8, 16), ("aabab", 5), ("ab", 2)],
)  # fmt: skip
def test_optimizers_that_step_in_turn_make_one_step(turns: str, expected: int, known: str) -> None:
    """As in a GAN; not if one follows the other once, or if the capture is too short."""
    net = _turns(turns)
    parsed = parse(net)
    if known == "rows alone":
        columns = {name: column for name, column in parsed.columns.items() if "step" not in name}
        parsed = Records(parsed.rows, columns)
    found = find_steps(parsed, net if known == "ranges" else None)
    assert (found.origin, len(found)) == ("Optimizer.step", expected)
    assert (found.of_row == MISSING).sum() == len(turns) % (len(turns) // expected) * 4


@pytest.mark.parametrize(("lines", "expected"), [(True, 5), (False, 10)])
def test_equal_optimizers_are_separated_by_their_source_line(*, lines: bool, expected: int) -> None:
    """For networks of equal sizes; without stacks they cannot be separated."""
    net = _turns("ab" * 5, lines=lines, one_shape=True)
    assert len(find_steps(parse(net), net)) == expected


def test_equal_dictionary_entries_are_one_line() -> None:
    """Parse makes one for each range stack: equal source lines are one line."""
    net = _turns("ab" * 5, lines=True, one_shape=True)
    parsed = parse(net)
    trace_of = parsed.dictionary("trace")
    apart = DictionaryColumn(
        np.arange(parsed.rows), [trace_of.at(row) for row in range(parsed.rows)]
    )
    columns = {name: column for name, column in parsed.columns.items() if "step" not in name}
    found = find_steps(Records(parsed.rows, {**columns, "trace": apart}), net)
    assert len(found) == 5


def test_an_evaluation_every_other_step_is_not_a_second_optimizer() -> None:
    """Only work of optimizers counts: the loop has as many steps as its one optimizer has."""
    more = [
        Work((2000 * n + 50, 2000 * n + 95), (2000 * n + 50, 2000 * n + 55), "evaluate")
        for n in range(4)
    ]
    net = _turns("a" * 8, *more)
    assert len(find_steps(parse(net), net)) == 8
