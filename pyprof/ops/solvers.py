"""Solvers: with a triangle, with factors, with a matrix, in the least squares' sense.

Counted as in `linear_algebra`: a triangular solve n^2 for each right-hand side, a factorisation
before it where the op has none yet. Bytes: matrices and right-hand sides read once, the solution
written once.
"""

from __future__ import annotations

from pyprof.marker import Call, Tensor
from pyprof.ops.linear_algebra import real_operations, reflections, sides, square
from pyprof.ops.registry import op
from pyprof.ops.work import Args, Work, broadcast, like, size

FAMILY = "linalg"

_SQUARE = Tensor((2, 6, 6), "float32")
_RIGHT = Tensor((2, 6, 4), "float32")
_PIVOTS = Tensor((2, 6), "int32")
_TALL = Tensor((2, 6, 3), "float32")


def solution(x: Tensor, right: Tensor) -> Tensor:
    """Describe what solves for a right-hand side: as large as that, for every matrix of a batch."""
    if len(right.shape) < 2 or right.shape == x.shape[:-1]:  # noqa: PLR2004 - vectors
        return like(right)
    return like(right, (*broadcast([x.shape[:-2], right.shape[:-2]]), *right.shape[-2:]))


def columns(right: Tensor, x: Tensor) -> int:
    """Count the right-hand sides of all the matrices together."""
    return solution(x, right).numel // max(1, size(x, -1))


# 2 * 36 * 4 = 288; 72 and 48 read, 48 written of 4 bytes
@op(
    *("triangular_solve", "cholesky_solve", "_cholesky_solve_helper"),
    signature="Tensor other, Tensor input",
    example=Call("torch", "triangular_solve", (_RIGHT, _SQUARE)),
    flops=288,
    bytes=672,
)
@op(
    "solve_triangular",
    signature="Tensor input, Tensor other",
    example=Call("aten", "linalg_solve_triangular", (_SQUARE, _RIGHT, True)),
    flops=288,
    bytes=672,
)
def triangular_solve(a: Args) -> Work:
    """The square of the side for each right-hand side; twice for the two factors of Cholesky."""
    x, right = a.tensor("input"), a.tensor("other")
    n, _ = square(x)
    each = real_operations(x) * (2 if "cholesky" in a.op else 1) * n * n
    return Work(each * columns(right, x), (x, right), (solution(x, right),))


# both factors: 2 * 2 * 36 * 4 = 576; 72, 12 pivots and 48 read, 48 written of 4 bytes
@op(
    *("aten::linalg_lu_solve", "torch.linalg.lu_solve", "ldl_solve"),
    signature="Tensor input, Tensor pivots, Tensor other",
    example=Call("torch.linalg", "lu_solve", (_SQUARE, _PIVOTS, _RIGHT)),
    flops=576,
    bytes=720,
)
@op(
    "lu_solve",
    signature="Tensor other, Tensor input, Tensor pivots",
    example=Call("torch", "lu_solve", (_RIGHT, _SQUARE, _PIVOTS)),
    flops=576,
    bytes=720,
)
def lu_solve(a: Args) -> Work:
    """Two triangular solves."""
    x, right = a.tensor("input"), a.tensor("other")
    n, _ = square(x)
    flops = real_operations(x) * 2 * n * n * columns(right, x)
    return Work(flops, (x, a.tensor("pivots"), right), (solution(x, right),))


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
    x, right = a.tensor("input"), a.tensor("other")
    n, count = square(x)
    each = real_operations(x) * 2 * n * n
    flops = each * count * n // 3 + each * columns(right, x)
    return Work(flops, (x, right), (solution(x, right),))


# 2 of QR 2 * 6 * 9 - 2 * 27 / 3 = 90, Q^T times 4 columns 4 * (4 * 6 * 3 - 2 * 9) = 216 and R
# solved 4 * 9 = 36; 36 and 48 read, 2 * 3 * 4 written of 4 bytes
@op(
    "lstsq",
    signature="Tensor input, Tensor other",
    example=Call("torch.linalg", "lstsq", (_TALL, _RIGHT)),
    flops=684,
    bytes=432,
)
def lstsq(a: Args) -> Work:
    """By QR, as `gels` does, the one driver that a GPU has; others iterate."""
    x, right = a.tensor("input"), a.tensor("other")
    long, short, count = sides(x)
    wide = len(right.shape) == len(x.shape)
    many = size(right, -1) if wide else 1
    solved = count * many * (4 * long * short - short**2)
    out = (*x.shape[:-2], size(x, -1), *((many,) if wide else ()))
    flops = reflections(x) + real_operations(x) * solved
    return Work(flops, (x, right), (like(right, out),))
