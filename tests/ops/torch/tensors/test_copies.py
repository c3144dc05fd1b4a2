"""Formulas of `copies`, by their worked examples and foreign arguments; dtypes of casts."""

import pytest

from pyprof import ops
from pyprof.marker import Call, Opaque, Value
from pyprof.ops.examples import f16, f32
from tests.ops.contract import contract_of

test_formulas_keep_the_contract = contract_of("torch.tensors.copies")

NOT_RECORDED = Opaque()


@pytest.mark.parametrize(
    ("arguments", "each"),
    [
        (("float64",), 8),
        (("cuda",), 2),
        (("cuda", "float64"), 8),
        ((f32(1),), 4),
        ((6, False, False, None), 4),  # ATen's number of float32
        ((None, 7, False, False, None), 8),  # a device, then ATen's number of float64
        ((None, None, None, None, False, None), 2),  # dtype, layout, device, ..., all as they are
        ((7, 0, None, None, False, None), 8),  # 0 is a layout
        ((NOT_RECORDED, 0, None, None, False, None), None),
    ],
)
def test_a_cast_writes_the_dtype_that_it_is_given(
    arguments: tuple[Value, ...], each: int | None
) -> None:
    """6 elements of 2 bytes are read."""
    cost = ops.cost(Call("aten", "to", (f16(2, 3), *arguments)))
    assert cost.bytes == (None if each is None else 6 * (2 + each))
