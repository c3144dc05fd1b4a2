"""Products with weights, packed or not."""

from pyprof import ops
from pyprof.marker import Call
from pyprof.ops.examples import bf16, f8, f32, u8
from tests.ops.contract import contract_of

test_formulas_keep_the_contract = contract_of("libraries.weight_products")


def test_packed_types_count_their_elements() -> None:
    """An FP4 product has twice the depth of its bytes, and reads those bytes."""
    out = bf16(4, 5)
    x, w = u8(4, 32), u8(5, 32)
    scales = (f8(4, 4), f8(5, 4))
    cost = ops.cost(Call("_C", "cutlass_scaled_fp4_mm", (out, x, w, *scales, f32(1))))
    assert cost.flops == 2 * 4 * 5 * 64
    assert cost.bytes == 4 * 32 + 5 * 32 + 16 + 20 + 4 + 40
