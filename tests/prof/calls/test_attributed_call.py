"""The op call that kernels work for: its fields and its cost."""

import pytest

from pyprof import ops
from pyprof.gpu.eligible import FAMILIES as MATRIX_FAMILIES
from pyprof.gpu.kernel_roles import FAMILY_RANKS
from pyprof.marker import Call, Tensor
from pyprof.ops.registry import BPROP, FAMILIES, FPROP
from pyprof.prof.calls.attributed_call import PRODUCTS, AttributedCall, family
from pyprof.prof.calls.op_calls import SPARSE

MM = Call("torch", "mm", (Tensor((4, 8), "float32"), Tensor((8, 2), "float32")))


def test_without_a_call_the_cost_is_unknown_for_the_stated_reason() -> None:
    nobody = AttributedCall(call=None, direction=FPROP, reason="no marker")
    assert nobody.cost() == ops.Cost(None, None, {}, "no marker")
    assert (nobody.has_shapes, nobody.lacks_dtype, nobody.gradient) == (False, False, False)


def test_a_product_costs_two_flops_per_multiplication() -> None:
    called = AttributedCall(call=MM, direction=FPROP, position=0)
    assert called.cost().flops == 2 * 4 * 8 * 2
    assert (called.has_shapes, called.lacks_dtype, called.gradient) == (True, False, False)


def test_a_given_dtype_fills_in_for_types_that_the_text_lacks() -> None:
    bare = Call("torch", "mm", (Tensor((4, 8), None), Tensor((8, 2), None)))
    unknown = AttributedCall(call=bare, direction=BPROP, position=0)
    known = AttributedCall(call=bare, direction=FPROP, dtype="float16", position=0)
    assert (unknown.lacks_dtype, unknown.gradient, unknown.cost().bytes) == (True, True, None)
    assert known.cost().bytes == 2 * (4 * 8 + 8 * 2 + 4 * 2)


_ALIKE = {*("scan", "resample", "distance", "fft", "linalg", "view", "fused", "other")}
"""Families whose kernel names do not show which kernel does the arithmetic."""


def test_families_with_kernels_of_their_own_are_families_of_ops() -> None:
    assert set(FAMILY_RANKS) | _ALIKE == set(FAMILIES)
    assert set(FAMILY_RANKS).isdisjoint(_ALIKE)
    assert FAMILIES.keys() >= PRODUCTS | SPARSE | MATRIX_FAMILIES


@pytest.mark.parametrize(
    ("call", "direction", "expected"),
    [
        (Call("torch", "kron"), FPROP, "pointwise"),
        (Call("torch", "linear"), BPROP, "gemm"),
        (Call("mylib", "linear"), FPROP, ""),
        (None, FPROP, ""),
    ],
)
def test_work_has_the_family_of_its_formula(
    call: Call | None, direction: str, expected: str
) -> None:
    reason = "" if call else "no marker"
    work = AttributedCall(call=call, direction=direction, position=0, reason=reason)
    assert family(work) == expected
