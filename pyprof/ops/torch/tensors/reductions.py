"""Sums, means, norms, variances and extremes with their indices, forward and backward.

A sum of n elements counts n operations (n - 1, strictly, for each result), an extreme one
comparison an element; those of a sort, which a median makes, are not counted. Bytes: the input read
once, results and 64-bit indices written once.
"""

import math
from dataclasses import replace

from pyprof.marker import Tensor, Value
from pyprof.ops import dtypes
from pyprof.ops.examples import Example, f16
from pyprof.ops.registry import BPROP, backward_of, op
from pyprof.ops.signature import Unknown
from pyprof.ops.torch.tensors.pointwise import pointwise_backward, promoted_dtype
from pyprof.ops.torch.tensors.pointwise_rules import RULES, TRANSCENDENTAL
from pyprof.ops.work import Args, Work, broadcast, fresh, like

FAMILY = "reduction"

_X = f16(4, 6)
_EUCLID = 2
_NO_POWER = (0, 1, math.inf, -math.inf)
_FIXED = {
    **dict.fromkeys(("all", "any", "_is_all_true", "_is_any_true"), "bool"),
    **dict.fromkeys(("argmax", "argmin", "count_nonzero"), "int64"),
}
_REAL = {"norm", "vector_norm", "frobenius_norm", "var", "std", "var_mean", "std_mean"}
_WIDENED = {"sum", "nansum", "prod", "cumsum", "cumprod", "trace"}

# operations an element, and a result
COSTS = {
    "sum": (1, 0),
    "nansum": (2, 0),
    "mean": (1, 0),  # k - 1 additions and a division for each result
    "nanmean": (2, 0),
    "prod": (1, 0),
    "norm": (2, TRANSCENDENTAL),
    "vector_norm": (2, TRANSCENDENTAL),
    "frobenius_norm": (2, TRANSCENDENTAL),
    "amax": (1, 0),
    "amin": (1, 0),
    "aminmax": (2, 0),
    "argmax": (1, 0),
    "argmin": (1, 0),
    "all": (1, 0),
    "any": (1, 0),
    "_is_all_true": (1, 0),
    "_is_any_true": (1, 0),
    "count_nonzero": (1, 0),
    "var": (4, 1),
    "std": (4, 1 + TRANSCENDENTAL),
    "var_mean": (4, 2),
    "std_mean": (4, 2 + TRANSCENDENTAL),
    "logsumexp": (TRANSCENDENTAL + 3, TRANSCENDENTAL + 1),
}


def reduced(a: Args, x: Tensor) -> tuple[int, ...]:
    """Return the shape that is left. Raises Unknown if the dimensions are unknown."""
    dims = a.dims("dim", len(x.shape))
    if a.flag("keepdim", default=False):
        return tuple(1 if at in dims else size for at, size in enumerate(x.shape))
    return tuple(size for at, size in enumerate(x.shape) if at not in dims)


def _left(a: Args, x: Tensor) -> tuple[int, ...] | None:
    """Return the shape that is left; None if the trace does not record the dimensions."""
    if not a.known("keepdim"):
        return None
    if a.known("dim"):
        return reduced(a, x)
    # If plain values were recorded, a list would have been recorded, too: none was passed.
    return reduced(a.replaced(dim=None), x) if a.given("keepdim") else None


def result_dtype(a: Args, x: Tensor) -> str | None:
    """Return the dtype of a reduction's result: integers are added up as int64."""
    asked = a.dtype() if a.known("dtype") else None
    if asked is not None:
        return asked
    if a.op in _FIXED:
        return _FIXED[a.op]
    if a.op in _REAL:
        return dtypes.real(x.dtype)
    if a.op == "logsumexp" and not dtypes.is_floating(x.dtype):
        return "float32"
    if a.op in _WIDENED and x.dtype is not None and not dtypes.is_floating(x.dtype):
        return "int64"
    return x.dtype


# 24 additions; 24 read and 4 written of 2 bytes
@op(
    *("sum", "nansum", "mean", "nanmean", "prod"),
    signature=(
        "Tensor input, int[] dim, bool keepdim, *, dtype dtype",
        "Tensor input, *, dtype dtype",
    ),
    example=Example((_X,), flops=24, bytes=56, kwargs={"dim": 1}),
)
# 24 comparisons; 24 read and 4 written of 2 bytes
@op(
    *("amax", "amin", "aminmax", "argmax", "argmin", "all", "any", "count_nonzero"),
    *("_is_all_true", "_is_any_true"),
    signature="Tensor input, int[] dim, bool keepdim",
    example=Example((_X, 1), flops=24, bytes=56),
)
# 24 * 23: the largest, a difference, an exponential of 20 and a sum; 4 * 21: a logarithm, a sum
@op(
    "logsumexp",
    signature="Tensor input, int[] dim, bool keepdim",
    example=Example((_X, 1), flops=636, bytes=56),
)
# 24 * 4 and one division for each of 4 results; 24 read and 4 written of 2 bytes
@op(
    *("var", "var_mean"),
    signature=(
        "Tensor input, int[] dim, bool unbiased, bool keepdim",
        "Tensor input, bool unbiased",
    ),
    example=Example((_X, 1), flops=100, bytes=56),
)
# as above, and a root of 20 for each result
@op(
    *("std", "std_mean"),
    signature=(
        "Tensor input, int[] dim, bool unbiased, bool keepdim",
        "Tensor input, bool unbiased",
    ),
    example=Example((_X, 1), flops=180, bytes=56),
)
def reduction(a: Args) -> Work:
    """Operations for each element and each result; as many again for an imaginary part."""
    return _reduction(a, COSTS[a.op])


def _reduction(a: Args, operations: tuple[int, int]) -> Work:
    x = a.tensor("input")
    parts = 2 if dtypes.is_complex(x.dtype) else 1
    each, last = (parts * count for count in operations)
    left = _left(a, x)
    if left is None:
        why = "dim not recorded"
        flops = None if last else each * x.numel
        return Work(flops, (x,), why=why, no_flops=why if last else "")
    out = fresh(left, result_dtype(a, x))
    also = {"aminmax": (out,), "var_mean": (like(x, left),), "std_mean": (like(x, left),)}
    return Work(each * x.numel + last * out.numel, (x,), (out, *also.get(a.op, ())))


# squares and sums 2 * 24, one root of 20; 24 read and 1 written of 2 bytes
@op(
    *("norm", "vector_norm"),
    signature="Tensor input, any p, int[] dim, bool keepdim, *, dtype dtype",
    example=Example((_X, 2.0), flops=68, bytes=50),
)
@op(
    "frobenius_norm",
    signature="Tensor input, int[] dim, bool keepdim",
    example=Example((_X, (0, 1)), flops=68, bytes=50),
)
def norm(a: Args) -> Work:
    """Each element is raised to the power and added; a nuclear norm iterates."""
    p = a.values.get("p")
    if p == "nuc":
        return replace(reduction(a), flops=None, no_flops="iterations depend on the data")
    return _reduction(a, norm_cost(p))


def _with_svd(a: Args) -> Args:
    """Return a call of torch.linalg.norm as a nuclear norm if it takes singular values, too."""
    dim, shape = a.values.get("dim"), a.tensor("input").shape
    dims = dim if isinstance(dim, tuple) else () if isinstance(dim, int) else shape
    return a.replaced(p="nuc") if len(dims) == 2 and a.values.get("p") in (2, -2) else a  # noqa: PLR2004 - a matrix


_LINALG = ("torch.linalg.norm", "aten::linalg_norm")


@op(
    *_LINALG,
    signature="Tensor input, any p, int[] dim, bool keepdim, *, dtype dtype",
    example=Example((_X,), flops=68, bytes=50, op="norm", mod="torch.linalg"),
)
def linalg_norm(a: Args) -> Work:
    """As `norm`, but orders 2 and -2 of a matrix are its largest and smallest singular value."""
    return norm(_with_svd(a))


@op(*_LINALG, direction=BPROP, flops=48, bytes=100)
def linalg_norm_backward(a: Args) -> Work:
    """As that of `norm`."""
    return norm_backward(_with_svd(a))


def norm_cost(p: Value) -> tuple[int, int]:
    """Return the operations of a norm for each element and each result."""
    if p in _NO_POWER:
        return 2, 0  # an absolute value or a comparison, and a sum or another comparison
    other = isinstance(p, (int, float)) and p != _EUCLID
    return 2 + TRANSCENDENTAL * other, TRANSCENDENTAL


# x / norm * go: 24 * 2; x 24 and norm, go 2 read, 24 written = 50 of 2 bytes
@op(*("norm", "vector_norm"), direction=BPROP, flops=48, bytes=100)
def norm_backward(a: Args) -> Work:
    """The input scaled by the incoming gradient over the norm; of a nuclear norm, products."""
    if a.values.get("p") == "nuc":
        raise Unknown("no backward formula for nuclear norms")
    x = a.tensor("input")
    out = like(x, reduced(a, x))
    return Work(2 * x.numel, (x, out, out), (like(x),))


# the gradient is go / 6, repeated: 24 divisions; 4 read, 24 written of 2 bytes
@op("mean", direction=BPROP, example=Example((_X,), flops=24, bytes=56, kwargs={"dim": 1}))
# which are numbers 1, times the gradient 1: 24 * 2; x 24 and go 4 read, 24 written of 2 bytes
@op(
    *("nansum", "nanmean"),
    direction=BPROP,
    example=Example((_X,), flops=48, bytes=104, kwargs={"dim": 1}),
)
def mean_backward(a: Args) -> Work:
    """The incoming gradient, divided and repeated; or repeated where the input was a number."""
    x = a.tensor("input")
    saved = (x,) if a.op.startswith("nan") else ()
    return Work((1 + len(saved)) * x.numel, (*saved, like(x, reduced(a, x))), (like(x),))


# a view of the incoming gradient that repeats it: no work
@op("sum", direction=BPROP, flops=0, bytes=0)
def sum_backward(a: Args) -> Work:
    """Nothing: the incoming gradient is repeated by a view."""
    a.tensor("input")
    return Work(0)


# compare 1, divide by the count 1, multiply 1: 24 * 3; x 24, result 4, go 4, 24 written = 56 * 2
@op(*("amax", "amin", "aminmax"), direction=BPROP, flops=72, bytes=112)
@op(*("var", "var_mean"), direction=BPROP, flops=72, bytes=112)
@op(*("std", "std_mean"), direction=BPROP, flops=72, bytes=112)
@op("prod", direction=BPROP, example=Example((_X,), flops=72, bytes=112, kwargs={"dim": 1}))
# subtract the result, an exponential of 20, multiply: 24 * 22
@op("logsumexp", direction=BPROP, flops=528, bytes=112)
def selecting_backward(a: Args) -> Work:
    """Input, result and incoming gradient are read, the gradient is written."""
    x = a.tensor("input")
    out = like(x, reduced(a, x))
    each = TRANSCENDENTAL + 2 if a.op == "logsumexp" else 3
    return Work(each * x.numel, (x, out, out), (like(x),))


# two tensors compared: 24 comparisons and as many conjunctions; 48 read of 2 bytes
@op("equal", signature="Tensor input, Tensor other", example=Example((_X, _X), flops=48, bytes=97))
# 24 times the 6 of isclose, and a conjunction
@op(
    "allclose",
    signature="Tensor input, Tensor other",
    example=Example((_X, _X), flops=168, bytes=97),
)
def equal(a: Args) -> Work:
    """One truth value from two tensors."""
    x, other = a.tensor("input"), a.tensor("other")
    each = RULES["isclose"].flops if a.op == "allclose" else 1
    return Work((each + 1) * x.numel, (x, other), (fresh((), "bool"),))


# 4 elements of the diagonal; 4 read, 1 written of 2 bytes
@op("trace", signature="Tensor input", example=Example((_X,), flops=4, bytes=10))
def trace(a: Args) -> Work:
    """The sum of the diagonal."""
    x = a.tensor("input")
    count = min(x.shape) if x.shape else math.prod(x.shape)
    return Work(count, (like(x, (count,)),), (fresh((), result_dtype(a, x)),))


# max over 6 columns: 24 comparisons; 24 read, 4 values of 2 bytes and 4 indices of 8 written
@op(
    *("max", "min", "median", "nanmedian", "mode"),
    signature=("Tensor input, Tensor! other", "Tensor input, int dim, bool keepdim"),
    example=Example((_X, 1), flops=24, bytes=88),
)
def extreme(a: Args) -> Work:
    """Over a dimension the index is written, too. Of two tensors, one value of each pair."""
    x, other = a.tensor("input"), a.optional("other")
    if other is not None:
        both = fresh(broadcast([x.shape, other.shape]), promoted_dtype((x, other)))
        return Work(both.numel, (x, other), (both,))
    return Work(x.numel, (x,), _extreme_and_index(a, x))


def _extreme_and_index(a: Args, x: Tensor) -> tuple[Tensor, ...]:
    """Return the values and, over a dimension, their indices; the mode is always over one."""
    if a.op == "mode" and not a.given("dim"):
        a = a.replaced(dim=-1)
    out = like(x, reduced(a, x))
    return (out, fresh(out.shape, "int64")) if a.given("dim") else (out,)


# go is put at the index, the rest is zero: go 4, index 4 read, 24 written
@backward_of(extreme, flops=0, bytes=88)
def extreme_backward(a: Args) -> Work:
    """A gradient of zeros with the incoming one put in; of two tensors, that of `maximum`.

    Without a dimension there are no indices: the input is compared with the result, and the
    gradient divided by the number of equal elements.
    """
    x = a.tensor("input")
    if a.present("other"):
        pair = {"operands": (x, a.tensor("other"))}
        return pointwise_backward(replace(a, op="maximum", values=pair))
    results = _extreme_and_index(a, x)
    if len(results) == 1:
        return Work(3 * x.numel, (x, *results, *results), (like(x),))
    return Work(0, results, (like(x),))
