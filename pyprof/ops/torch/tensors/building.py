"""Tensors made from elements or positions: diagonals, blocks, products of lists, repeats.

No arithmetic except what a rule names. Bytes: the elements read once, the result written once.
"""

import math

from pyprof.marker import Tensor
from pyprof.ops import dtypes
from pyprof.ops.examples import Example, f16, f32, i64
from pyprof.ops.registry import backward_of, op
from pyprof.ops.signature import Unknown
from pyprof.ops.torch.tensors.pointwise import promoted_dtype
from pyprof.ops.torch.tensors.pointwise_rules import TRANSCENDENTAL
from pyprof.ops.torch.tensors.tensor_creation import FACTORY
from pyprof.ops.work import (
    SIZE_IN_DATA,
    Args,
    Work,
    broadcast,
    fresh,
    has_rank,
    like,
    require,
    size,
)

FAMILY = "copy"

_X = f16(4, 6)
_ROW = f16(6)


# 6 read, 6 * 6 written of 2 bytes; a matrix returns its diagonal
@op("diag", signature="Tensor input, int diagonal", example=Example((_ROW,), flops=0, bytes=84))
@op("diagflat", signature="Tensor input, int offset", example=Example((_ROW,), flops=0, bytes=84))
def diag(a: Args) -> Work:
    """A square matrix of zeros with the vector on a diagonal; or the diagonal of a matrix."""
    x, offset = a.tensor("input"), a.integer("diagonal", a.integer("offset", 0))
    if has_rank(x, 2) and a.op == "diag":
        rows, columns = x.shape
        length = max(0, min(rows + min(offset, 0), columns - max(offset, 0)))
        out = like(x, (length,))
        return Work(0, (out,), (out,))
    side = x.numel + abs(offset)
    return Work(0, (x,), (like(x, (side, side)),))


# 24 and 6 read, 5 rows of 12 written of 2 bytes
@op("block_diag", signature="Value[] tensors", example=Example((_X, _ROW), flops=0, bytes=180))
def block_diag(a: Args) -> Work:
    """Zeros with every tensor in its own rows and columns."""
    tensors = _every(a)
    pairs = [(1, 1, *t.shape)[-2:] for t in tensors]
    shape = (sum(rows for rows, _ in pairs), sum(columns for _, columns in pairs))
    return Work(0, tensors, (fresh(shape, promoted_dtype(tensors)),))


# 6 and 6 read, 36 pairs written of 2 bytes
@op(
    "cartesian_prod", signature="Value[] tensors", example=Example((_ROW, _ROW), flops=0, bytes=168)
)
def cartesian_prod(a: Args) -> Work:
    """Every combination of one element from each list."""
    tensors = _every(a)
    count = math.prod(t.numel for t in tensors)
    width = () if len(tensors) == 1 else (len(tensors),)
    return Work(0, tensors, (fresh((count, *width), promoted_dtype(tensors)),))


def _every(a: Args) -> tuple[Tensor, ...]:
    """Return the tensors of the call, written as a list or one after the other."""
    listed = a.listed("tensors")
    if len(listed) == 1 and isinstance(listed[0], tuple):
        listed = listed[0]
    recorded = tuple(value for value in listed if isinstance(value, Tensor))
    if not recorded or len(recorded) != len(listed):
        raise Unknown("tensors not recorded")
    return recorded


# 6 * 5 / 2 pairs: 6 read, 30 written of 2 bytes
@op(
    "combinations",
    signature="Tensor input, int r, bool with_replacement",
    example=Example((_ROW,), flops=0, bytes=72),
)
def combinations(a: Args) -> Work:
    """Every choice of r elements."""
    x, chosen = a.tensor("input"), a.integer("r", 2)
    again = a.flag("with_replacement", default=False)
    count = x.numel + (chosen - 1 if again and x.numel else 0)
    require(chosen >= 0)
    return Work(0, (x,), (like(x, (math.comb(count, chosen), chosen)),))


# below the diagonal of 3 by 3: 1 + 2 + 3 pairs of 8 bytes
@op(
    *("tril_indices", "triu_indices"),
    signature=f"int row, int col, int offset, *, {FACTORY}",
    example=Example((3, 3), flops=0, bytes=96),
)
def triangle(a: Args) -> Work:
    """The indices of a triangle: two rows of numbers."""
    if not (a.given("row") and a.given("col")):
        raise Unknown("size not recorded")
    rows, columns, offset = a.integer("row", 0), a.integer("col", 0), a.integer("offset", 0)
    lower = a.op.startswith("tril")
    shift = offset + 1 if lower else offset
    left = sum(min(columns, max(0, at + shift)) for at in range(max(0, rows)))
    count = left if lower else max(0, rows) * columns - left
    return Work(0, (), (fresh((2, count), a.dtype() or "int64"),))


# 8 numbers of a sine and three more, written of 4 bytes
@op(
    *("hann_window", "hamming_window", "blackman_window", "bartlett_window", "kaiser_window"),
    signature=f"int window_length, Value[] rest, *, {FACTORY}",
    example=Example((8,), flops=184, bytes=32),
)
def window(a: Args) -> Work:
    """A function and three more operations for each element, as if one kernel wrote it."""
    if not a.given("window_length"):
        raise Unknown("window_length not recorded")
    out = fresh((a.integer("window_length", 0),), a.dtype() or "float32")
    return Work((TRANSCENDENTAL + 3) * out.numel, (), (out,))


# each of 24 twice: 24 read, 48 written of 2 bytes
@op(
    "repeat_interleave",
    signature=(
        "Tensor input, int repeats, int dim, *, int output_size",
        "Tensor input, Tensor! repeats, int dim, *, int output_size",
    ),
    example=Example((_X, 2), flops=0, bytes=144),
)
def repeat_interleave(a: Args) -> Work:
    """Each element, or slice of a dimension, repeated."""
    x, out = _repeated(a)
    return Work(0, (x, *a.present("repeats")), (out,))


# 48 additions; 48 read, 24 written of 2 bytes
@backward_of(repeat_interleave, flops=48, bytes=144)
def repeat_interleave_backward(a: Args) -> Work:
    """The copies' gradients are added."""
    x, go = _repeated(a)
    return Work(go.numel, (go,), (like(x),))


def _repeated(a: Args) -> tuple[Tensor, Tensor]:
    x = a.tensor("input")
    length = size(x, a.integer("dim", 0)) if a.given("dim") else x.numel
    if a.given("output_size"):
        count = a.integer("output_size", 0)
    elif isinstance(a.values.get("repeats"), int):
        count = a.integer("repeats", 1) * length
    else:
        raise Unknown(SIZE_IN_DATA)
    return x, fresh((x.numel // max(1, length) * count,), x.dtype)


# 4 rows of 5 differences; 24 read, 20 written of 2 bytes
@op(
    "diff",
    signature="Tensor input, int n, int dim, Tensor? prepend, Tensor? append",
    example=Example((_X,), flops=20, bytes=88),
)
def diff(a: Args) -> Work:
    """Each element less the one before it, n times, as if one kernel did it."""
    x, at = a.tensor("input"), a.integer("dim", -1)
    ends = a.present("prepend", "append")
    length = size(x, at)
    rows, joined = x.numel // max(1, length), length + sum(size(t, at) for t in ends)
    times = min(a.integer("n", 1), joined)
    flops = sum(joined - 1 - step for step in range(times))
    return Work(rows * flops, (x, *ends), (like(x, (rows, joined - times)),))


# two functions and two products of 24; 24 and 24 read of 4 bytes, 24 of 8 written
@op(
    "polar",
    signature="Tensor input, Tensor angle",
    example=Example(((f32(4, 6),) * 2), flops=1008, bytes=384),
)
def polar(a: Args) -> Work:
    """Complex numbers from lengths and angles."""
    x, angle = a.tensor("input"), a.tensor("angle")
    out = fresh(broadcast([x.shape, angle.shape]), dtypes.complex_of(x.dtype))
    return Work((2 * TRANSCENDENTAL + 2) * out.numel, (x, angle), (out,))


# how many sequences there are is the first of the batch sizes
@op(
    "aten::_pad_packed_sequence",
    signature="Tensor input, Tensor batch_sizes",
    example=Example((f16(9, 6), i64(4), False, 0.0, 4), flops=0),
)
def pad_packed_sequence(a: Args) -> Work:
    """The packed steps of each sequence, and padding behind them."""
    x, batch_sizes = a.tensor("input"), a.tensor("batch_sizes")
    if a.output is None:
        return Work(0, (x, batch_sizes), why=SIZE_IN_DATA)
    return Work(0, (x, batch_sizes), (fresh(a.output, x.dtype),))


# 9 * 6 of 2 bytes and 4 batch sizes of 8 read, 4 * 3 * 6 of 2 written
@op(
    "aten::_pack_padded_sequence_backward",
    signature="Tensor grad_output, int[] input_size, Tensor batch_sizes",
    example=Example((f16(9, 6), (4, 3, 6), i64(4), False), flops=0, bytes=284),
)
def pack_padded_sequence_backward(a: Args) -> Work:
    """The gradient of each packed step in its place, among zeros."""
    go = a.tensor("grad_output")
    return Work(0, (go, a.tensor("batch_sizes")), (fresh(a.sizes("input_size"), go.dtype),))
