"""Random numbers and dropout.

Drawing a uniform number is the generator's integer work and counts nothing; a normal one takes a
logarithm, a root and a sine (three transcendental functions for two numbers are rounded up to
two for one), an exponential one a logarithm. Bytes: what is written, and for dropout its mask.
"""

from __future__ import annotations

from pyprof.marker import Call, Tensor
from pyprof.ops.pointwise_rules import TRANSCENDENTAL
from pyprof.ops.registry import BPROP, op
from pyprof.ops.signature import Unknown
from pyprof.ops.work import Args, Work, fresh, like

_X = Tensor((2, 3), "float16")
_EACH = {
    "randn": 2 * TRANSCENDENTAL,
    "randn_like": 2 * TRANSCENDENTAL,
    "normal": 2 * TRANSCENDENTAL + 2,
    "exponential": TRANSCENDENTAL + 1,
    "geometric": TRANSCENDENTAL + 2,
    "log_normal": 3 * TRANSCENDENTAL + 2,
    "cauchy": TRANSCENDENTAL + 2,
    "uniform": 2,
    "bernoulli": 1,
}


# 6 numbers of 2 operations; written, of 2 bytes
@op(
    *("uniform", "normal", "exponential", "geometric", "log_normal", "cauchy", "random"),
    "bernoulli",
    signature="Tensor input, Value[] rest",
    example=Call("Tensor", "uniform_", (_X, -1.0, 1.0)),
    flops=12,
    bytes=12,
)
# 6 numbers of 40 operations; written, of 4 bytes
@op(
    *("rand_like", "randn_like"),
    signature="Tensor input, *, dtype dtype",
    example=Call("torch", "randn_like", (_X,), {"dtype": "float32"}),
    flops=240,
    bytes=24,
)
@op(
    "randint_like",
    signature=(
        "Tensor input, int low, int high, *, dtype dtype, any layout, any device, any pin, any mf",
        "Tensor input, int high, *, dtype dtype, any layout, any device, any pin, any mf",
    ),
    example=Call("torch", "randint_like", (_X, 10)),
    flops=0,
    bytes=12,
)
def drawn(a: Args) -> Work:
    """Every element is drawn and written."""
    x = a.tensor("input")
    reads = (x,) if a.op == "bernoulli" and not a.in_place else ()
    asked = a.dtype() if a.known("dtype") else None
    return Work(_EACH.get(a.op, 0) * x.numel, reads, (fresh(x.shape, asked or x.dtype),))


# 6 numbers of 40 operations; written, of 4 bytes
@op(
    *("rand", "randn"),
    signature="Size size, *, dtype dtype",
    example=Call("torch", "randn", (2, 3)),
    flops=240,
    bytes=24,
)
def made(a: Args) -> Work:
    """A new tensor of random numbers."""
    out = fresh(a.sizes("size"), a.dtype() or "float32")
    return Work(_EACH.get(a.op, 0) * out.numel, (), (out,))


# 6 integers of 8 bytes
@op(
    "randint",
    signature=(
        "int low, int high, int[] size, *, dtype dtype, any layout, any device, any pin",
        "int high, int[] size, *, dtype dtype, any layout, any device, any pin",
    ),
    example=Call("torch", "randint", (0, 10, (2, 3))),
    flops=0,
    bytes=48,
)
def randint(a: Args) -> Work:
    """A new tensor of random whole numbers."""
    return Work(0, (), (fresh(a.sizes("size"), a.dtype() or "int64"),))


# 10 integers of 8 bytes
@op(
    "randperm",
    signature="int n, *, dtype dtype",
    example=Call("torch", "randperm", (10,)),
    flops=0,
    bytes=80,
)
def randperm(a: Args) -> Work:
    """A permutation: sorted random keys, no arithmetic counted."""
    if not a.given("n"):
        raise Unknown("n not recorded")
    return Work(0, (), (fresh((a.integer("n", 0),), a.dtype() or "int64"),))


# compare with p, times the mask, times the scale: 6 * 3; 6 read and 6 written of 2 bytes, the
# mask's 6 of 1 byte
@op(
    *("dropout", "alpha_dropout", "native_dropout", "_fused_dropout"),
    signature="Tensor input, float p, bool training, bool inplace",
    example=Call("torch.nn.functional", "dropout", (_X, 0.2, True, False)),
    flops=18,
    bytes=30,
    batch=("input",),
)
def dropout(a: Args) -> Work:
    """In evaluation nothing is done, nor where nothing is to be dropped."""
    x = a.tensor("input")
    if a.values.get("training") is False or a.values.get("p") == 0:
        return Work(0)
    # alpha_dropout: the mask less 1, scaled and shifted, is added to what is left
    each = 7 if a.op == "alpha_dropout" else 3
    return Work(each * x.numel, (x,), (like(x), fresh(x.shape, "bool")))


# times the mask, times the scale: 6 * 2; go 6 and 6 written of 2 bytes, the mask's 6 of 1 byte
@op(
    *("dropout", "alpha_dropout", "native_dropout", "_fused_dropout"),
    direction=BPROP,
    flops=12,
    bytes=30,
    batch=("input",),
)
@op(
    *("aten::native_dropout_backward", "aten::_masked_scale"),
    signature="Tensor input, Mask mask, float scale",
    example=Call("aten", "native_dropout_backward", (_X, Tensor((2, 3), "bool"), 1.25)),
    flops=12,
    bytes=30,
    batch=("input", "mask"),
)
def dropout_backward(a: Args) -> Work:
    """The incoming gradient where the mask let through, scaled."""
    x = a.tensor("input")
    return Work(2 * x.numel, (like(x), fresh(x.shape, "bool")), (like(x),))
