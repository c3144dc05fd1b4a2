"""Autograd functions of libraries, version by version, and others of the same name."""

import pytest

from pyprof import ops
from pyprof.marker import Call, Tensor, Value
from pyprof.ops.examples import bf16, f32, i32, i64
from tests.ops.contract import contract_of

test_formulas_keep_the_contract = contract_of("libraries.autograd_functions")


HEADS, WIDTH = 4, 16


@pytest.mark.parametrize(
    ("rest", "known"),
    [
        ((8, 8, 0.0, 0.25, True), True),  # FlashAttention 2
        ((None, None, 8, 8, 0.25, True), True),  # 3
        ((None, i32(2), 8, 8, 0.25, True), False),  # parts of the sequences
        ((8, 9, 0.0, 0.25, True), False),
    ],
)
def test_packed_sequences_in_both_orders_of_arguments(
    rest: tuple[Value, ...], *, known: bool
) -> None:
    """Two libraries have a `FlashAttnVarlenFunc`; the maximum lengths are the first integers."""
    packed, starts = bf16(16, HEADS, WIDTH), i32(3)
    call = Call("", "FlashAttnVarlenFunc", (packed, packed, packed, starts, starts, *rest))
    assert ops.cost(call).flops == (2 * HEADS * 8 * 8 * 2 * WIDTH if known else None)


@pytest.mark.parametrize(
    ("op", "args"),
    [
        ("TopK", (f32(4, 8), 2)),  # a user's function of that name
        ("SortTokens", (f32(4, 8), i64(4), 2)),
        ("_Linear", (f32(4, 8), f32(5, 7))),
        ("RMSNormFunction", (f32(4, 8), f32(4))),
        ("CrossEntropyFunction", (f32(4, 8), i64(8))),
        ("SwiGLUFunction", (f32(4, 8), f32(8, 8))),
        ("FlashAttnFunc", (f32(4, 8),) * 3),
    ],
)
def test_functions_of_the_same_name_with_other_arguments_are_unknown(
    op: str, args: tuple[Tensor | int, ...]
) -> None:
    """Autograd functions have no namespace, so arguments have to fit."""
    found = ops.cost(Call("", op, args))
    assert (found.flops, bool(found.reason)) == (None, True)
