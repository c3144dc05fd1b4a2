"""Parts of tensors written out: copies of views, gradients of slices, parts put into a whole.

No arithmetic. Bytes: what is copied read once and written once; a gradient of a part is a whole
of zeros with the part put in.
"""

from pyprof.ops import dtypes
from pyprof.ops.examples import Example, f16, f32, i64
from pyprof.ops.registry import BPROP, backward_of, op
from pyprof.ops.torch.tensors.indexing import written
from pyprof.ops.work import Args, Work, broadcast, fresh, like, require

FAMILY = "copy"

_X = f16(4, 6)
_ROW = f16(6)

_WHOLE = (
    "view unsqueeze squeeze transpose t permute alias detach split split_with_sizes unbind "
    "view_as_real view_as_complex lift_fresh"
)


# 24 read and 24 written of 2 bytes
@op(*(f"{name}_copy" for name in _WHOLE.split()), direction=BPROP, flops=0, bytes=96)
@op(
    *(f"{name}_copy" for name in _WHOLE.split()),
    signature=("Tensor input, Value[] rest", "Tensor[] tensors, Value[] rest"),
    example=Example((_X, (2, 4), 1), flops=0, bytes=96, op="split_with_sizes_copy", mod="aten"),
)
# of the incoming gradient, the diagonal: 6 read, 6 written of 2 bytes
@op(
    "diag_embed",
    direction=BPROP,
    signature="Tensor input, Value[] rest",
    example=Example((_ROW,), flops=0, bytes=24),
)
def view_copy(a: Args) -> Work:
    """All of the tensor, or of a list of them, is written anew."""
    tensors = a.tensors("tensors") if "tensors" in a.values else (a.tensor("input"),)
    return Work(0, tensors, tuple(map(like, tensors)))


# go 6 read, 24 written of 2 bytes
@op(
    *("select_backward", "slice_backward", "diagonal_backward", "unfold_backward"),
    signature="Tensor grad_output, any input_sizes",
    example=Example((_ROW, (4, 6), 0, 1), flops=0, bytes=60, mod="aten"),
)
def part_backward(a: Args) -> Work:
    """Zeros of the whole's size with the part's gradient put in."""
    go = a.tensor("grad_output")
    sizes = a.value("input_sizes") if a.known("input_sizes") else None
    if not isinstance(sizes, tuple):
        return Work(0, (go,), why="input_sizes not recorded")
    gradient = fresh((item for item in sizes if isinstance(item, int)), go.dtype)
    adds = go.numel if a.op == "unfold_backward" else 0  # windows overlap
    return Work(adds, (go,), (gradient,))


# 24 read and written, 6 of them from the part: 24 - 6 + 6 read, 24 written of 2 bytes
@op(
    *("select_scatter", "slice_scatter", "diagonal_scatter", "as_strided_scatter"),
    signature="Tensor input, Tensor src",
    example=Example((_X, _ROW, 0, 1), flops=0, bytes=96),
)
def part_scatter(a: Args) -> Work:
    """A copy of the whole with the part replaced by another tensor."""
    x, src = a.tensor("input"), a.tensor("src")
    rest = fresh((max(0, x.numel - src.numel),), x.dtype)
    return Work(0, (rest, src), (like(x),))


# the whole's gradient is the incoming one with zeros: 24 read, 24 written; the part's 6 of it: 6
# read, 6 written of 2 bytes
@backward_of(part_scatter, flops=0, bytes=120)
def part_scatter_backward(a: Args) -> Work:
    """Two copies: all but the part, and the part."""
    x, src = like(a.tensor("input")), like(a.tensor("src"))
    return Work(0, (x, src), (x, src))


# 6 diagonals read, 36 written of 2 bytes
@op(
    "diag_embed",
    signature="Tensor input, int offset, int dim1, int dim2",
    example=Example((_ROW,), flops=0, bytes=84),
)
def diag_embed(a: Args) -> Work:
    """Square matrices of zeros with the input on a diagonal."""
    x = a.tensor("input")
    require(x.shape)
    side = x.shape[-1] + abs(a.integer("offset", 0))
    return Work(0, (x,), (like(x, (*x.shape[:-1], side, side)),))


# 24 read twice of 4 bytes, 24 of 8 written
@op(
    "complex",
    signature="Tensor input, Tensor imag",
    example=Example(((f32(4, 6),) * 2), flops=0, bytes=384),
)
def complex_(a: Args) -> Work:
    """Real and imaginary parts interleaved."""
    x, imag = a.tensor("input"), a.tensor("imag")
    shape = broadcast([x.shape, imag.shape])
    return Work(0, (x, imag), (fresh(shape, dtypes.complex_of(x.dtype)),))


# the same the other way: 24 of 8 bytes read, 24 written twice of 4
@backward_of(complex_, flops=0, bytes=384)
def complex_backward(a: Args) -> Work:
    """Real and imaginary parts of the incoming gradient."""
    forward = complex_(a)
    return Work(0, forward.writes, tuple(map(like, forward.reads)))


# 8 indices of 8 bytes, 8 read of 2; the rest of the 24 copied: 24 read and written
@op(
    "put",
    signature="Tensor input, Index index, Tensor source, bool accumulate",
    example=Example((_X, i64(8), f16(8)), flops=0, bytes=176, mod="Tensor"),
)
def put(a: Args) -> Work:
    """Elements written, or added, at indices into the flattened tensor."""
    x, index, source = a.tensor("input"), a.tensor("index"), a.tensor("source")
    added = a.flag("accumulate", default=False)
    place = fresh((min(source.numel, x.numel),), x.dtype)
    return written(a, (index, source), place, source.numel, adds=added)


# 24 read of 2 bytes, 10 indices of two numbers of 8 written
@op(
    "nonzero_static",
    signature="Tensor input, *, int size, int fill_value",
    example=Example((_X,), flops=0, bytes=208, kwargs={"size": 10}),
)
def nonzero_static(a: Args) -> Work:
    """A requested number of indices, filled up if there are fewer."""
    x = a.tensor("input")
    return Work(0, (x,), (fresh((a.integer("size", 0), len(x.shape)), "int64"),))


# go 24 added up for 6 columns: 24 read, 6 written of 2 bytes
@op(
    *("sum_to_size", "_grad_sum_to_size"),
    signature="Tensor input, Size size",
    example=Example((_X, 6), flops=24, bytes=60, mod="Tensor"),
)
def sum_to_size(a: Args) -> Work:
    """What broadcasting repeated is added up; if nothing was, there is no kernel to cost."""
    x = a.tensor("input")
    return Work(x.numel, (x,), (fresh(a.sizes("size"), x.dtype),))
