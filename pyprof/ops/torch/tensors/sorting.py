"""Sorting, selecting the largest, searching and counting.

Comparisons of an order that the data decide are not counted: 0 FLOPs. Bytes: the input read once,
values and 64-bit indices written once; sorting kernels pass over the data several times.
"""

from pyprof.ops.examples import NN, Example, f16, f32, i64
from pyprof.ops.registry import BPROP, backward_of, op
from pyprof.ops.signature import Unknown
from pyprof.ops.torch.tensors.reductions import reduced
from pyprof.ops.work import SIZE_IN_DATA, Args, Work, fresh, like

FAMILY = "index"

_X = f16(4, 6)


# 24 read, 24 values of 2 bytes and 24 indices of 8 written
@op(
    *("sort", "msort"),
    signature="Tensor input, int dim, bool descending",
    example=Example((_X,), flops=0, bytes=288),
)
# the indices alone
@op(
    "argsort",
    signature="Tensor input, int dim, bool descending",
    example=Example((_X,), flops=0, bytes=240),
)
def sort(a: Args) -> Work:
    """Values and where they came from, or one of the two."""
    x = a.tensor("input")
    values, indices = like(x), fresh(x.shape, "int64")
    written = {"msort": (values,), "argsort": (indices,)}
    return Work(0, (x,), written.get(a.op, (values, indices)))


# 24 read, 2 of each of 4 rows written: 8 values of 2 bytes, 8 indices of 8
@op(
    *("topk", "kthvalue"),
    signature="Tensor input, int k, int dim",
    example=Example((_X, 2), flops=0, bytes=128),
)
def topk(a: Args) -> Work:
    """The k largest along a dimension, or the k-th."""
    x = a.tensor("input")
    along = a.axis(len(x.shape))
    count = 1 if a.op == "kthvalue" else a.integer("k", 1)
    out = fresh((count if at == along else n for at, n in enumerate(x.shape)), x.dtype)
    return Work(0, (x,), (out, fresh(out.shape, "int64")))


# go 8 of 2 bytes and indices 8 of 8 read, 24 written of 2
@op(*("sort", "msort"), direction=BPROP, flops=0, bytes=288)
@backward_of(topk, flops=0, bytes=128)
# go 24 of 2 bytes and indices 24 of 8 read, 24 written of 2
def sort_backward(a: Args) -> Work:
    """The incoming gradient is put where the values came from."""
    x = a.tensor("input")
    if a.op in ("topk", "kthvalue"):
        return Work(0, topk(a).writes, (like(x),))
    return Work(0, (like(x), fresh(x.shape, "int64")), (like(x),))


# 5 values looked up among 8: 8 and 5 of 2 bytes read, 5 indices of 8 written
@op(
    "searchsorted",
    signature="Tensor sorted_sequence, Tensor input, bool out_int32",
    example=Example((f16(8), f16(5)), flops=0, bytes=66),
)
@op(
    "bucketize",
    signature="Tensor input, Tensor sorted_sequence, bool out_int32",
    example=Example((f16(5), f16(8)), flops=0, bytes=66),
)
def searchsorted(a: Args) -> Work:
    """A place for each value."""
    x, among = a.tensor("input"), a.tensor("sorted_sequence")
    narrow = a.values.get("out_int32") is True
    return Work(0, (among, x), (fresh(x.shape, "int32" if narrow else "int64"),))


# 24 read of 2 bytes, 10 counts of 2 written, 24 additions
@op("histc", signature="Tensor input, int bins", example=Example((_X, 10), flops=24, bytes=68))
# how many counts there are depends on the largest value
@op(
    "bincount",
    signature="Tensor input, Tensor? weights, int minlength",
    example=Example((i64(8),), flops=8),
)
def histogram(a: Args) -> Work:
    """One addition for each value."""
    x = a.tensor("input")
    if a.op == "bincount":
        return Work(x.numel, (x,), why=SIZE_IN_DATA)
    return Work(x.numel, (x,), (fresh((a.integer("bins", 100),), x.dtype),))


# 4 labels of 8 bytes read, 4 * 10 of 8 written
@op(
    "one_hot",
    signature="Index input, int num_classes",
    example=Example((i64(4), 10), flops=0, bytes=352, mod=NN),
)
def one_hot(a: Args) -> Work:
    """Zeros and a one for each label."""
    x, classes = a.tensor("input"), a.integer("num_classes", -1)
    if classes < 1:
        raise Unknown(SIZE_IN_DATA)
    return Work(0, (x,), (fresh((*x.shape, classes), "int64"),))


# 24 and 8 of 2 bytes read, 24 truth values written
@op(
    "isin",
    signature="Tensor input, Number others",
    example=Example((_X, f16(8)), flops=0, bytes=88),
)
def isin(a: Args) -> Work:
    """Each element looked up among others, sorted or one by one as torch finds cheaper."""
    x = a.tensor("input")
    return Work(0, (x, *a.present("others")), (fresh(x.shape, "bool"),))


# 24 sorted; two neighbours for each of 4 rows: difference, weight, sum; 24 read, 4 written
@op(
    *("quantile", "nanquantile"),
    signature="Tensor input, Number q, int dim, bool keepdim",
    example=Example((f32(4, 6), 0.5, 1), flops=12, bytes=112),
)
def quantile(a: Args) -> Work:
    """Between the two neighbours in the sorted order, for each requested fraction."""
    x, fractions = a.tensor("input"), a.optional("q")
    left = reduced(a, x)
    out = like(x, left if fractions is None else fractions.shape + left)
    return Work(3 * out.numel, (x, *a.present("q")), (out,))
