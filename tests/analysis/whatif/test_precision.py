"""float32 in TF32 or a half type: products by their roofs, others by measured shares."""

from dataclasses import replace

import pyarrow as pa
import pytest

from pyprof.analysis.advice.rule_context import RuleContext
from pyprof.analysis.whatif.kernels import NO_BANDWIDTH, Kernels, Prediction, unchanged
from pyprof.analysis.whatif.precision import HALF_TYPES, predict_half, predict_tf32
from pyprof.arrays import set_column
from pyprof.marker import Tensor
from tests.analysis.captures import ADD, SGEMM_A100, US, Work, capture, op, table
from tests.analysis.test_attention_calls import Step, story

_SQUARE = ((4096, 4096), (4096, 4096))
_NORM = "void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<float, float>"
_SUM = "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float> >"
_COPY = "void at::native::elementwise_kernel<128, 2, at::native::direct_copy_kernel_cuda>"


def _expected_us(*steps: Step, short: str = "bf16") -> float:
    given = predict_half(unchanged(story(*steps, dtype="float32")), short)
    assert isinstance(given, Prediction)
    return given.kernels.span.expected / US


@pytest.mark.parametrize("short", HALF_TYPES)
def test_a_product_gains_the_ratio_of_peaks(short: str) -> None:
    """An A100 does 19.5 TFLOP/s in float32 and 312 in either half type."""
    product: Step = (SGEMM_A100, "matmul", _SQUARE)
    flops_us = 2 * 4096**3 / 19.5e12 * 1e6
    least = flops_us * 19.5 / 312
    share = min(flops_us / 100, 1)
    assert _expected_us(product, short=short) == pytest.approx(min(least / share, 100), rel=1e-2)


@pytest.mark.parametrize(
    ("kernel", "name", "share"),
    [(ADD, "relu", 0.757), (_NORM, "layer_norm", 0.848), (_COPY, "clone", 0.865), (_SUM, "sum", 1)],
    ids=["point-wise", "a norm", "a copy", "a sum"],
)
def test_other_kernels_gain_less_than_half(kernel: str, name: str, share: float) -> None:
    """By the shares measured for Segment Anything; beside a product, so that the change applies."""
    shapes = ((4096, 4096), (4096,)) if name == "layer_norm" else ((4096, 4096),)
    product: Step = (SGEMM_A100, "matmul", ((256, 4096), (4096, 4096)))
    alone = _expected_us(product)
    assert _expected_us(product, (kernel, name, shapes)) - alone == pytest.approx(
        100 * share, abs=0.01
    )


def test_bytes_are_halved_for_later_changes() -> None:
    """A chain that is fused afterwards moves half as much."""
    case = story((ADD, "relu", ((4096, 4096),)), dtype="float32")
    given = predict_half(unchanged(case), "bf16")
    assert isinstance(given, Prediction)
    assert given.kernels.bytes.tolist() == [2 * 2 * 4096**2]
    assert given.kernels.dtype == "bfloat16"


_BF16 = ADD.replace("float", "c10::BFloat16")


@pytest.mark.parametrize(
    "case",
    [
        story((_BF16, "relu", ((4096, 4096),))),
        story(),
        story((SGEMM_A100, "matmul", ()), dtype="float32"),
    ],
    ids=["in the type already", "nothing", "products of unknown size"],
)
def test_what_gains_nothing_that_is_known_is_refused(case: RuleContext) -> None:
    assert isinstance(predict_half(unchanged(case), "bf16"), str)


_OPERAND = Tensor((4096, 4096), "float32")


def _product(kernel: str, *operands: Tensor, sm_count: int = 108) -> Kernels:
    work = [Work((10 * US, 10_010 * US), (0, 5 * US), kernel)]
    net = capture(work, (), [op("matmul", (-100, 6 * US), *operands)])
    devices = set_column(net.devices, "sm_count", pa.array([sm_count], pa.int32()))
    return unchanged(RuleContext(table(replace(net, devices=devices))))


def _in_tf32(kernel: str, *operands: Tensor) -> Prediction | str:
    return predict_tf32(_product(kernel, *operands))


def test_a_product_limited_by_compute_gains_the_ratio_of_peaks() -> None:
    """An A100 does 19.5 TFLOP/s in float32 and 156 in TF32."""
    given = _in_tf32("ampere_sgemm_128x64_tn", _OPERAND, _OPERAND)
    assert isinstance(given, Prediction)
    expected = given.kernels.span.now * 19.5 / 156
    assert given.kernels.span.expected == pytest.approx(expected, rel=1e-3)
    assert given.kernels.span.low < given.kernels.span.expected < given.kernels.span.high


def test_a_float32_product_of_unknown_size_is_refused_for_its_size() -> None:
    """`summary` finds it by the kernel's name; that there were none would be untrue."""
    assert _in_tf32("ampere_sgemm_128x64_tn") == "FLOPs or bytes of the products are unknown"


def test_a_slice_of_a_gpu_is_refused_for_its_bandwidth() -> None:
    """The driver states that of the whole card."""
    given = _product("ampere_sgemm_128x64_tn", _OPERAND, _OPERAND, sm_count=14)
    assert predict_tf32(given) == predict_half(given, "bf16") == NO_BANDWIDTH


def test_a_product_in_tf32_already_is_refused() -> None:
    given = _in_tf32("ampere_s1688gemm_128x64_tn", _OPERAND, _OPERAND)
    assert isinstance(given, str)
