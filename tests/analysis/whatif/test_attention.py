"""Fused attention, by its roof and the share of it that fused kernels reach."""

import pytest

from pyprof.analysis.advice.rule_context import RuleContext
from pyprof.analysis.whatif import attention
from pyprof.analysis.whatif.kernels import unchanged
from pyprof.analysis.whatif.prediction import Prediction, Refusal
from tests.analysis.captures import US
from tests.analysis.test_attention_calls import attention as eager
from tests.analysis.test_attention_calls import story


def test_fused_attention_takes_its_roof_over_the_measured_share() -> None:
    """An A100 does 312 TFLOP/s in bfloat16; queries, keys, values and output move at 1.555 TB/s."""
    given = attention.predict(unchanged(story(*eager(64, 1024, 1024, 64))))
    assert isinstance(given, Prediction)
    flops_ns = 4 * 64 * 1024 * 1024 * 64 / 312e12 * 1e9
    assert given.kernels_ns.expected == pytest.approx(flops_ns / 0.17, rel=1e-3)
    assert given.kernels_ns.now == 400 * US
    assert given.kernels_ns.low < given.kernels_ns.expected < given.kernels_ns.high


@pytest.mark.parametrize(
    ("case", "why"),
    [
        (story(*eager(), dtype="float32"), "float32"),
        (story(*eager(queries=7)), "queries"),
        (story(*eager(width=16)), "heads"),
        (story(*eager()[:2]), "softmax"),
    ],
    ids=["in float32", "of few queries", "of narrow heads", "absent"],
)
def test_attention_in_float32_is_refused(case: RuleContext, why: str) -> None:
    """Fused kernels were not faster there."""
    given = attention.predict(unchanged(case))
    assert isinstance(given, Refusal)
    assert why in given.why


def test_unsuited_calls_stay_as_they_are() -> None:
    given = attention.predict(unchanged(story(*eager(), *eager(width=16))))
    assert isinstance(given, Prediction)
    assert sorted(given.rows.tolist()) == [0, 1, 2, 3]
    assert "1 of 2 calls" in given.assumption
