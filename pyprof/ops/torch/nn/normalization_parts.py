"""Norms in parts: batch norm across processes, step by step, and weights normalised themselves.

Synchronised batch norm computes its statistics, gathers them and applies them in ops of their own,
as its backward does; together an element costs as much as in `normalization`. Statistics are kept
in float32 at least.
"""

from pyprof.marker import Tensor
from pyprof.ops.examples import Example, f16, f32, i32, i64
from pyprof.ops.registry import backward_of, op
from pyprof.ops.torch.nn.normalization import wide
from pyprof.ops.work import Args, Work, fresh, like, size

FAMILY = "norm"

_IMAGE = f16(2, 4, 3, 3)
_CHANNELS = f32(4)
_GATHERED = f32(8, 4)
_MATRIX = f16(4, 6)
_SCALES = f16(4, 1)


def _of_channels(x: Tensor) -> Tensor:
    return fresh((size(x, 1),), wide(x.dtype))


# mean 1 and variance 3 of 72; 72 read of 2 bytes, mean and deviation of 4 written of 4
@op(
    "batch_norm_stats",
    signature="Tensor input",
    example=Example((_IMAGE, 1e-5), flops=288, bytes=176, mod="aten"),
)
def stats(a: Args) -> Work:
    """This process's mean and deviation of each channel."""
    x = a.tensor("input")
    return Work(4 * x.numel, (x,), (_of_channels(x),) * 2)


# 8 processes' counts, means and deviations merged, 6 operations for each of 32; 2 * 32, 8 counts
# and 2 * 4 running ones read, 2 * 4 and 2 * 4 running ones written of 4 bytes
@op(
    *("batch_norm_gather_stats_with_counts", "batch_norm_gather_stats"),
    signature=(
        "Tensor input, Tensor mean, Tensor invstd, Tensor? running_mean, Tensor? running_var,"
        "float momentum, float eps, Tensor? counts"
    ),
    example=Example(
        (_IMAGE, _GATHERED, _GATHERED, _CHANNELS, _CHANNELS, 0.1, 1e-5, f32(8)),
        flops=192,
        bytes=384,
        mod="aten",
    ),
)
def gathered_stats(a: Args) -> Work:
    """All processes' statistics in one; the input is only needed for its dtype."""
    mean = a.tensor("mean")
    running = a.present("running_mean", "running_var")
    reads = (mean, a.tensor("invstd"), *running, *a.present("counts"))
    merged = (like(mean, mean.shape[-1:]),) * 2
    return Work(6 * mean.numel, reads, (*merged, *running))


# subtract, scale, scale, shift: 72 * 4; 72 read and written of 2 bytes, four vectors of 4 of 4
@op(
    "batch_norm_elemt",
    signature="Tensor input, Tensor? weight, Tensor? bias, Tensor mean, Tensor invstd",
    example=Example((_IMAGE, *(_CHANNELS,) * 4, 1e-5), flops=288, bytes=352, mod="aten"),
)
def normalised(a: Args) -> Work:
    """Statistics, scale and shift applied."""
    x, affine = a.tensor("input"), a.present("weight", "bias")
    reads = (x, a.tensor("mean"), a.tensor("invstd"), *affine)
    return Work((2 + len(affine)) * x.numel, reads, (like(x),))


# subtract, multiply and two sums: 72 * 4; go and x 144 of 2 bytes, two vectors of 4 read, four
# written of 4
@op(
    "batch_norm_backward_reduce",
    signature=(
        "Tensor grad_out, Tensor input, Tensor mean, Tensor invstd, Tensor? weight, bool input_g,"
        "bool weight_g, bool bias_g"
    ),
    example=Example(
        (_IMAGE, _IMAGE, _CHANNELS, _CHANNELS, _CHANNELS, True, True, True),
        flops=288,
        bytes=384,
        mod="aten",
    ),
)
def reduced_gradients(a: Args) -> Work:
    """This process's sums for the gradients of input, scale and shift."""
    go, x = a.tensor("grad_out"), a.tensor("input")
    wanted = ("input_g", "input_g", "weight_g", "bias_g")
    sums = (_of_channels(x),) * sum(a.flag(name, default=True) for name in wanted)
    return Work(4 * x.numel, (go, x, a.tensor("mean"), a.tensor("invstd")), sums)


# two differences, two scales and a difference more: 72 * 5; go, x read, 72 written of 2 bytes,
# five vectors of 4 and a count for each of 8 processes of 4
@op(
    "batch_norm_backward_elemt",
    signature=(
        "Tensor grad_out, Tensor input, Tensor mean, Tensor invstd, Tensor? weight, Tensor sum_dy,"
        "Tensor sum_dy_xmu, Tensor count"
    ),
    example=Example((_IMAGE, _IMAGE, *(_CHANNELS,) * 5, i32(8)), flops=360, bytes=544, mod="aten"),
)
def gradient(a: Args) -> Work:
    """The input's gradient from all processes' sums."""
    x = a.tensor("input")
    vectors = a.present("mean", "invstd", "weight", "sum_dy", "sum_dy_xmu", "count")
    return Work(5 * x.numel, (a.tensor("grad_out"), x, *vectors), (like(x),))


# --- weights ------------------------------------------------------------------------------------
_WEIGHT = "Tensor v, Tensor g, int dim"


# square, sum, scale: 24 * 3; 24 and 4 read, 24 written of 2 bytes
@op("_weight_norm", signature=_WEIGHT, example=Example((_MATRIX, _SCALES, 0), flops=72, bytes=104))
# and the 4 norms of 4 bytes
@op(
    "aten::_weight_norm_interface",
    signature=_WEIGHT,
    example=Example((_MATRIX, _SCALES, 0), flops=72, bytes=120),
)
def weight_norm(a: Args) -> Work:
    """Each slice of a weight scaled to the length that `g` names."""
    v, g = a.tensor("v"), a.tensor("g")
    norms = (fresh(g.shape, wide(g.dtype)),) if a.op.endswith("_interface") else ()
    return Work(3 * v.numel, (v, g), (like(v), *norms))


# its product with v and the sum 2, the rest of it 4: 24 * 6; go 24, v 24, g 4 of 2 bytes and 4
# norms of 4 read, 24 and 4 written of 2
@backward_of(weight_norm, flops=144, bytes=176)
@op(
    "aten::_weight_norm_interface_backward",
    signature="Tensor grad, Tensor v, Tensor g, Tensor norms, int dim",
    example=Example((_MATRIX, _MATRIX, _SCALES, f32(4, 1), 0), flops=144, bytes=176),
)
def weight_norm_backward(a: Args) -> Work:
    """The incoming gradient without its part along v, scaled; and that part's length."""
    v, g = a.tensor("v"), a.tensor("g")
    reads = (like(v), v, g, fresh(g.shape, wide(g.dtype)))
    return Work(6 * v.numel, reads, (like(v), like(g)))


# square, sum, scale: 24 * 3; 24 read and written of 2 bytes
@op(
    "renorm",
    signature="Tensor input, any p, int dim, any maxnorm",
    example=Example((_MATRIX, 2, 0, 1.0), flops=72, bytes=96),
)
def renorm(a: Args) -> Work:
    """Slices that are too long, scaled down."""
    x = a.tensor("input")
    return Work(3 * x.numel, (x,), (like(x),))


# 5 rows of 6: 30 * 3; 5 indices of 8 bytes, at most 24 of 2 bytes read, and written where too long
@op(
    "embedding_renorm",
    signature="Tensor input, Index indices",
    example=Example((_MATRIX, i64(5), 1.0, 2.0), flops=90, bytes=136, op="embedding_renorm_"),
)
def embedding_renorm(a: Args) -> Work:
    """The rows that indices name, scaled down if they are too long."""
    table, indices = a.tensor("input"), a.tensor("indices")
    count = indices.numel * size(table, -1)
    rows = fresh((min(count, table.numel),), table.dtype)
    return Work(3 * count, (indices, rows), (rows,))
