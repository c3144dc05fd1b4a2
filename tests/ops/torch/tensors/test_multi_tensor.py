"""Formulas of `multi_tensor`, by their worked examples, foreign arguments, and Apex's by hand."""

import pytest

from pyprof import ops
from pyprof.marker import Call
from pyprof.ops.examples import f32, i32
from tests.ops.contract import contract_of

test_formulas_keep_the_contract = contract_of("torch.tensors.multi_tensor")

PARTS = (f32(4, 5), f32(10))


@pytest.mark.parametrize(
    ("name", "lists", "flops", "moved"),
    [
        ("scale", 2, 2, 2),  # a product and a check for inf; in read, out written
        ("axpby", 3, 4, 3),  # two products, a sum, a check; x and y read, out written
        ("l2norm", 1, 2, 1),  # a square and a sum; the norm itself is not counted
        ("sgd", 3, 4, 5),  # all read, parameters and momentum written
        ("sgd", 4, 4, 6),  # also a copy in half precision, here of 4 bytes
    ],
)
def test_apexs_kernels_by_hand(name: str, lists: int, flops: int, moved: int) -> None:
    """FLOPs per element, and how often each of 30 elements of 4 bytes is moved."""
    cost = ops.cost(Call("amp_C", f"multi_tensor_{name}", (65536, i32(1), (PARTS,) * lists)))
    assert (cost.flops, cost.bytes) == (30 * flops, 30 * 4 * moved)


@pytest.mark.parametrize(
    ("name", "lists", "each"),
    [
        ("_fused_adam_", 4, 32),  # moments 3 + 4, a root 20, a division and eps 2, the step 3
        ("_fused_adamw_", 4, 33),  # and the decay
        ("_fused_adagrad_", 3, 26),  # g g, its sum; a root 20, eps, a division, the step 2
        ("_fused_sgd_", 3, 4),
    ],
)
def test_fused_optimizers_by_hand(name: str, lists: int, each: int) -> None:
    cost = ops.cost(Call("aten", name, (PARTS,) * lists))
    assert cost.flops == 30 * each
