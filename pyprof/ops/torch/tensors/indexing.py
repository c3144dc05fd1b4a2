"""Gather, scatter and square brackets: elements moved from or to indexed positions.

No arithmetic except the additions of ops that accumulate. Bytes: the indices read once, each
selected element read once and written once. At most the whole table is read. In square brackets
numbers and slices make a view, and index tensors select from it; an assignment reads its value once
and writes the target once.
"""

import math

from pyprof.marker import Tensor, Value
from pyprof.ops.examples import Example, b8, f16, i64
from pyprof.ops.registry import BPROP, backward_of, op
from pyprof.ops.signature import Unknown
from pyprof.ops.work import SIZE_IN_DATA, Args, Work, broadcast, fresh, like, require, stored

FAMILY = "index"

_X = f16(4, 6)
_INDICES = i64(4, 2)


def picked(source: Tensor, count: int) -> Tensor:
    """Return the elements that are read: as many as are picked, but at most all there are."""
    return fresh((min(count, stored(source)),), source.dtype)


# 8 indices of 8 bytes; 8 read and 8 written of 2 bytes
@op(
    "gather",
    signature="Tensor input, int dim, Index index",
    example=Example((_X, 1, _INDICES), flops=0, bytes=96),
)
@op(
    "take_along_dim",
    signature="Tensor input, Index index, int dim",
    example=Example((_X, _INDICES, 1), flops=0, bytes=96),
)
@op("take", signature="Tensor input, Index index", example=Example((_X, i64(8)), flops=0, bytes=96))
def gather(a: Args) -> Work:
    """An element for each index, from the tensor or, for `take`, from the flattened tensor."""
    x, index, out = _gathered(a)
    return Work(0, (index, picked(x, out.numel)), (out,))


def _gathered(a: Args) -> tuple[Tensor, Tensor, Tensor]:
    """Return the input, the indices and the result, in their shape or broadcast except in `dim`."""
    x, index = a.tensor("input"), a.tensor("index")
    shape = index.shape
    if a.op == "take_along_dim" and a.given("dim"):
        at = a.dims("dim", len(x.shape))
        shape = broadcast([shape, tuple(1 if i in at else n for i, n in enumerate(x.shape))])
    return x, index, like(x, shape)


# 8 additions; index 8 of 8 bytes, go 8 read, 24 written of 2 bytes
@backward_of(gather, flops=8, bytes=128)
def gather_backward(a: Args) -> Work:
    """The incoming gradient is added into zeros of the input's size."""
    x, index, go = _gathered(a)
    return Work(go.numel, (index, go), (like(x),))


# 2 rows of 6: index 2 of 8 bytes; 12 read and 12 written of 2 bytes
@op(
    "index_select",
    signature="Tensor input, int dim, Index index",
    example=Example((_X, 0, i64(2)), flops=0, bytes=64),
)
def index_select(a: Args) -> Work:
    """A slice for each index."""
    x, index = a.tensor("input"), a.tensor("index")
    out = like(x, _selected(a, x, index))
    return Work(0, (index, picked(x, out.numel)), (out,))


# 12 additions; index 2 of 8 bytes, go 12 read, 24 written of 2 bytes
@backward_of(index_select, flops=12, bytes=88)
def index_select_backward(a: Args) -> Work:
    """The incoming gradient is added into zeros of the input's size."""
    x, index = a.tensor("input"), a.tensor("index")
    go = like(x, _selected(a, x, index))
    return Work(go.numel, (index, go), (like(x),))


def _selected(a: Args, x: Tensor, index: Tensor) -> tuple[int, ...]:
    dims = a.dims("dim", len(x.shape))
    if len(dims) != 1:
        raise Unknown("dim not recorded")
    return tuple(index.numel if at == dims[0] else size for at, size in enumerate(x.shape))


# as index_select over the first dimension
@op(
    *("index", "_unsafe_index"),
    signature="Tensor input, Tensor[] indices",
    example=Example((_X, (i64(2),)), flops=0, bytes=64, mod="aten"),
)
def index(a: Args) -> Work:
    """What index tensors for the first dimensions pick."""
    x = a.tensor("input")
    indices, shape = _picked_by(a, x)
    out = like(x, shape)
    return Work(0, (*indices, picked(x, out.numel)), (out,))


def _picked_by(a: Args, x: Tensor) -> tuple[tuple[Tensor, ...], tuple[int, ...]]:
    """Return the index tensors and the shape that they pick.

    If the tensors were not recorded, the shape may be known from elsewhere; then none is counted.
    """
    if a.output is not None and not any(isinstance(item, Tensor) for item in a.listed("indices")):
        return (), a.output
    return indexed(a, x)


# 12 additions; index 2 of 8 bytes, go 12 read, 24 written of 2 bytes
@backward_of(index, flops=12, bytes=88)
def index_backward(a: Args) -> Work:
    """The incoming gradient is added into zeros of the input's size."""
    x = a.tensor("input")
    indices, shape = indexed(a, x)
    go = like(x, shape)
    return Work(go.numel, (*indices, go), (like(x),))


def indexed(a: Args, x: Tensor) -> tuple[tuple[Tensor, ...], tuple[int, ...]]:
    """Return the index tensors and the shape that they pick; None keeps a dimension whole."""
    asked = a.listed("indices")
    at = [place for place, value in enumerate(asked) if isinstance(value, Tensor)]
    indices = tuple(value for value in asked if isinstance(value, Tensor))
    if any(tensor.dtype in ("bool", "uint8") for tensor in indices):
        raise Unknown(SIZE_IN_DATA)
    if not indices:
        raise Unknown("indices not recorded")
    require(len(asked) <= len(x.shape))
    together = at[-1] - at[0] == len(at) - 1
    kept_sizes = [size for place, size in enumerate(x.shape) if place not in at]
    front = at[0] if together else 0  # dimensions of index tensors that are not adjacent come first
    picked_shape = broadcast(tensor.shape for tensor in indices)
    return indices, (*kept_sizes[:front], *picked_shape, *kept_sizes[front:])


# 12 written, 12 read of 2 bytes, index 2 of 8 bytes
_PUT = "Tensor input, Tensor[] indices, Number values, bool accumulate"


@op(
    "_index_put_impl",
    signature=f"{_PUT}, bool unsafe",
    example=Example(
        (_X, (i64(2),), f16(2, 6), False, False),
        flops=0,
        bytes=64,
        op="_index_put_impl_",
        mod="aten",
    ),
)
@op(
    *("index_put", "_unsafe_index_put"),
    signature=_PUT,
    example=Example(
        (_X, (i64(2),), f16(2, 6), False), flops=0, bytes=64, op="index_put_", mod="aten"
    ),
)
def index_put(a: Args) -> Work:
    """Values are written, or added, at the indices."""
    x = a.tensor("input")
    indices, shape = _picked_by(a, x)
    place = like(x, shape)
    added = a.values.get("accumulate") is True
    return written(a, (*indices, *a.present("values")), place, place.numel, adds=added)


def written(a: Args, reads: tuple[Tensor, ...], place: Tensor, count: int, *, adds: bool) -> Work:
    """Return the work of writing, or adding, `count` elements into a tensor.

    All of the input is copied unless it is changed in place.
    """
    if not a.in_place:
        x = a.tensor("input")
        return Work(count * adds, (*reads, x), (like(x),))
    return Work(count * adds, (*reads, place) if adds else reads, (place,))


# 8 written, 8 read of 2 bytes, 8 indices of 8 bytes; the rest of the 24 copied, not in place
@op(
    *("scatter", "scatter_add", "scatter_reduce", "index_add", "index_copy", "index_fill"),
    "index_reduce",
    signature=(
        "Tensor input, int dim, Index index, Tensor! src",
        "Tensor input, int dim, Index index, Number value",
    ),
    example=Example((_X, 1, _INDICES, f16(4, 2)), flops=0, bytes=96, op="scatter_", mod="Tensor"),
)
def scatter(a: Args) -> Work:
    """Each source element goes to its place, is added or reduced there."""
    x, index_, source = a.tensor("input"), a.tensor("index"), a.optional("src")
    count = source.numel if source is not None else index_.numel
    if source is None and a.op == "index_fill":
        count = math.prod(_selected(a, x, index_))
    elif a.op.startswith("scatter"):
        count = index_.numel
    adds = a.op.endswith(("_add", "_reduce"))
    place = fresh((min(count, x.numel),), x.dtype)
    reads = (index_,) + ((like(source, (count,)),) if source is not None else ())
    return written(a, reads, place, count, adds=adds)


# the result's size depends on the mask's values
@op(
    *("masked_select", "nonzero", "argwhere", "unique", "unique_consecutive", "_unique2"),
    *("unique_dim", "unique_dim_consecutive", "nonzero_numpy"),
    signature="Tensor input, Mask? mask",
    example=Example((_X, b8(4, 6)), flops=0),
)
def data_dependent(a: Args) -> Work:
    """Input and mask are read; what is written depends on their values."""
    if a.output is not None:
        indices = a.op in ("nonzero", "argwhere")
        out = fresh(a.output, "int64" if indices else a.tensor("input").dtype)
        return Work(0, a.present("input", "mask"), (out,))
    return Work(0, a.present("input", "mask"), why=SIZE_IN_DATA)


# mask 24 of 1 byte; the rest 24 read at most, 24 written of 2 bytes
@op(
    "masked_scatter",
    signature="Tensor input, Mask mask, Tensor source",
    example=Example((_X, b8(4, 6), f16(10)), flops=0, mod="Tensor"),
)
def masked_scatter(a: Args) -> Work:
    """The mask decides how much of the source is read and, in place, how much is written."""
    reads = (a.tensor("mask"), a.tensor("input"))
    return Work(0, reads, why=SIZE_IN_DATA)


_ROWS = i64(2)


# the source's gradient: index 8 of 8 bytes, 8 picked from go and 8 written of 2 bytes
@op(
    *("scatter_add", "index_add"),
    direction=BPROP,
    signature="Tensor input, int dim, Index index, Tensor! src",
    example=Example(
        (_X, 1, _INDICES, f16(4, 2)), flops=0, bytes=96, op="scatter_add_", mod="Tensor"
    ),
)
def scatter_add_backward(a: Args) -> Work:
    """The input's gradient is the incoming one; the source's is gathered from it."""
    index, source = a.tensor("index"), a.tensor("src")
    return Work(0, (index, like(source)), (like(source),))


# and the input's: go 24 read, 24 written with zeros at the indices
@op(
    *("scatter", "index_copy"),
    direction=BPROP,
    signature="Tensor input, int dim, Index index, Tensor! src",
    example=Example((_X, 1, _INDICES, f16(4, 2)), flops=0, bytes=192, mod="Tensor"),
)
def scatter_backward(a: Args) -> Work:
    """The input's gradient is the incoming one with zeros; the source's is gathered from it."""
    x = a.tensor("input")
    return Work(0, (like(x),), (like(x),)) + scatter_add_backward(a)


# rows' values: index 2 of 8 bytes, 12 picked from go and 12 written; the input's: go 24 read, 24
# written with zeros at the indices, of 2 bytes
@backward_of(index_put, flops=0, bytes=160)
def index_put_backward(a: Args) -> Work:
    """The input's gradient is the incoming one with zeros; the values' is gathered from it."""
    x = a.tensor("input")
    indices, shape = indexed(a, x)
    place, values = like(x, shape), a.optional("values")
    gathered = Work(0) if values is None else Work(0, (*indices, place), (like(values),))
    input_work = Work(0) if a.values.get("accumulate") is True else Work(0, (like(x),), (like(x),))
    return input_work + gathered


# go 24 read, 24 written with zeros in 2 rows; index 2 of 8 bytes
@op(
    *("index_fill", "masked_scatter"),
    direction=BPROP,
    signature=("Tensor input, int dim, Index index", "Tensor input, Mask mask, Tensor source"),
    example=Example((_X, 0, _ROWS, 1.0), flops=0, bytes=112),
)
def index_fill_backward(a: Args) -> Work:
    """The incoming gradient with zeros; of a mask, the source's share is unknown."""
    x = a.tensor("input")
    mask = a.optional("mask")
    if mask is not None:
        return Work(0, (mask, like(x)), (like(x),), why=SIZE_IN_DATA)
    return Work(0, (a.tensor("index"), like(x)), (like(x),))


# which one was taken: compare, count, divide for 24 and for 8 elements; index 8 of 8 bytes, go,
# input and result 72 and source 8 read, 24 and 8 written of 2 bytes
@op(
    *("scatter_reduce", "index_reduce"),
    direction=BPROP,
    signature="Tensor input, int dim, Index index, Tensor! src, str reduce",
    example=Example((_X, 1, _INDICES, f16(4, 2), "amax"), flops=96, bytes=288, mod="Tensor"),
)
def scatter_reduce_backward(a: Args) -> Work:
    """For sums as `scatter_add`'s; for others, inputs and result are read, too."""
    if a.value("reduce", "amax") == "sum":
        return scatter_add_backward(a)
    x, index, source = a.tensor("input"), a.tensor("index"), a.tensor("src")
    reads = (index, like(x), x, like(x), source)
    return Work(3 * (x.numel + source.numel), reads, (like(x), like(source)))


def _viewed(a: Args) -> Args:
    """Return the call on the view that numbers and slices leave, with the rest of the subscript."""
    left = list(a.tensor("input").shape)
    where = (*a.listed("rest"), None)[0]
    asked = where if isinstance(where, tuple) else (where,)
    hidden = len(left) - sum(item is not None and item != "..." for item in asked)
    shape: list[int] = []
    indices: list[Value] = []
    for item in asked:
        count = hidden if item == "..." else item is not None
        taken, left = left[:count], left[count:]
        require(not (item is not None and len(taken) != count))
        if isinstance(item, int) and not isinstance(item, bool):
            continue
        shape += [1] if item is None else [_length(item, size) for size in taken]
        indices += [item if isinstance(item, Tensor) else None] * (len(shape) - len(indices))
    view = fresh((*shape, *left), a.tensor("input").dtype)
    return a.replaced(input=view, indices=tuple(indices))


def _length(item: Value, size: int) -> int:
    """Count what is left of a dimension: all but what a slice, written `1:4`, leaves out."""
    if isinstance(item, Tensor) or item == "...":
        return size
    parts = item.split(":") if isinstance(item, str) else ()
    if not 1 < len(parts) <= 3:  # noqa: PLR2004 - start, stop, step
        raise Unknown("index not recorded")
    return len(range(*slice(*(int(part) if part else None for part in parts)).indices(size)))


# 2 rows of 6: index 2 of 8 bytes; 12 read and 12 written of 2 bytes
@op(
    "__getitem__",
    signature="Tensor input, Value[] rest",
    example=Example((_X, (_ROWS, ":")), flops=0, bytes=64, mod="Tensor"),
)
def getitem(a: Args) -> Work:
    """What index tensors pick of the view."""
    return index(_viewed(a))


# 12 additions; index 2 of 8 bytes, go 12 read, 24 written of 2 bytes
@backward_of(getitem, flops=12, bytes=88)
def getitem_backward(a: Args) -> Work:
    """The incoming gradient is added into zeros of the view's size."""
    return index_backward(_viewed(a))


# 12 written, 12 read of 2 bytes, index 2 of 8 bytes
@op(
    "__setitem__",
    signature="Tensor input, Value[] rest",
    example=Example((_X, _ROWS, f16(2, 6)), flops=0, bytes=64, mod="Tensor"),
)
def setitem(a: Args) -> Work:
    """The value is written over the view, or at the indexed positions in it."""
    view = _viewed(a)
    x, value = view.tensor("input"), a.listed("rest")[1:]
    if any(isinstance(item, Tensor) for item in view.listed("indices")):
        indices, shape = indexed(view, x)
        x, value = fresh(shape, x.dtype), (*indices, *value)
    return Work(0, tuple(item for item in value if isinstance(item, Tensor)), (x,))
