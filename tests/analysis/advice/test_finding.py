"""Advice of several captures, merged."""

import itertools
from dataclasses import replace
from functools import reduce

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pyprof.analysis.advice.finding import Advice, AdviceSums, in_order
from pyprof.answers.parts import PredictedGain

_ROWS = np.zeros(0, np.int64)


def _predicted(low_ns: int, high_ns: int, expected_ns: int) -> PredictedGain:
    return PredictedGain(
        low_ns=low_ns, expected_ns=expected_ns, high_ns=high_ns, validation="", code=""
    )


_ADVICE = st.builds(
    Advice,
    rule=st.sampled_from(["loops", "precision"]),
    title=st.sampled_from(["a", "b"]),
    action=st.just("change it"),
    gain_ns=st.none() | st.integers(0, 3),
    evidence=st.just(()),
    rows=st.just(_ROWS),
    predicted=st.none() | st.builds(_predicted, st.integers(0, 3), st.just(9), st.integers(3, 6)),
    of_ns=st.integers(3, 5),
    steps=st.none() | st.integers(1, 2),
)


@given(st.lists(_ADVICE, min_size=3, max_size=3))
def test_advice_is_the_same_in_every_order_and_grouping(entries: list[Advice]) -> None:
    found = [
        [reduce(AdviceSums.merged, order).suggestions, last.merged(one.merged(other)).suggestions]
        for order in itertools.permutations(AdviceSums((entry,), 1) for entry in entries)
        for one, other, last in [order]
    ]
    assert len({repr(each) for pair in found for each in pair}) == 1


def test_a_surer_gain_comes_before_one_that_may_be_nothing() -> None:
    vague, sure = (
        Advice(
            rule=rule, title="", action="", gain_ns=high_ns, evidence=(), rows=_ROWS,
            predicted=_predicted(low_ns, high_ns, expected_ns),
        )
        for rule, low_ns, high_ns, expected_ns in (("a", 0, 150, 98), ("b", 86, 95, 91))
    )  # fmt: skip
    assert in_order([vague, sure]) == [sure, vague]


def test_the_action_for_ranks_that_wait_is_chosen_once_that_is_known() -> None:
    """Collectives that start earlier would not help the others; what happens once is no waiting."""
    late = Advice(rule="b", title="", action="start earlier", gain_ns=90, evidence=(), rows=_ROWS,
                  steps=2, if_ranks_wait="see ranks")  # fmt: skip
    other = replace(late, rule="a", gain_ns=100, if_ranks_wait=None)
    sums = AdviceSums((other, late, replace(late, once=True)), 1)
    assert sums.with_waits(None, 4) == sums
    before, waits, after = sums.with_waits(110, 4).suggestions
    assert (waits.action, waits.gain_ns, waits.gain_step_ns) == ("see ranks", 110, 27.5)
    assert before.action == after.action == "start earlier"
