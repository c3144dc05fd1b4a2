"""A larger batch: filled grids take proportionally longer."""

import pytest

from pyprof.analysis.advice.rule_context import RuleContext
from pyprof.analysis.whatif import batching
from pyprof.analysis.whatif.kernels import Prediction, unchanged
from pyprof.prof.table import Override, Table
from tests.analysis.captures import US, Work, capture, table


def _case(*blocks: int) -> RuleContext:
    """Return kernels of 100 us each with given numbers of thread blocks, on 108 SMs."""
    work = [
        Work((at * 200 * US, (at * 200 + 100) * US), (at, at + 1), grid=(count, 1, 1))
        for at, count in enumerate(blocks, 1)
    ]
    return RuleContext(table(capture(work)))


@pytest.mark.parametrize(("text", "factor"), [("2x", 2), ("2", 2), ("0.5x", 0.5), ("1.5", 1.5)])
def test_a_factor_is_parsed(text: str, factor: float) -> None:
    assert batching.factor_of(text) == factor


@pytest.mark.parametrize("text", ["0", "0x", "x", "-2", "two", "", "2xx", "inf"])
def test_an_invalid_factor_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="such as 2x"):
        batching.factor_of(text)


def test_filled_grids_take_twice_as_long() -> None:
    """Also a kernel with few blocks that takes a fifth of the time."""
    given = batching.rule("2x")(unchanged(_case(1000, 2000, 3000, 4000, 10)))
    assert isinstance(given, Prediction)
    assert given.kernels.span.expected == 2 * given.kernels.span.now
    assert "80 %" in given.assumption


def test_a_batch_as_large_as_now_is_refused() -> None:
    """It would have an interval, though nothing changes."""
    assert batching.rule("1x")(unchanged(_case(1000))) == "the batch stays as it is"


def test_cards_limited_by_power_have_wider_intervals() -> None:
    """Their clock depends on how long kernels run."""
    records = _case(1000).table.source
    high_ns = []
    for gpu in ("A100 40GB", "T4"):
        given = batching.rule("2x")(unchanged(RuleContext(Table(records, Override(gpu=gpu)))))
        assert isinstance(given, Prediction)
        high_ns.append(given.kernels.span.high)
    assert high_ns[0] < high_ns[1]


@pytest.mark.parametrize(("factor", "blocks"), [("2x", 300), ("0.25x", 1000)])
def test_grids_that_leave_sms_idle_are_refused(factor: str, blocks: int) -> None:
    given = batching.rule(factor)(unchanged(_case(blocks)))
    assert isinstance(given, str)
    assert "thread blocks per SM" in given
