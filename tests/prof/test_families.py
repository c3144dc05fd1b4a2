"""Families of ops, by which kernel roles are classified."""

from pyprof.gpu.eligible import FAMILIES as MATRIX_FAMILIES
from pyprof.gpu.kernel_roles import FAMILY_RANKS
from pyprof.marker import Call
from pyprof.ops.families import FAMILIES
from pyprof.ops.registry import BPROP, FPROP
from pyprof.prof.calls.attributed_call import AttributedCall
from pyprof.prof.calls.op_calls import SPARSE
from pyprof.prof.families import PRODUCTS, family

_ALIKE = {*("scan", "resample", "distance", "fft", "linalg", "view", "fused", "other")}
"""Families whose kernels' names do not tell which of them does the arithmetic."""


def test_families_with_kernels_of_their_own_are_families_of_ops() -> None:
    """No name is misspelt wherever a family is asked for, and none was forgotten."""
    assert set(FAMILY_RANKS) | _ALIKE == set(FAMILIES)
    assert set(FAMILY_RANKS).isdisjoint(_ALIKE)
    assert FAMILIES.keys() >= PRODUCTS | SPARSE | MATRIX_FAMILIES


def test_a_work_has_the_family_of_its_formula() -> None:
    """Forward and backward; none where no formula is known."""
    outer = Call("torch", "kron")
    assert (
        family(AttributedCall(call=outer, direction=FPROP, dtype=None, position=0)) == "pointwise"
    )
    assert (
        family(
            AttributedCall(call=Call("torch", "linear"), direction=BPROP, dtype=None, position=0)
        )
        == "gemm"
    )
    assert (
        family(
            AttributedCall(call=Call("mylib", "linear"), direction=FPROP, dtype=None, position=0)
        )
        == ""
    )
    assert (
        family(
            AttributedCall(call=None, direction=FPROP, dtype=None, position=0, reason="no marker")
        )
        == ""
    )
