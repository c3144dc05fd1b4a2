"""Formulas of `embeddings`, by their worked examples and foreign arguments; options of bags."""

from pyprof import ops
from pyprof.marker import Call, Value
from pyprof.ops.examples import NN, f32, i64
from tests.ops.contract import contract_of

test_formulas_keep_the_contract = contract_of("torch.nn.embeddings")


def test_the_last_offset_may_begin_no_bag() -> None:
    """With include_last_offset it is where the last bag ends, and is read like the others."""
    table, ids, last = f32(10, 4), i64(6), {"include_last_offset": True}
    two = ops.cost(Call(NN, "embedding_bag", (ids, table, i64(2))))
    also_two = ops.cost(Call(NN, "embedding_bag", (ids, table, i64(3)), last))
    assert (two.flops, two.bytes) == (24, 48 + 16 + 96 + 32)
    assert (also_two.flops, also_two.bytes) == (24, 48 + 24 + 96 + 32)


def test_a_sparse_gradient_with_weights_has_no_additions() -> None:
    """Each row's gradient is a product; those of the weights are products of rows and sums."""
    arguments = (i64(6), f32(10, 4), i64(2))
    options: dict[str, Value] = {"sparse": True, "per_sample_weights": f32(6)}
    cost = ops.cost(Call(NN, "embedding_bag", arguments, options), "bprop")
    read = 48 + 16 + 24 + 32 + 96  # indices, offsets, weights, incoming gradient, rows
    assert (cost.flops, cost.bytes) == (72, read + 24 + 48 + 96)  # weights, indices, rows
