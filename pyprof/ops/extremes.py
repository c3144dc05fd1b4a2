"""The largest, the smallest, the middle and the most frequent, with the places where they were.

One comparison an element; those of a sort, which a median makes, are not counted. Bytes: the input
read once, values and 64-bit places written once.
"""

from __future__ import annotations

from dataclasses import replace

from pyprof.marker import Call, Tensor
from pyprof.ops.pointwise import pointwise_backward, promoted_dtype
from pyprof.ops.reductions import reduced
from pyprof.ops.registry import BPROP, op
from pyprof.ops.work import Args, Work, broadcast, fresh, like

FAMILY = "reduction"

_X = Tensor((4, 6), "float16")


# max over 6 columns: 24 comparisons; 24 read, 4 values of 2 bytes and 4 indices of 8 written
@op(
    *("max", "min", "median", "nanmedian", "mode"),
    signature=("Tensor input, Tensor! other", "Tensor input, int dim, bool keepdim"),
    example=Call("torch", "max", (_X, 1)),
    flops=24,
    bytes=88,
)
def extreme(a: Args) -> Work:
    """Over a dimension also the index is written. Of two tensors, the larger of each pair."""
    x, other = a.tensor("input"), a.optional("other")
    if other is not None:
        both = fresh(broadcast([x.shape, other.shape]), promoted_dtype((x, other)))
        return Work(both.numel, (x, other), (both,))
    return Work(x.numel, (x,), _extremes(a, x))


def _extremes(a: Args, x: Tensor) -> tuple[Tensor, ...]:
    """Give the values and, over a dimension, their places; the mode is always over one."""
    if a.op == "mode" and not a.given("dim"):
        a = a.replaced(dim=-1)
    out = like(x, reduced(a, x))
    return (out, fresh(out.shape, "int64")) if a.given("dim") else (out,)


# go is put where the index says, the rest is zero: go 4, index 4 read, 24 written
@op(*("max", "min", "median", "nanmedian", "mode"), direction=BPROP, flops=0, bytes=88)
def extreme_backward(a: Args) -> Work:
    """A gradient of zeros with the incoming one put in; of two tensors, that of `maximum`.

    Without a dimension there are no places: compared with the result, divided by their number.
    """
    x = a.tensor("input")
    if a.present("other"):
        pair = {"operands": (x, a.tensor("other"))}
        return pointwise_backward(replace(a, op="maximum", values=pair))
    found = _extremes(a, x)
    if len(found) == 1:
        return Work(3 * x.numel, (x, *found, *found), (like(x),))
    return Work(0, found, (like(x),))
