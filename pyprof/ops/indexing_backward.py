"""What the backward passes of indexing and scattering move; forward in `indexing`."""

from __future__ import annotations

from pyprof.marker import Call, Tensor
from pyprof.ops.indexing import indexed
from pyprof.ops.registry import BPROP, op
from pyprof.ops.work import Args, Work, like

FAMILY = "index"

_X = Tensor((4, 6), "float16")
_ROWS = Tensor((2,), "int64")
_PLACES = Tensor((4, 2), "int64")


# the source's gradient: index 8 of 8 bytes, 8 picked from go and 8 written of 2 bytes
@op(
    *("scatter_add", "index_add"),
    direction=BPROP,
    signature="Tensor input, int dim, Index index, Tensor! src",
    example=Call("Tensor", "scatter_add_", (_X, 1, _PLACES, Tensor((4, 2), "float16"))),
    flops=0,
    bytes=96,
)
def scatter_add_backward(a: Args) -> Work:
    """The input's gradient is the incoming one; the source's is gathered from it."""
    index, source = a.tensor("index"), a.tensor("src")
    return Work(0, (index, like(source)), (like(source),))


# and the input's: go 24 read, 24 written with zeros at the places
@op(
    *("scatter", "index_copy"),
    direction=BPROP,
    signature="Tensor input, int dim, Index index, Tensor! src",
    example=Call("Tensor", "scatter", (_X, 1, _PLACES, Tensor((4, 2), "float16"))),
    flops=0,
    bytes=192,
)
def scatter_backward(a: Args) -> Work:
    """The input's gradient is the incoming one with zeros; the source's is gathered from it."""
    x = a.tensor("input")
    return Work(0, (like(x),), (like(x),)) + scatter_add_backward(a)


# rows' values: index 2 of 8 bytes, 12 picked from go and 12 written; the input's: go 24 read, 24
# written with zeros at the places, of 2 bytes
@op(*("index_put", "_index_put_impl", "_unsafe_index_put"), direction=BPROP, flops=0, bytes=160)
def index_put_backward(a: Args) -> Work:
    """The input's gradient is the incoming one with zeros; the values' is gathered from it."""
    x = a.tensor("input")
    indices, shape = indexed(a, x)
    place, values = like(x, shape), a.optional("values")
    gathered = Work(0) if values is None else Work(0, (*indices, place), (like(values),))
    kept = Work(0) if a.values.get("accumulate") is True else Work(0, (like(x),), (like(x),))
    return kept + gathered


# go 24 read, 24 written with zeros in 2 rows; index 2 of 8 bytes
@op(
    *("index_fill", "masked_scatter"),
    direction=BPROP,
    signature=("Tensor input, int dim, Index index", "Tensor input, Mask mask, Tensor source"),
    example=Call("torch", "index_fill", (_X, 0, _ROWS, 1.0)),
    flops=0,
    bytes=112,
)
def index_fill_backward(a: Args) -> Work:
    """The incoming gradient with zeros; of a mask, the source's share is unknown."""
    x = a.tensor("input")
    mask = a.optional("mask")
    if mask is not None:
        return Work(0, (mask, like(x)), (like(x),), {}, None, "result's size depends on the data")
    return Work(0, (a.tensor("index"), like(x)), (like(x),))


# which one was taken: compare, count, divide for 24 and for 8 elements; index 8 of 8 bytes, go,
# input and result 72 and source 8 read, 24 and 8 written of 2 bytes
@op(
    *("scatter_reduce", "index_reduce"),
    direction=BPROP,
    signature="Tensor input, int dim, Index index, Tensor! src, str reduce",
    example=Call("Tensor", "scatter_reduce", (_X, 1, _PLACES, Tensor((4, 2), "float16"), "amax")),
    flops=96,
    bytes=288,
)
def scatter_reduce_backward(a: Args) -> Work:
    """A sum's is that of `scatter_add`; of the rest each needs what went in and what came out."""
    if a.value("reduce", "amax") == "sum":
        return scatter_add_backward(a)
    x, index, source = a.tensor("input"), a.tensor("index"), a.tensor("src")
    reads = (index, like(x), x, like(x), source)
    return Work(3 * (x.numel + source.numel), reads, (like(x), like(source)))
