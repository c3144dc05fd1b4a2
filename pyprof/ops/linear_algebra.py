"""Factorisations, solvers and Fourier transforms: the textbook counts.

Factorisations as LAPACK Working Note 41 counts them, without lower orders: Cholesky n^3 / 3, LU
2 n^3 / 3, inverse 2 n^3, QR 2 m n^2 - 2 n^3 / 3, triangular solve n^2 for each right-hand side.
Fourier transforms as FFTW reports them: 5 N log2 N, half of it for real data. Bytes: inputs read
once, results written once; the algorithms pass over the data more often.
"""

from __future__ import annotations

import math

from pyprof.marker import Call, Tensor
from pyprof.ops.registry import op
from pyprof.ops.signature import Unknown
from pyprof.ops.work import Args, Work, fresh, like, size

_SQUARE = Tensor((2, 6, 6), "float32")
_RIGHT = Tensor((2, 6, 4), "float32")
_COMPLEX = {"float16": "complex32", "float32": "complex64", "float64": "complex128"}
_REAL = {wide: narrow for narrow, wide in _COMPLEX.items()}


def _square(x: Tensor) -> tuple[int, int]:
    """Give the side and the number of square matrices."""
    n = size(x, -1)
    if size(x, -2) != n:
        raise Unknown("arguments do not fit the op")
    return n, x.numel // max(1, n * n)


# 2 matrices of 6^3 / 3 = 72; 72 read and 72 written of 4 bytes
@op(
    *("cholesky", "cholesky_ex", "cholesky_inverse"),
    signature="Tensor input",
    example=Call("torch", "cholesky", (_SQUARE,)),
    flops=144,
    bytes=576,
)
# 2 of 2 * 6^3 / 3 = 144
@op(
    *("lu_factor", "lu_factor_ex", "lu", "_linalg_det", "_linalg_slogdet"),
    signature="Tensor input",
    example=Call("aten", "linalg_lu_factor", (_SQUARE,)),
    flops=288,
    bytes=576,
)
# 2 of 2 * 6^3 = 432
@op(
    *("inverse", "inv", "inv_ex"),
    signature="Tensor input",
    example=Call("torch", "inverse", (_SQUARE,)),
    flops=864,
    bytes=576,
)
def factorisation(a: Args) -> Work:
    """A third, two thirds, or twice the cube of the side."""
    x = a.tensor("input")
    n, count = _square(x)
    thirds = 1 if "cholesky" in a.op else 6 if "inv" in a.op else 2
    return Work(count * thirds * n**3 // 3, (x,), (like(x),))


# 2 matrices: 2 * (6 * 36 - 72) = 288 each; 72 read, Q 72 and R 72 written of 4 bytes
@op(
    "qr",
    signature="Tensor input",
    example=Call("torch", "qr", (_SQUARE,)),
    flops=576,
    bytes=864,
)
def qr(a: Args) -> Work:
    """Householder reflections of the narrower side."""
    x = a.tensor("input")
    m, n = max(size(x, -1), size(x, -2)), min(size(x, -1), size(x, -2))
    count = x.numel // max(1, m * n)
    lead = x.shape[:-2]
    q, r = (*lead, size(x, -2), n), (*lead, n, size(x, -1))
    return Work(count * 2 * (3 * m * n * n - n**3) // 3, (x,), (like(x, q), like(x, r)))


# 2 * 36 * 4 = 288; 72 and 48 read, 48 written of 4 bytes
@op(
    *("triangular_solve", "cholesky_solve", "solve_triangular"),
    signature="Tensor input, Tensor other",
    example=Call("aten", "linalg_solve_triangular", (_SQUARE, _RIGHT, True)),
    flops=288,
    bytes=672,
)
def triangular_solve(a: Args) -> Work:
    """The square of the side for each right-hand side; twice for the two factors of Cholesky."""
    x, y = a.tensor("input"), a.tensor("other")
    matrix, right = (y, x) if a.op in ("triangular_solve", "cholesky_solve") else (x, y)
    n, count = _square(matrix)
    columns = right.numel // max(1, n * count)
    twice = 2 if a.op == "cholesky_solve" else 1
    return Work(twice * count * n * n * columns, (matrix, right), (like(right),))


# 2 matrices: 2 * 6^3 / 3 + 2 * 36 * 4 = 432 each; 72 and 48 read, 48 written of 4 bytes
@op(
    *("solve", "solve_ex", "_linalg_solve_ex"),
    signature="Tensor input, Tensor other",
    example=Call("aten", "linalg_solve", (_SQUARE, _RIGHT)),
    flops=864,
    bytes=672,
)
def solve(a: Args) -> Work:
    """LU, then two triangular solves."""
    x, y = a.tensor("input"), a.tensor("other")
    n, count = _square(x)
    columns = y.numel // max(1, n * count)
    return Work(count * (2 * n**3 // 3 + 2 * n * n * columns), (x, y), (like(y),))


# 4 rows of 8: 5 * 8 * 3 = 120 each; 32 read and 32 written of 8 bytes
@op(
    "_fft_c2c",
    signature="Tensor input, int[] dim",
    example=Call("aten", "_fft_c2c", (Tensor((4, 8), "complex64"), (1,), 0, True)),
    flops=480,
    bytes=512,
)
# half of it; 32 read of 4 bytes, 4 * 5 written of 8
@op(
    "_fft_r2c",
    signature="Tensor input, int[] dim, any norm, bool onesided",
    example=Call("aten", "_fft_r2c", (Tensor((4, 8), "float32"), (1,), 0, True)),
    flops=240,
    bytes=288,
)
# from 4 * 5 to 4 * 8: half of 480; 20 read of 8 bytes, 32 written of 4
@op(
    "_fft_c2r",
    signature="Tensor input, int[] dim, any norm, int last",
    example=Call("aten", "_fft_c2r", (Tensor((4, 5), "complex64"), (1,), 0, 8)),
    flops=240,
    bytes=288,
)
def fourier(a: Args) -> Work:
    """5 N log2 N over the dimensions named; real data need half."""
    x = a.tensor("input")
    dims = a.value("dim")
    at = (
        [item % max(1, len(x.shape)) for item in dims if isinstance(item, int)]
        if isinstance(dims, tuple)
        else []
    )
    if not at or not x.shape:
        raise Unknown("dim not recorded")
    shape, result = list(x.shape), list(x.shape)
    dtype = x.dtype
    if a.op == "_fft_r2c":
        dtype = _COMPLEX.get(x.dtype or "")
        if a.flag("onesided", default=True):
            result[at[-1]] = result[at[-1]] // 2 + 1
    elif a.op == "_fft_c2r":
        dtype = _REAL.get(x.dtype or "")
        shape[at[-1]] = result[at[-1]] = a.integer("last", 0)
    points = math.prod(shape[place] for place in at)
    logs = math.prod(shape) * math.log2(points) if points > 1 else 0.0
    return Work(round(logs * (5 if a.op == "_fft_c2c" else 2.5)), (x,), (fresh(result, dtype),))
