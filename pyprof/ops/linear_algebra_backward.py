"""The backward passes of factorisations and solvers: products and triangular solves of one size.

As torch computes them (torch/csrc/autograd/FunctionsManual.cpp), 2 n^3 a product and n^2 a
right-hand side of a triangular solve; sums and masks of matrices are not counted. Bytes: the
incoming gradient and what the forward kept read once, the gradient written once.
"""

from __future__ import annotations

from pyprof.marker import Call, Tensor
from pyprof.ops.linear_algebra import real_operations, sides, square
from pyprof.ops.registry import BPROP, op
from pyprof.ops.solvers import columns
from pyprof.ops.work import Args, Work, like, size

FAMILY = "linalg"

_SQUARE = Tensor((2, 6, 6), "float32")

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
    example=Call("torch", "cholesky", (_SQUARE,)),
    flops=1728,
    bytes=864,
)
def factorisation_backward(a: Args) -> Work:
    """So many cubes of the side, from the result and its gradient."""
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
    example=Call("torch", "det", (_SQUARE,)),
    flops=864,
    bytes=584,
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
    example=Call("torch", "qr", (_SQUARE,)),
    flops=3024,
    bytes=1440,
)
def qr_backward(a: Args) -> Work:
    """Products of the shorter side's size and of both sides', and a triangular solve."""
    x = a.tensor("input")
    long, short, count = sides(x)
    q, r = (*x.shape[:-1], short), (*x.shape[:-2], short, size(x, -1))
    each = 2 * short**3 + 5 * long * short**2
    reads = (like(x, q), like(x, q), like(x, r), like(x, r))
    return Work(real_operations(x) * count * each, reads, (like(x),))
