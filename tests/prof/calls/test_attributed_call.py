"""The op call that kernels work for: what is known of it, and its cost."""

from pyprof import ops
from pyprof.marker import Call, Tensor
from pyprof.ops.registry import BPROP, FPROP
from pyprof.prof.calls.attributed_call import OWN, AttributedCall

MM = Call("torch", "mm", (Tensor((4, 8), "float32"), Tensor((8, 2), "float32")))


def test_without_a_call_the_cost_is_unknown_for_the_stated_reason() -> None:
    nobody = AttributedCall(
        call=None, direction=FPROP, dtype=None, position=OWN, reason="no marker"
    )
    assert nobody.cost() == ops.Cost(None, None, {}, "no marker")
    assert (nobody.has_shapes, nobody.lacks_dtype, nobody.gradient) == (False, False, False)


def test_a_product_costs_two_flops_per_multiplication() -> None:
    called = AttributedCall(call=MM, direction=FPROP, dtype=None, position=0)
    assert called.cost().flops == 2 * 4 * 8 * 2
    assert (called.has_shapes, called.lacks_dtype, called.gradient) == (True, False, False)


def test_a_dtype_stands_for_those_that_the_text_lacks() -> None:
    bare = Call("torch", "mm", (Tensor((4, 8), None), Tensor((8, 2), None)))
    unknown = AttributedCall(call=bare, direction=BPROP, dtype=None, position=0)
    known = AttributedCall(call=bare, direction=FPROP, dtype="float16", position=0)
    assert (unknown.lacks_dtype, unknown.gradient, unknown.cost().bytes) == (True, True, None)
    assert known.cost().bytes == 2 * (4 * 8 + 8 * 2 + 4 * 2)
