"""Fused chains move their outer tensors once; fused attention reaches a share of its roof."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from operator import attrgetter

import pytest

from pyprof import schema
from pyprof.analysis.advice.rule_context import RuleContext
from pyprof.analysis.whatif.fusion import predict_attention, predict_pointwise
from pyprof.analysis.whatif.kernels import Prediction, unchanged
from pyprof.marker import Tensor
from tests.analysis.captures import ADD, US, Range, Work, capture, op, table
from tests.analysis.test_attention_calls import attention as eager
from tests.analysis.test_attention_calls import story
from tests.known import known

_X = Tensor((1 << 22,), "float32")
_BYTES = 2 * 4 << 22
"""Read and written by an op of one input."""
_NEG = ADD.replace("add", "neg").replace("Add", "Neg")
_LONG_US = 100


def chain(count: int, *, apart: bool = False) -> tuple[list[Work], list[Range]]:
    """Return kernels of `relu` and `neg` in turn, each on a stream of its own if `apart`."""
    work, ranges = [], []
    for place in range(count):
        begin = place * 200 * US
        call = (begin, begin + 5 * US)
        at = (begin + 10 * US, begin + (10 + _LONG_US) * US)
        name, kernel = (("relu", ADD), ("neg", _NEG))[place % 2]
        work.append(Work(at, call, kernel, stream=place if apart else 7))
        ranges.append(op(name, (begin - 100, begin + 6 * US), _X))
    return work, ranges


def context(work: list[Work], ranges: Sequence[Range]) -> RuleContext:
    return RuleContext(table(capture(work, (), ranges)))


def _predicted(work: list[Work], ranges: Sequence[Range]) -> Prediction | str:
    return predict_pointwise(unchanged(context(work, ranges)))


def test_a_chain_takes_the_time_to_move_its_outer_tensors() -> None:
    """Three ops on one input: a third of the bytes, at 0.75 of an A100's bandwidth."""
    work, ranges = chain(3)
    given = _predicted(work, ranges)
    assert isinstance(given, Prediction)
    peak = known(context(work, ranges).table.devices.values[0])
    fused_ns = _BYTES / (0.75 * known(peak.bandwidth).value) * 1e9
    assert given.kernels.span.now == 3 * _LONG_US * US
    assert abs(given.kernels.span.expected - fused_ns) < 2
    assert given.rows.tolist() == [0, 1, 2]


def test_an_interval_holds_the_expected_time_and_never_more_than_now() -> None:
    given = _predicted(*chain(4))
    assert isinstance(given, Prediction)
    assert all(
        a < b for a, b in pairwise(attrgetter("low", "expected", "high", "now")(given.kernels.span))
    )


_WORK, _RANGES = chain(3)
_SHORT = [replace(each, at=(each.at[0], each.at[0] + US)) for each in _WORK]
_ON_CPU = [
    Work((at, at + 10 * US), (at, at + 10 * US), name, schema.CPU, grid=None)
    for at, name in ((0, "aten::add"), (20 * US, "aten::native_layer_norm"))
]
_NO_CHAIN = "no two point-wise kernels follow one another on a stream"


@pytest.mark.parametrize(
    ("work", "ranges", "why"),
    [
        (*chain(3, apart=True), _NO_CHAIN),
        (*chain(1), _NO_CHAIN),
        ([], [], "the GPU's bandwidth is unknown"),
        # an interval around the time of now would be of a change that nobody makes
        (_SHORT, _RANGES, "no chain of point-wise kernels would be faster as one"),
        # which of them are point-wise, names of kernels do not say there
        (_ON_CPU, [], "the GPU's bandwidth is unknown"),
        (_WORK, [], "the bytes of too many point-wise kernels are unknown"),
    ],
    ids=["different streams", "a single kernel", "nothing", "short", "a CPU", "unknown bytes"],
)
def test_what_is_no_chain_that_would_be_faster_as_one_is_refused(
    work: list[Work], ranges: list[Range], why: str
) -> None:
    assert _predicted(work, ranges) == why


def test_fused_attention_takes_its_roof_over_the_measured_share() -> None:
    """An A100 does 312 TFLOP/s in bfloat16; queries, keys, values and output move at 1.555 TB/s."""
    given = predict_attention(unchanged(story(*eager(64, 1024, 1024, 64))))
    assert isinstance(given, Prediction)
    flops_ns = 4 * 64 * 1024 * 1024 * 64 / 312e12 * 1e9
    assert given.kernels.span.expected == pytest.approx(flops_ns / 0.17, rel=1e-3)
    assert given.kernels.span.now == 400 * US
    assert given.kernels.span.low < given.kernels.span.expected < given.kernels.span.high


@pytest.mark.parametrize(
    ("case", "why"),
    [
        (story(*eager(), dtype="float32"), "float32"),
        (story(*eager(queries=7)), "queries"),
        (story(*eager(width=16)), "heads"),
        (story(*eager()[:2]), "softmax"),
        (story(*eager(128, 1024, 1024)), "no attention would be faster fused"),
    ],
    ids=["in float32", "of few queries", "of narrow heads", "absent", "fast already"],
)
def test_attention_that_would_be_no_faster_is_refused(case: RuleContext, why: str) -> None:
    """Fused kernels were not faster there."""
    assert why in str(predict_attention(unchanged(case)))


def test_attention_in_half_precision_is_fused_after_float32_products_changed_to_tf32() -> None:
    kernels = replace(unchanged(story(*eager(64, 1024, 1024))), dtype="tf32")
    assert isinstance(predict_attention(kernels), Prediction)


def test_unsuited_calls_stay_as_they_are() -> None:
    given = predict_attention(unchanged(story(*eager(), *eager(width=16), *eager(128, 1024, 1024))))
    assert isinstance(given, Prediction)
    assert sorted(given.rows.tolist()) == [0, 1, 2, 3]
    assert "fused calls: 1 of 3; others have" in given.assumption
