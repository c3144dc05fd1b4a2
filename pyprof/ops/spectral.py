"""Eigenvalues, singular values and what torch computes by them.

They iterate until they have converged, by an algorithm that the library chooses: the arguments do
not tell how many operations. Bytes: the matrix read once, what is asked for written once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyprof.marker import Call, Tensor
from pyprof.ops import dtypes
from pyprof.ops.linear_algebra import sides
from pyprof.ops.pointwise_rules import TRANSCENDENTAL
from pyprof.ops.reductions import reduced
from pyprof.ops.registry import op
from pyprof.ops.work import Args, Work, fresh, like, size

if TYPE_CHECKING:
    from collections.abc import Sequence

FAMILY = "linalg"

_TALL = Tensor((2, 6, 3), "float32")
_SQUARE = Tensor((2, 6, 6), "float32")
_WHY = "iterations depend on the data"


def _values(x: Tensor, shape: Sequence[int]) -> Tensor:
    """Describe singular values, or eigenvalues of a symmetric matrix: real numbers."""
    return fresh((*x.shape[:-2], *shape), dtypes.real(x.dtype))


# 36 read; U 36, 3 values and V 9 for each of 2 matrices written: 36 + 6 + 18 of 4 bytes
@op(
    "svd",
    signature="Tensor input, bool full_matrices",
    example=Call("torch.linalg", "svd", (_TALL, False)),
    bytes=384,
)
@op(
    "torch.svd",
    signature="Tensor input, bool some, bool compute_uv",
    example=Call("torch", "svd", (_TALL,)),
    bytes=384,
)
@op(
    "aten::_linalg_svd",
    signature="Tensor input, bool full_matrices, bool compute_uv",
    example=Call("aten", "_linalg_svd", (_TALL, False, True)),
    bytes=384,
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
    example=Call("torch.linalg", "eigh", (_SQUARE,)),
    bytes=624,
)
@op(
    "aten::_linalg_eigh",
    signature="Tensor input, any uplo, bool vectors",
    example=Call("aten", "_linalg_eigh", (_SQUARE, "L", True)),
    bytes=624,
)
# the same in complex numbers of 8 bytes: 288 + 8 * 84
@op("eig", signature="Tensor input", example=Call("torch.linalg", "eig", (_SQUARE,)), bytes=960)
def eigenvectors(a: Args) -> Work:
    """Values and vectors: real ones of a symmetric matrix, complex ones of any other."""
    x = a.tensor("input")
    values, vectors = _values(x, (size(x, -1),)), like(x)
    if a.op == "eig":
        values, vectors = (fresh(t.shape, dtypes.complex_of(t.dtype)) for t in (values, vectors))
    kept = (vectors,) if a.flag("vectors", default=True) else ()
    return Work(None, (x,), (values, *kept), no_flops=_WHY)


# 36 squares and sums: 36 * 2, a root of 20 for each of 2 matrices; 36 read, 2 written of 4 bytes
@op(
    "matrix_norm",
    signature="Tensor input, any ord, int[] dim, bool keepdim",
    example=Call("torch.linalg", "matrix_norm", (_TALL,)),
    flops=112,
    bytes=152,
)
def matrix_norm(a: Args) -> Work:
    """The squares' or a row's sum; by singular values those of order 2 and the nuclear one."""
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
    example=Call("torch.linalg", "svdvals", (_TALL,)),
    bytes=168,
)
# 72 read of 4 bytes, 2 * 6 values of 8 written
@op(
    *("eigvals", "_linalg_eigvals"),
    signature="Tensor input",
    example=Call("torch.linalg", "eigvals", (_SQUARE,)),
    bytes=384,
)
# 36 read, one number for each of 2 matrices written of 4 bytes
@op(
    *("cond", "nuclear_norm"),
    signature="Tensor input",
    example=Call("torch.linalg", "cond", (_TALL,)),
    bytes=152,
)
# 36 read of 4 bytes, 2 whole numbers of 8 written
@op(
    "matrix_rank",
    signature="Tensor input",
    example=Call("torch.linalg", "matrix_rank", (_TALL,)),
    bytes=160,
)
# 36 read, 36 written of 4 bytes
@op(
    *("pinv", "pinverse"),
    signature="Tensor input",
    example=Call("torch", "pinverse", (_TALL,)),
    bytes=288,
)
@op(
    "matrix_exp",
    signature="Tensor input",
    example=Call("torch", "matrix_exp", (_SQUARE,)),  # the norm decides the polynomial's degree
    bytes=576,
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
    elif a.op in ("pinv", "pinverse", "matrix_exp"):
        out = like(x, (*lead, size(x, -1), size(x, -2)))
    return Work(None, (x,), (out,), no_flops=_WHY)
