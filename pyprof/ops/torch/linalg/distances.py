"""Distances of rows from each other, forward and backward.

Subtract, square and add: 3 operations for each pair of rows and each number in them; the root of a
sum is not counted. Of many rows, torch takes Euclidean distances by a product of these, with two
columns more for the sums of their squares. Bytes: rows read once, a number for each pair written.
"""

from pyprof.marker import Tensor
from pyprof.ops import dtypes
from pyprof.ops.examples import Example, f16
from pyprof.ops.registry import BPROP, backward_of, op
from pyprof.ops.work import Args, Work, broadcast, fresh, like, size, twice

FAMILY = "distance"

_EACH = 3
_MANY = 25
"""Up to this many rows on either side, torch subtracts, unless told otherwise."""
_BY_PRODUCT, _BY_DIFFERENCE = (1, "use_mm_for_euclid_dist"), (2, "donot_use_mm_for_euclid_dist")
_X = f16(4, 6)
_Y = f16(5, 6)
_PAIRS = f16(6)
_TABLE = f16(4, 5)


def _every(x: Tensor, y: Tensor, *, by_product: bool = False) -> Work:
    lead = broadcast([x.shape[:-2], y.shape[:-2]])
    out = fresh((*lead, size(x, -2), size(y, -2)), x.dtype)
    each = 2 * (size(x, -1) + 2) if by_product else _EACH * size(x, -1)
    return Work(each * out.numel, (x, y), (out,))


# 4 * 5 pairs of 6 numbers: 3 * 120; 24 + 30 + 20 of 2 bytes
@op(
    *("cdist", "_cdist_forward"),
    signature="Tensor x1, Tensor x2, float p, Any compute_mode",
    example=Example((_X, _Y), flops=360, bytes=148),
)
# by a product, 4 * 5 sums of 6 + 2 products: 2 * 160; as above
@op(
    "_euclidean_dist",
    signature="Tensor x1, Tensor x2",
    example=Example((_X, _Y), flops=320, bytes=148),
)
def cdist(a: Args) -> Work:
    """The distance of every pair of rows."""
    x, y, mode = a.tensor("x1"), a.tensor("x2"), a.value("compute_mode")
    if a.op == "_euclidean_dist":
        return _every(x, y, by_product=True)
    many = max(size(x, -2), size(y, -2)) > _MANY and mode not in _BY_DIFFERENCE
    euclidean = a.value("p", 2.0) == 2  # noqa: PLR2004 - the norm's exponent
    return _every(x, y, by_product=euclidean and (many or mode in _BY_PRODUCT))


# for either factor 3 * 120 again; go 20, distances 20, 24 + 30 read, 24 + 30 written of 2 bytes
@op(*("cdist", "_cdist_forward"), direction=BPROP, flops=720, bytes=296)
# for either factor 2 * 160 again; as above
@op("_euclidean_dist", direction=BPROP, flops=640, bytes=296)
def cdist_backward(a: Args) -> Work:
    """The difference over the distance, weighted, added up for the rows of either side.

    By a product, the weighted distances times the other side's rows.
    """
    forward = cdist(a)
    return twice(forward) + Work(0, forward.writes)


# one of the two: 360; go 20, distances 20, 24 + 30 read, 24 written of 2 bytes
@op(
    "aten::_cdist_backward",
    signature="Tensor grad, Tensor x1, Tensor x2, float p, Tensor distances",
    example=Example((_TABLE, _X, _Y, 2.0, _TABLE), flops=360, bytes=236),
)
def cdist_backward_op(a: Args) -> Work:
    """The first side's gradient, as ATen's own op."""
    x, y = a.tensor("x1"), a.tensor("x2")
    reads = (a.tensor("grad"), a.tensor("distances"), x, y)
    return Work(_every(x, y).flops, reads, (like(x),))


def _half(x: Tensor) -> Work:
    rows, width = size(x, -2), size(x, -1)
    out = fresh((rows * (rows - 1) // 2,), x.dtype)
    return Work(_EACH * out.numel * width, (x,), (out,))


# 4 * 3 / 2 pairs of 6 numbers: 3 * 36; 24 read, 6 written of 2 bytes
@op(
    *("pdist", "_pdist_forward"),
    signature="Tensor input, float p",
    example=Example((_X,), flops=108, bytes=60),
)
def pdist(a: Args) -> Work:
    """The distance of each row from each that follows it."""
    return _half(a.tensor("input"))


# a pair moves both of its rows: 4 * 36; go 6, distances 6, 24 read, 24 written of 2 bytes
@backward_of(pdist, flops=144, bytes=120)
@op(
    "aten::_pdist_backward",
    signature="Tensor grad, Tensor input, float p, Tensor distances",
    example=Example((_PAIRS, _X, 2.0, _PAIRS), flops=144, bytes=120),
)
def pdist_backward(a: Args) -> Work:
    """The difference over the distance, weighted, added to one row and taken from the other."""
    x = a.tensor("input")
    out = _half(x).writes[0]
    return Work((_EACH + 1) * out.numel * size(x, -1), (out, out, x), (like(x),))


# subtract, square, add: 24 * 3; 24 and 24 read, one written of 2 bytes
@op(
    "dist",
    signature="Tensor input, Tensor other, float p",
    example=Example((_X, _X), flops=72, bytes=98),
)
def dist(a: Args) -> Work:
    """The norm of a difference."""
    x, y = a.tensor("input"), a.tensor("other")
    count = fresh(broadcast([x.shape, y.shape]), None).numel
    return Work(_EACH * count, (x, y), (fresh((), dtypes.real(x.dtype)),))


# the difference 1, over the norm 1, times go 1: 24 * 3, turned round 24; 24, 24, go and the norm
# read, 24 and 24 written of 2 bytes
@backward_of(dist, flops=96, bytes=196)
def dist_backward(a: Args) -> Work:
    """One gradient and its opposite."""
    x, y = a.tensor("input"), a.tensor("other")
    count = fresh(broadcast([x.shape, y.shape]), None).numel
    one = like(x, ())
    return Work((_EACH + 1) * count, (x, y, one, one), (like(x), like(y)))
