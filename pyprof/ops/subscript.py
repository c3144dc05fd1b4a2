"""Python's square brackets: numbers and slices leave a view, index tensors pick or place in it.

Bytes as in `indexing`; an assignment reads its value once and writes the place once.
"""

from __future__ import annotations

from pyprof.marker import Call, Tensor, Value
from pyprof.ops.indexing import index, index_backward, indexed
from pyprof.ops.registry import BPROP, op
from pyprof.ops.signature import Unknown
from pyprof.ops.work import Args, Work, fresh

FAMILY = "index"

_X = Tensor((4, 6), "float16")
_ROWS = Tensor((2,), "int64")


def _viewed(a: Args) -> Args:
    """Give the view that numbers and slices leave as `input`, what remains of the subscript too."""
    left = list(a.tensor("input").shape)
    where = (*a.listed("rest"), None)[0]
    asked = where if isinstance(where, tuple) else (where,)
    hidden = len(left) - sum(item is not None and item != "..." for item in asked)
    shape: list[int] = []
    indices: list[Value] = []
    for item in asked:
        count = hidden if item == "..." else item is not None
        taken, left = left[:count], left[count:]
        if item is not None and len(taken) != count:
            raise Unknown("arguments do not fit the op")
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
    example=Call("Tensor", "__getitem__", (_X, (_ROWS, ":"))),
    flops=0,
    bytes=64,
)
def getitem(a: Args) -> Work:
    """What index tensors pick of the view."""
    return index(_viewed(a))


# 12 additions; index 2 of 8 bytes, go 12 read, 24 written of 2 bytes
@op("__getitem__", direction=BPROP, flops=12, bytes=88)
def getitem_backward(a: Args) -> Work:
    """The incoming gradient is added into zeros of the view's size."""
    return index_backward(_viewed(a))


# 12 written, 12 read of 2 bytes, index 2 of 8 bytes
@op(
    "__setitem__",
    signature="Tensor input, Value[] rest",
    example=Call("Tensor", "__setitem__", (_X, _ROWS, Tensor((2, 6), "float16"))),
    flops=0,
    bytes=64,
)
def setitem(a: Args) -> Work:
    """The value is written over the view, or where index tensors say in it."""
    view = _viewed(a)
    x, value = view.tensor("input"), a.listed("rest")[1:]
    if any(isinstance(item, Tensor) for item in view.listed("indices")):
        indices, shape = indexed(view, x)
        x, value = fresh(shape, x.dtype), (*indices, *value)
    return Work(0, tuple(item for item in value if isinstance(item, Tensor)), (x,))
