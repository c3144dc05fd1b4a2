"""float32 products gain the ratio of the roofs of float32 and TF32."""

import pytest

from pyprof.analysis.advice.rule_context import RuleContext
from pyprof.analysis.whatif import tf32
from pyprof.analysis.whatif.kernels import unchanged
from pyprof.analysis.whatif.prediction import Prediction, Refusal
from pyprof.marker import Tensor
from tests.analysis.captures import US, Work, capture, op, table

_SQUARE = Tensor((4096, 4096), "float32")


def _predicted(kernel: str) -> Prediction | Refusal:
    work = [Work((10 * US, 10_010 * US), (0, 5 * US), kernel)]
    ranges = [op("matmul", (-100, 6 * US), _SQUARE, _SQUARE)]
    return tf32.predict(unchanged(RuleContext(table(capture(work, (), ranges)))))


def test_a_product_limited_by_compute_gains_the_ratio_of_peaks() -> None:
    """An A100 does 19.5 TFLOP/s in float32 and 156 in TF32."""
    given = _predicted("ampere_sgemm_128x64_tn")
    assert isinstance(given, Prediction)
    expected = given.kernels_ns.now * 19.5 / 156
    assert given.kernels_ns.expected == pytest.approx(expected, rel=1e-3)
    assert given.kernels_ns.low < given.kernels_ns.expected < given.kernels_ns.high


def test_a_product_in_tf32_already_is_refused() -> None:
    given = _predicted("ampere_s1688gemm_128x64_tn")
    assert isinstance(given, Refusal)
