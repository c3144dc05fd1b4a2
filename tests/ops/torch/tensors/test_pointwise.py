"""Formulas of `pointwise`, by their worked examples and foreign arguments."""

from pyprof import ops
from pyprof.marker import Call
from pyprof.ops.examples import b8, f16
from tests.ops.contract import contract_of

test_formulas_keep_the_contract = contract_of("torch.tensors.pointwise")


def test_where_without_values_finds_places_as_nonzero_does() -> None:
    found, places = (ops.cost(Call("torch", name, (b8(4, 6),))) for name in ("where", "nonzero"))
    assert (found.flops, found.bytes, found.reason) == (0, None, places.reason)
    assert ops.cost(Call("torch", "where", (b8(4, 6), f16(6), f16(4, 6)))).bytes == 24 + 12 + 96
