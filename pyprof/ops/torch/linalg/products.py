"""Products that are neither one matrix product nor pointwise: chains, powers, crosses, einsum.

Those that are made of matrix products count 2 M N K for each of them, as `gemm` does, in the order
in which torch takes them. In a sum over indices (einsum, tensordot, bilinear) a pair of operands
costs one multiply-add for each combination of its indices, or one multiplication if nothing is
summed; several operands are taken pair by pair from the left, as torch does unless opt_einsum finds
a better order.
"""

import math

from pyprof.marker import Tensor
from pyprof.ops.examples import Example, f16, f32
from pyprof.ops.registry import BPROP, backward_of, op
from pyprof.ops.signature import Unknown
from pyprof.ops.torch.linalg.gemm import gradients, gradients_of, multiply_adds, product
from pyprof.ops.torch.linalg.linear_algebra import square
from pyprof.ops.torch.tensors.pointwise_rules import TRANSCENDENTAL
from pyprof.ops.work import Args, Work, broadcast, fresh, like, require, row_count, size, twice_of

FAMILY = "gemm"

_A = f16(4, 6)
_B = f16(6, 5)
_ROWS = f16(4, 3)


# 4 * 5 dot products of 6: 2 * 120; 24 + 30 + 20 of 2 bytes
@op(
    "inner",
    signature="Tensor input, Tensor other",
    example=Example((_A, f16(5, 6)), flops=240, bytes=148),
)
def inner(a: Args) -> Work:
    """Each row of one with each row of the other."""
    x, y = a.tensor("input"), a.tensor("other")
    if not x.shape or not y.shape:  # a number times a tensor
        out = like(x, x.shape + y.shape)
        return Work(out.numel, (x, y), (out,))
    k = size(x, -1)
    m, n = x.numel // max(1, k), y.numel // max(1, k)
    return product(x, y, like(x, (*x.shape[:-1], *y.shape[:-1])), m, n, k)


# either gradient is such a product: 2 * 240; go 20 + 30 + 24, go 20 + 24 + 30 of 2 bytes
backward_of(inner, flops=480, bytes=296)(gradients_of(inner))


# 4 dot products of 3: 2 * 12; 12 + 12 + 4 of 2 bytes
@op(
    "vecdot",
    signature="Tensor input, Tensor other, *, int dim",
    example=Example((_ROWS, _ROWS), flops=24, bytes=56, mod="torch.linalg"),
)
def vecdot(a: Args) -> Work:
    """Dot products of pairs of vectors."""
    x, y = a.tensor("input"), a.tensor("other")
    broadcasted = like(x, broadcast([x.shape, y.shape]))
    away = a.axis(len(broadcasted.shape))
    left = (n for at, n in enumerate(broadcasted.shape) if at != away)
    return Work(multiply_adds(x.dtype) * broadcasted.numel, (x, y), (like(x, left),))


# each of 24 with each of 30: 720; 24 + 30 + 720 of 2 bytes
@op(
    "kron",
    family="pointwise",
    signature="Tensor input, Tensor other",
    example=Example((_A, _B), flops=720, bytes=1548),
)
def kron(a: Args) -> Work:
    """One matrix for each element of the other, scaled by it."""
    x, y = a.tensor("input"), a.tensor("other")
    rank = max(len(x.shape), len(y.shape))
    pair = ((1,) * (rank - len(t.shape)) + t.shape for t in (x, y))
    out = like(x, (m * n for m, n in zip(*pair, strict=True)))
    return Work(out.numel, (x, y), (out,))


# go times either: 12 * 2; go 4, 12 and 12 read, 12 and 12 written of 2 bytes
@backward_of(kron, flops=2880, bytes=1656)
@backward_of(vecdot, flops=24, bytes=104)
# each of 720 with one and with the other, added up: 4 * 720; go 720, 24 and 30 read, 24 and 30
# written of 2 bytes
# the column's and the row's, 2 * 20 each; go 20, 4 and 5 read, 4 and 5 written of 2 bytes
@op(
    *("outer", "ger"),
    direction=BPROP,
    signature="Tensor input, Tensor other",
    example=Example((f16(4), f16(5)), flops=80, bytes=76),
)
def paired_backward(a: Args) -> Work:
    """The incoming gradient times the other operand, summed if that was repeated."""
    x, y = a.tensor("input"), a.tensor("other")
    if a.op == "vecdot":
        out = vecdot(a).writes[0]
        flops = 2 * fresh(broadcast([x.shape, y.shape]), None).numel
    else:
        out = kron(a).writes[0] if a.op == "kron" else like(x, (x.numel, y.numel))
        flops = 2 * multiply_adds(x.dtype) * out.numel
    return Work(flops, (out, x, y), (like(x), like(y)))


# two products and a difference: 12 * 3; 12 + 12 + 12 of 2 bytes
@op(
    "cross",
    family="pointwise",
    signature="Tensor input, Tensor other, int dim",
    example=Example((_ROWS, _ROWS), flops=36, bytes=72),
)
def cross(a: Args) -> Work:
    """The vector product of three numbers with three."""
    x, y = a.tensor("input"), a.tensor("other")
    out = like(x, broadcast([x.shape, y.shape]))
    return Work(3 * out.numel, (x, y), (out,))


# go with either factor: 2 * 36; go, x, y read, two gradients written: 5 * 12 of 2 bytes
backward_of(cross, flops=72, bytes=120)(twice_of(cross))


# x y^T 20, added to 20: 20 * 2; 20 + 4 + 5 read, 20 written of 2 bytes
@op(
    "addr",
    family="pointwise",
    signature="Tensor input, Tensor vec1, Tensor vec2",
    example=Example((f16(4, 5), *(f16(n) for n in (4, 5))), flops=40, bytes=98),
)
def addr(a: Args) -> Work:
    """A column times a row, added to a matrix."""
    x, y, added = a.tensor("vec1"), a.tensor("vec2"), a.tensor("input")
    out = like(x, (x.numel, y.numel))
    return Work(2 * out.numel, (added, x, y), (out,))


# (4, 6) (6, 5) (5, 2): from the right 2 * 6 * 5 * 2 + 2 * 4 * 6 * 2 = 216, from the left 320;
# 24 + 30 + 10 + 8 of 2 bytes
@op(
    *("multi_dot", "chain_matmul"),
    signature="Tensor[] tensors",
    example=Example(((_A, _B, f16(5, 2)),), flops=216, bytes=144, mod="torch.linalg"),
)
def chain(a: Args) -> Work:
    """The cheapest order of products, which torch looks for; intermediate results are not moved."""
    tensors = a.tensors("tensors")
    if not tensors or not all(t.shape for t in tensors):
        raise Unknown("tensors of tensors not recorded")
    first, last = tensors[0], tensors[-1]
    inner_sizes = [first.shape[-1], *(t.shape[0] for t in tensors[2:])]
    sizes = [*(first.shape[:-1] or (1,)), *inner_sizes, *(last.shape[1:] or (1,))]
    out = like(first, first.shape[:-1] + last.shape[1:])
    return Work(multiply_adds(first.dtype) * _cheapest(sizes), tensors, (out,))


# each product's two gradients: 2 * 216; go 8 and 24 + 30 + 10 read, 24 + 30 + 10 written of 2 bytes
backward_of(chain, flops=432, bytes=272)(twice_of(chain))


def _cheapest(sizes: list[int]) -> int:
    """Return the fewest multiply-adds of a chain of matrices of sizes[i] by sizes[i + 1]."""
    count = len(sizes) - 1
    best = {(at, at): 0 for at in range(count)}
    for length in range(1, count):
        for first in range(count - length):
            last = first + length
            best[first, last] = min(
                best[first, cut]
                + best[cut + 1, last]
                + sizes[first] * sizes[cut + 1] * sizes[last + 1]
                for cut in range(first, last)
            )
    return best.get((0, count - 1), 0)


# x^5 = (x^2)^2 x, 3 products of 2 * 6^3 for each of 2 matrices; 72 + 72 of 4 bytes
@op(
    "matrix_power",
    signature="Tensor input, int n",
    example=Example((f32(2, 6, 6), 5), flops=2592, bytes=576),
)
def matrix_power(a: Args) -> Work:
    """By squaring: a product for each binary digit after the first, and for each further one."""
    x, exponent = a.tensor("input"), abs(a.integer("n", 1))
    side, count = square(x)
    products = max(0, exponent.bit_length() - 1 + exponent.bit_count() - 1)
    products += a.integer("n", 1) < 0  # the inverse first: 2 n^3 as well
    return Work(multiply_adds(x.dtype) * count * products * side**3, (x,), (like(x),))


# two for each of 3 products; go 72, the matrix 72 read, 72 written of 4 bytes
backward_of(matrix_power, flops=5184, bytes=864)(twice_of(matrix_power))


# 4 variables of 6 samples: means 24, differences 24, products 2 * 4 * 4 * 6, scale 16; 24 read, 16
# written of 2 bytes
@op("cov", signature="Tensor input", example=Example((_A,), flops=256, bytes=80))
# and each of 16 over two deviations, 4 roots of 20
@op("corrcoef", signature="Tensor input", example=Example((_A,), flops=368, bytes=80))
def covariance(a: Args) -> Work:
    """The centred samples times themselves."""
    x = a.tensor("input")
    variables = x.shape[0] if len(x.shape) > 1 else 1
    out = fresh((variables,) * 2 if len(x.shape) > 1 else (), x.dtype)
    flops = (2 + multiply_adds(x.dtype) * variables) * x.numel + out.numel
    if a.op == "corrcoef":
        flops += 2 * out.numel + TRANSCENDENTAL * variables
    return Work(flops, (x,), (out,))


_EINSUM_A = f16(3, 4, 6)
_MULTIPLY = {2: 1, 8: 6}  # operations of a multiply-add without the addition


def _labels(equation: str, tensors: tuple[Tensor, ...]) -> tuple[list[str], str, dict[str, int]]:
    """Return the operands' labels, the result's, and their sizes; dots become new labels."""
    left, arrow, right = equation.replace(" ", "").partition("->")
    terms = left.split(",")
    require(len(terms) == len(tensors))
    named = {letter for letter in equation if letter.isalpha()}
    spare = [chr(code) for code in range(0x100, 0x120)]
    widest = max(
        len(t.shape) - len(term.replace("...", "")) for t, term in zip(tensors, terms, strict=True)
    )
    dots = spare[: max(0, widest)]
    sizes: dict[str, int] = {}
    operand_labels = []
    for term, tensor in zip(terms, tensors, strict=True):
        hidden = len(tensor.shape) - len(term.replace("...", ""))
        full = term.replace("...", "".join(dots[len(dots) - hidden :]) if hidden > 0 else "")
        require(len(full) == len(tensor.shape))
        for letter, length in zip(full, tensor.shape, strict=True):
            size_so_far = sizes.get(letter, 1)
            sizes[letter] = length if size_so_far == 1 else size_so_far
        operand_labels.append(full)
    if arrow:
        return operand_labels, right.replace("...", "".join(dots)), sizes
    once = sorted(letter for letter in named if left.count(letter) == 1)
    return operand_labels, "".join(dots) + "".join(once), sizes


def _contract(terms: list[str], result: str, sizes: dict[str, int], each: int) -> int:
    """Count the operations of taking the operands pair by pair."""
    flops = 0
    labels_left = terms[0]
    if len(terms) == 1:
        return (
            math.prod(sizes[x] for x in set(labels_left)) if set(labels_left) - set(result) else 0
        )
    for at, term in enumerate(terms[1:], start=1):
        needed = set(result).union(*terms[at + 1 :])
        both = set(labels_left) | set(term)
        labels_kept = both & needed
        # a label of one operand alone is summed before the product
        alone = (set(labels_left) ^ set(term)) - needed
        summed = both - labels_kept - alone
        count = math.prod(sizes[letter] for letter in both - alone)
        flops += (each if summed else _MULTIPLY[each]) * count
        labels_left = "".join(sorted(labels_kept))
    return flops


# 2 * 3 * 4 * 6 * 5 = 720; 72 + 90 + 60 = 222 elements of 2 bytes
@op(
    "einsum",
    signature="str equation, Tensor[] operands",
    example=Example(("bij,bjk->bik", _EINSUM_A, f16(3, 6, 5)), flops=720, bytes=444),
)
def einsum(a: Args) -> Work:
    """What the equation sums."""
    equation, operands = a.value("equation"), a.tensors("operands")
    if not isinstance(equation, str):
        raise Unknown("equation not recorded")
    terms, result, sizes = _labels(equation, operands)
    flops = _contract(terms, result, sizes, multiply_adds(operands[0].dtype))
    out = like(operands[0], tuple(sizes.get(letter, 1) for letter in result))
    return Work(flops, operands, (out,), {"equation": equation})


# one einsum like the forward for each operand's gradient: 2 * 720; each reads go 60 and the other
# operand and writes its gradient: 60 + 90 + 72 and 60 + 72 + 90 = 444 elements of 2 bytes
@backward_of(einsum, flops=1440, bytes=888)
def einsum_backward(a: Args) -> Work:
    """A sum of the forward's size for each operand's gradient."""
    forward = einsum(a)
    if len(forward.reads) != 2:  # noqa: PLR2004 - a pair
        raise Unknown("no backward formula for einsum of other than two operands")
    return gradients(forward, a.gemm_kernels)


# the last 2 dimensions of 3,4,6 with the first 2 of 4,6,5: 2 * 3 * 24 * 5; 72 + 120 + 15 of 2 bytes
@op(
    "tensordot",
    signature="Tensor input, Tensor other, any dims",
    example=Example((_EINSUM_A, f16(4, 6, 5)), flops=720, bytes=414, kwargs={"dims": 2}),
)
def tensordot(a: Args) -> Work:
    """A matrix product over the dimensions named."""
    x, y, dims = a.tensor("input"), a.tensor("other"), a.value("dims", 2)
    if isinstance(dims, int):
        inner = math.prod(y.shape[:dims])
    elif isinstance(dims, tuple) and dims and isinstance(dims[0], tuple):
        inner = math.prod(size(x, at) for at in dims[0] if isinstance(at, int))
    else:
        raise Unknown("dims not recorded")
    m, n = x.numel // max(1, inner), y.numel // max(1, inner)
    return product(x, y, like(x, (m, n)), m, n, inner)


# either factor's gradient is such a product: 2 * 720; 15 + 120 + 72, 15 + 72 + 120 of 2 bytes
backward_of(tensordot, flops=1440, bytes=828)(gradients_of(tensordot))


# 4 samples, 5 outputs, 3 * 6 pairs and 6 sums: 2 * 4 * 5 * (18 + 6); 12 + 24 + 90 + 20 of 2 bytes
@op(
    "bilinear",
    signature="Tensor input1, Tensor input2, Tensor weight, Tensor? bias",
    example=Example((f16(4, 3), f16(4, 6), f16(5, 3, 6)), flops=960, bytes=292),
)
def bilinear(a: Args) -> Work:
    """X times a matrix times y, for each output."""
    x, y, w = a.tensor("input1"), a.tensor("input2"), a.tensor("weight")
    samples = row_count(x)
    outs, first, second = size(w, -3), size(w, -2), size(w, -1)
    out = like(x, (*x.shape[:-1], outs))
    flops = multiply_adds(x.dtype) * samples * outs * (first + 1) * second
    return Work(flops, (x, y, w, *a.present("bias")), (out,))


# each of three gradients is a sum over all of 4 * 5 * 3 * 6: 3 * 2 * 360; go 20, 12 + 24 + 90
# read, 12 + 24 + 90 written of 2 bytes
@backward_of(bilinear, flops=2160, bytes=544)
def bilinear_backward(a: Args) -> Work:
    """The gradients of both inputs and the matrices; and the bias's, a sum (no FLOPs counted)."""
    forward = bilinear(a)
    x, _, w = forward.reads[:3]
    samples = row_count(x)
    flops = 3 * multiply_adds(x.dtype) * samples * w.numel
    return Work(flops, (*forward.writes, *forward.reads[:3]), tuple(map(like, forward.reads)))
