"""Formulas of `multi_tensor`, by their worked examples, foreign arguments, and Apex's by hand."""

import pytest

from pyprof import ops
from pyprof.marker import Call, Tensor
from pyprof.ops.examples import f16, f32, i32
from tests.ops.contract import contract_of

test_formulas_keep_the_contract = contract_of("torch.tensors.multi_tensor")

PARTS, HALF = (f32(4, 5), f32(10)), (f16(4, 5), f16(10))


@pytest.mark.parametrize(
    ("name", "lists", "flops", "moved"),
    [
        ("scale", (HALF, PARTS), 2, 2 + 4),  # a product and a check for inf; in read, out written
        ("axpby", (PARTS,) * 3, 4, 3 * 4),  # two products, a sum, a check; x, y read, out written
        ("l2norm", (PARTS,), 2, 4),  # a square and a sum; the norm itself is not counted
        ("sgd", (PARTS,) * 3, 4, 5 * 4),  # all read, parameters and momentum written
        ("sgd", (*(PARTS,) * 3, HALF), 4, 5 * 4 + 2),  # also a copy in half precision
    ],
)
def test_apexs_kernels_by_hand(
    name: str, lists: tuple[tuple[Tensor, ...], ...], flops: int, moved: int
) -> None:
    """FLOPs per element, of which there are 30, and how many bytes are moved for each."""
    cost = ops.cost(Call("amp_C", f"multi_tensor_{name}", (65536, i32(1), lists)))
    assert (cost.flops, cost.bytes) == (30 * flops, 30 * moved)


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


@pytest.mark.parametrize("chunks", [1, 2, 3])
def test_chunks_are_filled_up_as_torch_does(chunks: int) -> None:
    """Also on a single rank, which has one; 30 elements are read."""
    torch = pytest.importorskip("torch")
    result = torch._chunk_cat([torch.ones(tensor.shape) for tensor in PARTS], 0, chunks)
    cost = ops.cost(Call("aten", "_chunk_cat", (PARTS, 0, chunks)))
    assert cost.bytes == 4 * (30 + result.numel())
