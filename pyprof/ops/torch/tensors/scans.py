"""Running sums and extremes, forward and backward: one operation an element, read and written."""

from pyprof.ops.examples import Example, f16
from pyprof.ops.registry import BPROP, op
from pyprof.ops.torch.tensors.pointwise_rules import TRANSCENDENTAL
from pyprof.ops.torch.tensors.reductions import result_dtype
from pyprof.ops.work import Args, Work, fresh, like

FAMILY = "scan"

_X = f16(4, 6)


# 24 additions; 24 read and 24 written of 2 bytes
@op(
    *("cumsum", "cumprod", "logcumsumexp", "cummax", "cummin"),
    signature="Tensor input, int dim, *, dtype dtype",
    example=Example((_X, 0), flops=24, bytes=96),
)
def scan(a: Args) -> Work:
    """A running sum: one operation an element."""
    x = a.tensor("input")
    out = fresh(x.shape, result_dtype(a, x))
    each = 2 * TRANSCENDENTAL + 2 if a.op == "logcumsumexp" else 1
    indices = (fresh(x.shape, "int64"),) if a.op in ("cummax", "cummin") else ()
    return Work(each * x.numel, (x,), (out, *indices))


# the incoming gradient summed from the other end: 24; 24 read, 24 written
@op("cumsum", direction=BPROP, flops=24, bytes=96)
# put where the maximum was and added up: 24; go 24 of 2 bytes and 24 indices of 8 read, 24 written
@op(
    *("cummax", "cummin"),
    direction=BPROP,
    signature="Tensor input, int dim",
    example=Example((_X, 0), flops=24, bytes=288),
)
# times the result 1, summed from the other end 1, over the input 1: 24 * 3; go, result, input read,
# 24 written of 2 bytes
@op("cumprod", direction=BPROP, example=Example((_X, 0), flops=72, bytes=192))
def cumulative_backward(a: Args) -> Work:
    """From the indices, or, without zeros in the input of `cumprod`, from its result."""
    x = a.tensor("input")
    if a.op == "cumprod":
        return Work(3 * x.numel, (like(x), like(x), x), (like(x),))
    indices = () if a.op == "cumsum" else (fresh(x.shape, "int64"),)
    return Work(x.numel, (like(x), *indices), (like(x),))
