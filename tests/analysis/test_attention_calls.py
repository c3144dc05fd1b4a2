"""Attention is found by the sizes of a softmax and of the products around it."""

from pathlib import Path

import numpy as np
import pytest

from pyprof.analysis.advice.rule_context import RuleContext
from pyprof.analysis.attention_calls import AttentionCall, attention_calls
from pyprof.gpu.role_rules import Role
from pyprof.inputs import source
from pyprof.marker import Tensor, encode_seq
from tests.analysis.captures import ADD, SGEMM_A100, US, Range, Work, capture, op, table

GEMM = "ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_stages_32x5_tn"
SOFTMAX = "void (anonymous namespace)::softmax_warp_forward<float, float, float, 8, false, false>"
BACKWARD = "void (anonymous namespace)::softmax_warp_backward<float, float, float, 8, false, false>"

Step = tuple[str, str, tuple[tuple[int, ...], ...]]


def told(*steps: Step, dtype: str = "bfloat16") -> tuple[list[Work], list[Range]]:
    """Run kernels of 100 us, each of an op on tensors of these shapes.

    Products of float32 run off Tensor Cores.
    """
    names = {GEMM: SGEMM_A100} if dtype == "float32" else {}
    work: list[Work] = []
    ranges: list[Range] = []
    for place, (kernel, name, shapes) in enumerate(steps):
        begin = place * 200 * US
        call = (begin, begin + 5 * US)
        work.append(Work((begin + 10 * US, begin + 110 * US), call, names.get(kernel, kernel)))
        tensors = [Tensor(shape, dtype) for shape in shapes]
        ranges.append(op(name, (begin - 100, begin + 6 * US), *tensors))
    return work, ranges


def story(*steps: Step, dtype: str = "bfloat16") -> RuleContext:
    """Return the capture of these calls."""
    work, ranges = told(*steps, dtype=dtype)
    return RuleContext(table(capture(work, (), ranges)))


def attention(
    batch: int = 8, queries: int = 128, keys: int = 256, width: int = 64
) -> tuple[Step, ...]:
    """Scores, scaled, through a softmax, times values."""
    scores = (batch, queries, keys)
    return (
        (GEMM, "bmm", ((batch, queries, width), (batch, width, keys))),
        (ADD, "mul", (scores,)),
        (SOFTMAX, "softmax", (scores,)),
        (GEMM, "bmm", (scores, (batch, keys, width))),
    )


def test_a_softmax_between_products_of_its_size_is_attention() -> None:
    """With a scale in between, but not a norm of another size."""
    norm: Step = (ADD, "relu", ((8, 128, 64),))
    (call,) = attention_calls(story(norm, *attention(), norm))
    assert call == AttentionCall(3, call.rows, 8, 128, 256, 64, 64, backward=False)
    assert sorted(call.rows) == [1, 2, 3, 4]
    assert call.flops == 2 * 2 * 8 * 128 * 256 * 64  # two products
    assert call.elements == 8 * 64 * (128 + 256) * 2  # queries, keys, values and output


def test_other_products_between_do_not_hide_it() -> None:
    """Relative positions are products, too, of other sizes."""
    product, scale, *rest = attention()
    positions: Step = (GEMM, "bmm", ((8, 128, 64), (8, 64, 16)))
    (call,) = attention_calls(story(product, positions, scale, *rest))
    assert sorted(call.rows) == [0, 2, 3, 4]


TOKENS, EXPERTS, HIDDEN = 512, 64, 1024
ROUTER: tuple[Step, ...] = (
    (GEMM, "matmul", ((TOKENS, HIDDEN), (HIDDEN, EXPERTS))),
    (SOFTMAX, "softmax", ((TOKENS, EXPERTS),)),
    (GEMM, "matmul", ((TOKENS, EXPERTS), (EXPERTS, HIDDEN))),
)
"""Its softmax is between products as wide as the model."""


@pytest.mark.parametrize(
    "steps",
    [ROUTER, attention()[:3], ()],
    ids=["a router of experts", "a classifier, whose softmax no product follows", "nothing"],
)
def test_another_softmax_is_not_attention(steps: tuple[Step, ...]) -> None:
    assert attention_calls(story(*steps)) == []


def test_the_logits_of_a_loss_are_not_attention() -> None:
    """The gradient of the last layer's input has the sizes of a product with values."""
    tokens, classes, width = 512, 2000, 128
    work, ranges = told(
        (GEMM, "matmul", ((tokens, width), (width, classes))),
        (SOFTMAX, "log_softmax", ((tokens, classes),)),
        (GEMM, "matmul", ((tokens, classes), (classes, width))),
    )
    forward_only = RuleContext(table(capture(work, (), ranges)))
    assert len(attention_calls(forward_only)) == 1
    node = encode_seq("autograd::engine::evaluate_function: MmBackward0", seq=1)
    begin, end = ranges[-1].at
    backward = [*ranges, Range(node, (begin - 50, end + 50))]
    assert attention_calls(RuleContext(table(capture(work, (), backward)))) == []


def test_a_product_is_used_for_one_softmax() -> None:
    first, second = attention_calls(story(*attention(), *attention()))
    assert sorted((*first.rows, *second.rows)) == [*range(8)]


def test_the_backward_pass_has_four_products() -> None:
    """Gradients of values, scores, keys and queries; a fused one computes the scores again."""
    batch, m, n, k = 8, 128, 256, 64
    scores = (batch, m, n)
    steps: tuple[Step, ...] = (
        (GEMM, "bmm", ((batch, n, m), (batch, m, k))),
        (GEMM, "bmm", ((batch, m, k), (batch, k, n))),
        (BACKWARD, "_softmax_backward_data", (scores, scores)),
        (ADD, "mul", (scores,)),
        (GEMM, "bmm", (scores, (batch, n, k))),
        (GEMM, "bmm", ((batch, n, m), (batch, m, k))),
    )
    (call,) = attention_calls(story(*steps))
    assert call.backward
    assert sorted(call.rows) == [*range(6)]
    assert call.flops == 5 * 2 * batch * m * n * k


SAM = Path(__file__).resolve().parents[2] / ".." / "shared" / "captures" / "kineto-a100-sam-eager"


@pytest.mark.long
@pytest.mark.skipif(not SAM.is_dir(), reason="needs the real captures beside the project")
def test_every_call_of_a_real_model_is_found() -> None:
    """In an eager Segment Anything softmax is only used in attention, 144 times."""
    case = RuleContext(source.load(str(SAM / "trace.json.gz"), host=False).table)
    calls = attention_calls(case)
    assert len(calls) == np.count_nonzero(case.role(Role.SOFTMAX)) == 144
