"""Solvers, spectra and their backward passes: with triangles, factors, matrices; eigenvalues.

Counted as in `linear_algebra`: a triangular solve n^2 for each right-hand side, a factorisation
before it if the op has none yet. Bytes: matrices and right-hand sides read once, the solution
written once. Eigenvalues and singular values iterate until they have converged, by an algorithm
that the library chooses: the number of operations does not follow from the arguments.

Backward, as torch computes it (torch/csrc/autograd/FunctionsManual.cpp): 2 n^3 a product and n^2 a
right-hand side of a triangular solve; sums and masks of matrices are not counted. The incoming
gradient and what the forward kept are read once, the gradient is written once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyprof.ops import dtypes
from pyprof.ops.examples import Example, f32, i32
from pyprof.ops.registry import BPROP, op
from pyprof.ops.torch.linalg.linear_algebra import real_operations, reflections, sides, square
from pyprof.ops.torch.tensors.pointwise_rules import TRANSCENDENTAL
from pyprof.ops.torch.tensors.reductions import reduced
from pyprof.ops.work import Args, Work, broadcast, fresh, like, size

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyprof.marker import Tensor

FAMILY = "linalg"

_SQUARE = f32(2, 6, 6)
_RIGHT = f32(2, 6, 4)
_PIVOTS = i32(2, 6)
_TALL = f32(2, 6, 3)


def solution(x: Tensor, right: Tensor) -> Tensor:
    """Return the solution for a right-hand side, for every matrix of a batch."""
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
    example=Example((_RIGHT, _SQUARE), flops=288, bytes=672),
)
@op(
    "solve_triangular",
    signature="Tensor input, Tensor other",
    example=Example(
        (_SQUARE, _RIGHT, True), flops=288, bytes=672, op="linalg_solve_triangular", mod="aten"
    ),
)
# both factors: 2 * 2 * 36 * 4 = 576; 72, 12 pivots and 48 read, 48 written of 4 bytes
@op(
    *("aten::linalg_lu_solve", "torch.linalg.lu_solve", "ldl_solve"),
    signature="Tensor input, Tensor pivots, Tensor other",
    example=Example(
        (_SQUARE, _PIVOTS, _RIGHT), flops=576, bytes=720, op="lu_solve", mod="torch.linalg"
    ),
)
@op(
    "lu_solve",
    signature="Tensor other, Tensor input, Tensor pivots",
    example=Example((_RIGHT, _SQUARE, _PIVOTS), flops=576, bytes=720),
)
def solve_factored(a: Args) -> Work:
    """The square of the side for each right-hand side and factor: one triangle, else two."""
    x, right = a.tensor("input"), a.tensor("other")
    n, _ = square(x)
    each = real_operations(x) * (1 if "triangular" in a.op else 2) * n * n
    reads = (x, *a.present("pivots"), right)
    return Work(each * columns(right, x), reads, (solution(x, right),))


# 2 matrices: 2 * 6^3 / 3 + 2 * 36 * 4 = 432 each; 72 and 48 read, 48 written of 4 bytes
@op(
    *("solve", "solve_ex", "_linalg_solve_ex"),
    signature="Tensor input, Tensor other",
    example=Example((_SQUARE, _RIGHT), flops=864, bytes=672, op="linalg_solve", mod="aten"),
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
    example=Example((_TALL, _RIGHT), flops=684, bytes=432, mod="torch.linalg"),
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


_WHY = "iterations depend on the data"


def _values(x: Tensor, shape: Sequence[int]) -> Tensor:
    """Return singular values, or eigenvalues of a symmetric matrix: real numbers."""
    return fresh((*x.shape[:-2], *shape), dtypes.real(x.dtype))


# 36 read; U 36, 3 values and V 9 for each of 2 matrices written: 36 + 6 + 18 of 4 bytes
@op(
    "svd",
    signature="Tensor input, bool full_matrices",
    example=Example((_TALL, False), bytes=384, mod="torch.linalg"),
)
@op(
    "torch.svd",
    signature="Tensor input, bool some, bool compute_uv",
    example=Example((_TALL,), bytes=384),
)
@op(
    "aten::_linalg_svd",
    signature="Tensor input, bool full_matrices, bool compute_uv",
    example=Example((_TALL, False, True), bytes=384),
)
def svd(a: Args) -> Work:
    """U, the singular values and V, as wide as the shorter side unless all of them are wanted."""
    x = a.tensor("input")
    rows, width, short = size(x, -2), size(x, -1), sides(x)[1]
    full = not a.flag("some", default=True)
    if "full_matrices" in a.values:
        full = a.flag("full_matrices", default=True)
    lead = x.shape[:-2]
    u = like(x, (*lead, rows, rows if full else short))
    v = like(x, (*lead, width if full else short, width))
    vectors = (u, v) if a.flag("compute_uv", default=True) else ()
    return Work(None, (x,), (*vectors, _values(x, (short,))), no_flops=_WHY)


# 72 read, 2 * 6 values and 72 of vectors written of 4 bytes
@op(
    "eigh",
    signature="Tensor input, any uplo",
    example=Example((_SQUARE,), bytes=624, mod="torch.linalg"),
)
@op(
    "aten::_linalg_eigh",
    signature="Tensor input, any uplo, bool vectors",
    example=Example((_SQUARE, "L", True), bytes=624),
)
# the same in complex numbers of 8 bytes: 288 + 8 * 84
@op("eig", signature="Tensor input", example=Example((_SQUARE,), bytes=960, mod="torch.linalg"))
def eigenvectors(a: Args) -> Work:
    """Values and vectors: real ones of a symmetric matrix, complex ones of any other."""
    x = a.tensor("input")
    values, vectors = _values(x, (size(x, -1),)), like(x)
    if a.op == "eig":
        values, vectors = (fresh(t.shape, dtypes.complex_of(t.dtype)) for t in (values, vectors))
    saved = (vectors,) if a.flag("vectors", default=True) else ()
    return Work(None, (x,), (values, *saved), no_flops=_WHY)


# 36 read, 36 of U and 18 of H written of 4 bytes
@op(
    *("aten::linalg_polar", "torch.linalg.polar"),
    signature="Tensor input",
    example=Example((_TALL,), bytes=360, op="polar", mod="torch.linalg"),
)
def polar_decomposition(a: Args) -> Work:
    """U, as large as the matrix, and H, a square one; no relative of `torch.polar`."""
    x = a.tensor("input")
    narrow = like(x, (*x.shape[:-2], size(x, -1), size(x, -1)))
    return Work(None, (x,), (like(x), narrow), no_flops=_WHY)


# 36 squares and sums: 36 * 2, a root of 20 for each of 2 matrices; 36 read, 2 written of 4 bytes
@op(
    "matrix_norm",
    signature="Tensor input, any ord, int[] dim, bool keepdim",
    example=Example((_TALL,), flops=112, bytes=152, mod="torch.linalg"),
)
def matrix_norm(a: Args) -> Work:
    """A sum of squares or of absolute values; norms of order 2 and nuclear ones take an SVD."""
    x = a.tensor("input")
    dims = (-2, -1) if not a.given("dim") else a.value("dim")
    left = reduced(a.replaced(dim=dims), x)
    out = fresh(left, dtypes.real(x.dtype))
    order = a.value("ord", "fro")
    iterates = order in ("nuc", 2, -2)
    last = TRANSCENDENTAL if order == "fro" else 1
    flops = None if iterates else 2 * x.numel + last * out.numel
    return Work(flops, (x,), (out,), no_flops=_WHY if iterates else "")


# 36 read, 3 values for each of 2 matrices written of 4 bytes
@op(
    *("svdvals", "eigvalsh"),
    signature="Tensor input",
    example=Example((_TALL,), bytes=168, mod="torch.linalg"),
)
# 72 read of 4 bytes, 2 * 6 values of 8 written
@op(
    *("eigvals", "_linalg_eigvals"),
    signature="Tensor input",
    example=Example((_SQUARE,), bytes=384, mod="torch.linalg"),
)
# 36 read, one number for each of 2 matrices written of 4 bytes
@op(
    *("cond", "nuclear_norm"),
    signature="Tensor input",
    example=Example((_TALL,), bytes=152, mod="torch.linalg"),
)
# 36 read of 4 bytes, 2 whole numbers of 8 written
@op(
    "matrix_rank",
    signature="Tensor input",
    example=Example((_TALL,), bytes=160, mod="torch.linalg"),
)
# 36 read, 36 written of 4 bytes
@op(*("pinverse", "pinv"), signature="Tensor input", example=Example((_TALL,), bytes=288))
@op(
    *("matrix_exp", "matrix_sqrth"),
    signature="Tensor input",
    example=Example((_SQUARE,), bytes=576),  # the norm decides the polynomial's degree
)
def of_a_spectrum(a: Args) -> Work:
    """What is computed from singular values or eigenvalues."""
    x = a.tensor("input")
    lead, short = x.shape[:-2], sides(x)[1]
    out = _values(x, ())
    if a.op in ("svdvals", "eigvalsh"):
        out = _values(x, (short,))
    elif "eigvals" in a.op:
        out = fresh((*lead, short), dtypes.complex_of(x.dtype))
    elif a.op == "matrix_rank":
        out = fresh(lead, "int64")
    elif a.op in ("pinv", "pinverse", "matrix_exp", "matrix_sqrth"):
        out = like(x, (*lead, size(x, -1), size(x, -2)))
    return Work(None, (x,), (out,), no_flops=_WHY)


# times the cube of the side
_CUBES = {
    "cholesky": 4,  # L^H go, and a triangular solve from either side
    "cholesky_ex": 4,
    "inverse": 4,  # the inverse from both sides
    "inv": 4,
    "inv_ex": 4,
    "eigh": 6,  # V^H go, and V from both sides
    "_linalg_eigh": 6,
}


# 2 matrices: 4 * 216 each; go and the result read, the gradient written: 3 * 72 of 4 bytes
@op(
    *_CUBES,
    direction=BPROP,
    signature="Tensor input",
    example=Example((_SQUARE,), flops=1728, bytes=864),
)
def factorisation_backward(a: Args) -> Work:
    """`_CUBES` times the cube of the side, from the result and its gradient."""
    x = a.tensor("input")
    n, count = square(x)
    values = (like(x, x.shape[:-1]),) * 2 if "eigh" in a.op else ()
    reads = (like(x), like(x), *values)
    return Work(real_operations(x) * count * _CUBES[a.op] * n**3, reads, (like(x),))


# 2 matrices: two triangular solves with 6 right-hand sides, 2 * 216; L and U 72 and go 2 read,
# the gradient 72 written of 4 bytes
@op(
    *("det", "slogdet", "logdet", "_linalg_det", "_linalg_slogdet"),
    direction=BPROP,
    signature="Tensor input",
    example=Example((_SQUARE,), flops=864, bytes=584),
)
def determinant_backward(a: Args) -> Work:
    """The transposed inverse times the determinant: L and U are solved for the unit matrix."""
    x = a.tensor("input")
    n, count = square(x)
    reads = (like(x), like(x, x.shape[:-2]))
    return Work(real_operations(x) * count * 2 * n**3, reads, (like(x),))


# both factors solved for 4 right-hand sides of 2 matrices, 2 * 36 * 8, and gB X^H, 2 * 36 * 8;
# go 48, X 48 and L and U 72 read, 72 and 48 written of 4 bytes
@op(*("solve", "solve_ex", "_linalg_solve_ex"), direction=BPROP, flops=1152, bytes=1152)
# one factor: 36 * 8 and the product 2 * 36 * 8
@op("solve_triangular", direction=BPROP, flops=864, bytes=1152)
@op(*("triangular_solve", "cholesky_solve"), direction=BPROP, flops=864, bytes=1152)
# and from gB X^H on to the factors: solved with U and with L, times U, 2 * 4 * 216
@op(*("aten::linalg_lu_solve", "torch.linalg.lu_solve"), direction=BPROP, flops=2880, bytes=1152)
def solve_backward(a: Args) -> Work:
    """The right-hand side's gradient solves with the transpose; the matrix's is its product.

    That of a factor is the matrix's times the factor, and for LU solved with both.
    """
    x, right = a.tensor("input"), a.tensor("other")
    n, count = square(x)
    factors = 1 if "triangular" in a.op else 2
    cubes = {"lu_solve": 4, "cholesky_solve": 2}.get(a.op, 0) * count * n**3
    flops = real_operations(x) * ((factors + 2) * n * n * columns(right, x) + cubes)
    return Work(flops, (like(right), like(right), like(x)), (like(x), like(right)))


# 2 matrices: R gR^H 2 * 216, Q^H gQ and Q times the difference 4 * 216, solved with R 216: 7 * 216;
# gradients and results 4 * 72 read, 72 written of 4 bytes
@op(
    "qr",
    direction=BPROP,
    signature="Tensor input",
    example=Example((_SQUARE,), flops=3024, bytes=1440),
)
def qr_backward(a: Args) -> Work:
    """Products of the shorter side's size and of both sides', and a triangular solve."""
    x = a.tensor("input")
    long, short, count = sides(x)
    q, r = (*x.shape[:-1], short), (*x.shape[:-2], short, size(x, -1))
    each = 2 * short**3 + 5 * long * short**2
    reads = (like(x, q), like(x, q), like(x, r), like(x, r))
    return Work(real_operations(x) * count * each, reads, (like(x),))
