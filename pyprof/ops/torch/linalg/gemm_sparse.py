"""Matrix products with a sparse factor: COO, CSR, CSC, BSR, BSC.

A multiply-add for each stored number of the sparse factor and each column (or row) of the other.
Bytes: the stored numbers and their indices, the rows of the dense factor that they can ask for
(at most all), an addend, the result. Where how many are stored was not recorded, nothing is known:
what the shapes tell is the cost of the dense product. Weights of which two of four are kept are
another matter: see `gemm_packed`.
"""

from __future__ import annotations

from dataclasses import replace

from pyprof.marker import Tensor
from pyprof.ops.examples import Example, f32
from pyprof.ops.registry import SPARSE, op
from pyprof.ops.signature import Unknown
from pyprof.ops.torch.linalg.gemm import added, factors, matmul_work, multiply_adds
from pyprof.ops.work import NOT_STORED, Args, Work, like

FAMILY = "gemm"

_COO = Tensor((40, 60), "float32", subclass="sparse_coo", nnz=10, nbytes=10 * (4 + 2 * 8))
_DENSE = f32(60, 5)
_OUT = f32(40, 5)
_SAMPLED = Tensor((40, 5), "float32", subclass="sparse_csr", nnz=10, nbytes=10 * 12 + 41 * 8)


# 2 * 10 stored * 5 columns; 200 of the sparse factor, 10 rows of 5 and 40 * 5 of 4 bytes
@op(
    *("mm", "matmul", "bmm", "mv", "smm", "hspmm", "torch.sparse.mm", "_sparse_mm"),
    direction=SPARSE,
    signature=(
        "Tensor input, Tensor mat2",
        "Tensor input, Tensor other",
        "Tensor input, Tensor vec",
    ),
    example=Example((_COO, _DENSE), flops=100, bytes=1200),
)
def sparse_matmul(a: Args) -> Work:
    """One factor sparse, the result dense."""
    return _product(*factors(a))


# the same, and 200 of 4 bytes added
@op(
    *("addmm", "addmv", "torch.sparse.addmm", "_sparse_addmm"),
    direction=SPARSE,
    signature=(
        "Tensor input, Tensor first, Tensor second, *, float beta, float alpha",
        "float beta, Tensor input, float alpha, Tensor first, Tensor second",
        "float beta, Tensor input, Tensor first, Tensor second",
    ),
    example=Example((_OUT, _COO, _DENSE), flops=100, bytes=2000, kwargs={"beta": 1}),
)
def sparse_addmm(a: Args) -> Work:
    """The same, added to a dense matrix."""
    return added(_product(a.tensor("first"), a.tensor("second")), a, "input")


# 2 * 10 places * 60; 448 of the sparse one read and written, 40 * 60 and 60 * 5 of 4 bytes
@op(
    *("sparse_sampled_addmm", "sampled_addmm", "torch.sparse.sampled_addmm"),
    direction=SPARSE,
    signature="Tensor input, Tensor first, Tensor second, *, float beta, float alpha",
    example=Example((_SAMPLED, f32(40, 60), _DENSE, 1.0, 1.0), flops=1200, bytes=11696, mod="aten"),
)
def sampled_addmm(a: Args) -> Work:
    """The elements of a dense product at the places that the sparse addend stores."""
    where, first = a.tensor("input"), a.tensor("first")
    second = a.tensor("second")
    if where.nnz is None:
        raise Unknown(NOT_STORED)
    params = matmul_work(first, second).params  # checks the shapes
    flops = multiply_adds(first.dtype) * where.nnz * first.shape[-1]
    return Work(flops, (where, first, second), (where,), {**params, "nnz": where.nnz})


def _product(first: Tensor, second: Tensor) -> Work:
    dense = matmul_work(first, second)  # checks the shapes
    if first.sparse and second.sparse:
        raise Unknown("sparse: how many elements the result stores depends on the data")
    few, other, side = (first, second, -1) if first.sparse else (second, first, -2)
    if few.nnz is None:
        raise Unknown(NOT_STORED)
    each = other.shape[side] if len(other.shape) > 1 else 1
    read = like(other, (min(other.numel, few.nnz * each),))
    flops = multiply_adds(first.dtype) * few.nnz * each
    return replace(dense, flops=flops, reads=(few, read), params={**dense.params, "nnz": few.nnz})


# the name says only that a factor is sparse
@op(
    *("_sparse_mm", "hspmm", "torch.sparse.mm", "smm", "_sparse_sparse_matmul", "sspaddmm"),
    *("torch.sparse.addmm", "_sparse_addmm", "_sparse_mm_reduce_impl", "sampled_addmm"),
    *("sparse_sampled_addmm", "torch.sparse.sampled_addmm"),
    signature="Value[] operands",
    example=Example((_COO, _DENSE), flops=100, bytes=1200, mod="aten"),
)
def told_by_name(a: Args) -> Work:
    """Nothing is known of operands whose layout was not recorded."""
    del a
    raise Unknown(NOT_STORED)
