"""A fused chain of point-wise kernels moves its outer inputs and outputs once."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from operator import attrgetter

import pytest

from pyprof.analysis.advice.rule_context import RuleContext
from pyprof.analysis.whatif import pointwise
from pyprof.analysis.whatif.kernels import unchanged
from pyprof.analysis.whatif.prediction import Prediction, Refusal
from pyprof.marker import Tensor
from tests.analysis.captures import ADD, US, Range, Work, capture, op, table
from tests.known import known

_X = Tensor((1 << 22,), "float32")
_BYTES = 2 * 4 << 22
"""Read and written by an op of one input."""
_LONG_US = 100


def chain(count: int, *, apart: bool = False) -> tuple[list[Work], list[Range]]:
    """Return kernels of `relu` one after the other, each on a stream of its own if `apart`."""
    work, ranges = [], []
    for place in range(count):
        begin = place * 200 * US
        call = (begin, begin + 5 * US)
        at = (begin + 10 * US, begin + (10 + _LONG_US) * US)
        work.append(Work(at, call, ADD, stream=place if apart else 7))
        ranges.append(op("relu", (begin - 100, begin + 6 * US), _X))
    return work, ranges


def context(work: list[Work], ranges: Sequence[Range]) -> RuleContext:
    return RuleContext(table(capture(work, (), ranges)))


def _predicted(work: list[Work], ranges: Sequence[Range]) -> Prediction | Refusal:
    return pointwise.predict(unchanged(context(work, ranges)))


def test_a_chain_takes_the_time_to_move_its_outer_tensors() -> None:
    """Three ops on one input: a third of the bytes, at 0.75 of an A100's bandwidth."""
    work, ranges = chain(3)
    given = _predicted(work, ranges)
    assert isinstance(given, Prediction)
    peak = known(context(work, ranges).table.devices.values[0])
    fused_ns = _BYTES / (0.75 * known(peak.bandwidth).value) * 1e9
    assert given.kernels_ns.now == 3 * _LONG_US * US
    assert abs(given.kernels_ns.expected - fused_ns) < 2
    assert given.rows.tolist() == [0, 1, 2]


def test_an_interval_holds_the_expected_time_and_never_more_than_now() -> None:
    given = _predicted(*chain(4))
    assert isinstance(given, Prediction)
    assert all(
        a < b for a, b in pairwise(attrgetter("low", "expected", "high", "now")(given.kernels_ns))
    )


def _with_a_product() -> tuple[list[Work], list[Range]]:
    first, second, third = chain(3)[0]
    return [first, replace(second, name="ampere_sgemm_128x64_tn"), third], chain(3)[1]


@pytest.mark.parametrize(
    ("work", "ranges"),
    [chain(3, apart=True), chain(1), _with_a_product(), ([], [])],
    ids=["of different streams", "a single kernel", "a product in between", "nothing"],
)
def test_what_is_no_chain_is_refused(work: list[Work], ranges: list[Range]) -> None:
    assert isinstance(_predicted(work, ranges), Refusal)


def test_unknown_bytes_are_refused() -> None:
    work, _ = chain(3)
    given = _predicted(work, [])
    assert isinstance(given, Refusal)
    assert "bytes" in given.why
