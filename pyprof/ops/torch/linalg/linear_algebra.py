"""Factorisations that take a number of steps known beforehand: the textbook counts.

As LAPACK Working Note 41 (Blackford, Dongarra 1999, appendix C) counts them, without lower orders:
Cholesky n^3 / 3, LU m n^2 - n^3 / 3, inverse 2 n^3, QR 2 m n^2 - 2 n^3 / 3, its Q the same again.
Bytes: inputs read once, results written once; the algorithms pass over the data more often. What
uses the factors, or iterates, is in `solvers`.
"""

from pyprof.marker import Tensor
from pyprof.ops import dtypes
from pyprof.ops.examples import Example, f32, i32
from pyprof.ops.registry import op
from pyprof.ops.torch.linalg.gemm import multiply_adds
from pyprof.ops.work import Args, Work, like, require, size

FAMILY = "linalg"

_SQUARE = f32(2, 6, 6)
_TALL = f32(2, 6, 3)


def real_operations(x: Tensor) -> int:
    """Return how many real multiply-adds one of these elements takes: 1, or 4 if complex."""
    return multiply_adds(x.dtype) // 2


def square(x: Tensor) -> tuple[int, int]:
    """Return the side and the number of square matrices. Raises Unknown if they are not square."""
    n = size(x, -1)
    require(size(x, -2) == n)
    return n, x.numel // max(1, n * n)


def sides(x: Tensor) -> tuple[int, int, int]:
    """Return the longer side, the shorter one and the number of matrices."""
    long, short = max(size(x, -1), size(x, -2)), min(size(x, -1), size(x, -2))
    return long, short, x.numel // max(1, long * short)


# 2 matrices of 6^3 / 3 = 72; 72 read and 72 written of 4 bytes
@op(
    *("cholesky", "cholesky_ex", "ldl_factor", "ldl_factor_ex"),
    signature="Tensor input",
    example=Example((_SQUARE,), flops=144, bytes=576),
)
# from the factor, 2 of 2 * 6^3 / 3 = 144
@op("cholesky_inverse", signature="Tensor input", example=Example((_SQUARE,), flops=288, bytes=576))
# 2 of 2 * 6^3 = 432
@op(
    *("inverse", "inv", "inv_ex"),
    signature="Tensor input",
    example=Example((_SQUARE,), flops=864, bytes=576),
)
def factorisation(a: Args) -> Work:
    """A third, two thirds, or twice the cube of the side."""
    x = a.tensor("input")
    n, count = square(x)
    thirds = {"cholesky_inverse": 2, "inverse": 6, "inv": 6, "inv_ex": 6}.get(a.op, 1)
    return Work(real_operations(x) * count * thirds * n**3 // 3, (x,), (like(x),))


# 2 of 6 * 36 - 6^3 / 3 = 144; 72 read and written of 4 bytes, 12 pivots of 4
@op(
    *("lu_factor", "torch.lu"),
    signature="Tensor input",
    example=Example((_SQUARE,), flops=288, bytes=624, op="linalg_lu_factor", mod="aten"),
)
# and of each matrix, whether it worked: 2 of 4 bytes
@op(
    *("lu_factor_ex", "_lu_with_info"),
    signature="Tensor input",
    example=Example((_SQUARE,), flops=288, bytes=632, op="linalg_lu_factor_ex", mod="aten"),
)
@op(
    *("_linalg_det", "_linalg_slogdet"),
    signature="Tensor input",
    example=Example((_SQUARE,), flops=288, bytes=576, mod="aten"),
)
# and the permutation 72, L 72 and U 72 written out: 4 * 72 of 4 bytes
@op(
    "lu",
    signature="Tensor input",
    example=Example((_SQUARE,), flops=288, bytes=1152, mod="torch.linalg"),
)
# 2 of 144; 72 read, one number for each of 2 written of 4 bytes
@op(
    *("det", "slogdet", "logdet"),
    signature="Tensor input",
    example=Example((_SQUARE,), flops=288, bytes=296),
)
def lu(a: Args) -> Work:
    """L and U in place of the matrix; a determinant is the product of U's diagonal."""
    x = a.tensor("input")
    long, short, count = sides(x)
    flops = real_operations(x) * count * (3 * long * short**2 - short**3) // 3
    one = like(x, x.shape[:-2])
    size_alone = Tensor(one.shape, dtypes.real(x.dtype))
    factors = (like(x), i32(*x.shape[:-2], short))
    checked = (*factors, Tensor(x.shape[:-2], "int32"))
    written = {
        "det": (one,),
        "logdet": (one,),
        "slogdet": (one, size_alone),
        "lu": _unpacked(x),
        "lu_factor": factors,
        "torch.lu": factors,
        "lu_factor_ex": checked,
        "_lu_with_info": checked,
    }
    return Work(flops, (x,), written.get(a.op, (like(x),)))


def _unpacked(x: Tensor) -> tuple[Tensor, ...]:
    """Return the permutation, L and U."""
    lead, rows, short = x.shape[:-2], size(x, -2), sides(x)[1]
    shapes = ((rows, rows), (rows, short), (short, size(x, -1)))
    return tuple(like(x, (*lead, *shape)) for shape in shapes)


# 72 of 4 bytes and 12 pivots of 4 read; three factors of 72 written of 4
@op(
    "lu_unpack",
    signature="Tensor input, Tensor pivots, bool unpack_data, bool unpack_pivots",
    example=Example((_SQUARE, i32(2, 6)), flops=0, bytes=1200),
)
def lu_unpack(a: Args) -> Work:
    """The permutation, L and U, each written out with its zeros."""
    x = a.tensor("input")
    data, pivots = (a.flag(f"unpack_{what}", default=True) for what in ("data", "pivots"))
    factors = _unpacked(x)
    reads = (x,) * data + (a.tensor("pivots"),) * pivots
    return Work(0, reads, factors[:1] * pivots + factors[1:] * data)


# 2 matrices: 2 * (6 * 36 - 72) = 288 each, and as much for Q; 72 read, Q 72 and R 72 written of 4
@op("qr", signature="Tensor input, any mode", example=Example((_SQUARE,), flops=1152, bytes=864))
def qr(a: Args) -> Work:
    """Householder reflections of the narrower side, and Q made of them."""
    x, mode = a.tensor("input"), a.value("mode", "reduced")
    lead, rows, short = x.shape[:-2], size(x, -2), sides(x)[1]
    inner = rows if mode in ("complete", False) else short
    r = like(x, (*lead, inner, size(x, -1)))
    if mode == "r":
        return Work(reflections(x), (x,), (r,))
    q = like(x, (*lead, rows, inner))
    return Work(reflections(x) + _product_of_reflections(q, short), (x,), (q, r))


def reflections(x: Tensor) -> int:
    """Return 2 m n^2 - 2 n^3 / 3 for each matrix of m by n: QR without its Q."""
    long, short, count = sides(x)
    return real_operations(x) * count * 2 * (3 * long * short**2 - short**3) // 3


def _product_of_reflections(q: Tensor, k: int) -> int:
    """Return 4 m n k - 2 (m + n) k^2 + 4 k^3 / 3 for each matrix Q of m rows and n columns."""
    m, n = size(q, -2), size(q, -1)
    count = q.numel // max(1, m * n)
    each = (12 * m * n * k - 6 * (m + n) * k * k + 4 * k**3) // 3
    return real_operations(q) * count * max(0, each)


# 2 of 288; 72 read, 72 and a factor for each of 2 * 6 columns written of 4 bytes
@op("geqrf", signature="Tensor input", example=Example((_SQUARE,), flops=576, bytes=624))
def geqrf(a: Args) -> Work:
    """Householder reflections, kept below R."""
    x = a.tensor("input")
    return Work(reflections(x), (x,), (like(x), like(x, (*x.shape[:-2], sides(x)[1]))))


# 2 of 4 * 6 * 3 * 3 - 2 * 9 * 9 + 4 * 27 / 3 = 90; 36 and 6 read, 36 written of 4 bytes
@op(
    *("orgqr", "householder_product"),
    signature="Tensor input, Tensor tau",
    example=Example((_TALL, f32(2, 3)), flops=180, bytes=312),
)
def householder_product(a: Args) -> Work:
    """Q from its reflections."""
    x, tau = a.tensor("input"), a.tensor("tau")
    return Work(_product_of_reflections(x, size(tau, -1)), (x, tau), (like(x),))


# 3 reflections meet 4 columns of 6: 2 * (4 * 6 * 4 * 3 - 2 * 4 * 9); 36, 6 and 48 read, 48
# written of 4 bytes
@op(
    "ormqr",
    signature="Tensor input, Tensor tau, Tensor other, bool left",
    example=Example((_TALL, f32(2, 3), f32(2, 6, 4)), flops=432, bytes=552),
)
def ormqr(a: Args) -> Work:
    """Q times a matrix without making Q: 4 m n k - 2 n k^2, or 2 m k^2 from the right."""
    x, tau, other = a.tensor("input"), a.tensor("tau"), a.tensor("other")
    m, n, k = size(other, -2), size(other, -1), size(tau, -1)
    free = n if a.flag("left", default=True) else m
    count = other.numel // max(1, m * n)
    flops = real_operations(x) * count * max(0, 4 * m * n * k - 2 * free * k * k)
    return Work(flops, (x, tau, other), (like(other),))
