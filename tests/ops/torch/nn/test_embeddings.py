"""Formulas of `embeddings`, by their worked examples and foreign arguments; options of bags."""

import pytest

from pyprof import ops
from pyprof.marker import Call, Opaque, Value
from pyprof.ops.examples import NN, f16, f32, i64
from tests.ops.contract import contract_of

test_formulas_keep_the_contract = contract_of("torch.nn.embeddings")


TABLE, IDS = f16(1000, 8), i64(4, 5)
DENSE, SPARSE = (160, 8 * 20 + 2 * 160 + 2 * 8000), (0, 2 * (8 * 20 + 2 * 160))


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (Call("torch", "embedding", (TABLE, IDS, -1, False, True)), SPARSE),
        (Call("torch", "embedding", (TABLE, IDS, 3, False, True)), None),
        (Call("torch", "embedding", (TABLE, IDS, -1, False, Opaque("bool"))), DENSE),
        (Call(NN, "embedding", (IDS, TABLE, None, None, 2.0, False, True)), SPARSE),
        (Call(NN, "embedding", (IDS, TABLE, -1, None, 2.0, False, True)), None),  # the last row
    ],
)
def test_a_sparse_gradient_copies_the_incoming_one(
    call: Call, expected: tuple[int, int] | None
) -> None:
    """A row per index, nothing added; with padding the number of rows depends on the data."""
    found = ops.cost(call, "bprop")
    assert (found.flops, found.bytes) == (expected or (None, None))
    assert expected or found.reason == "result's size depends on the data"


def test_atens_backward_of_an_embedding_may_be_sparse() -> None:
    found = ops.cost(Call("aten", "embedding_backward", (f16(4, 5, 8), IDS, 1000, -1, False, True)))
    assert (found.flops, found.bytes) == SPARSE


def test_a_bags_sparse_gradient_has_a_row_for_each_index() -> None:
    given = (TABLE, i64(6), i64(2), False, 0)
    dense, sparse = (
        ops.cost(Call("torch", "embedding_bag", (*given, flag)), "bprop") for flag in (False, True)
    )
    assert (dense.bytes, sparse.bytes) == (64 + 32 + 16000, 64 + 32 + 48 + 96)


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
