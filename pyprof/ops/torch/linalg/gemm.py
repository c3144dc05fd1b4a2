"""Matrix products: linear, mm, addmm, bmm, baddbmm, matmul, mv, dot and their backward passes.

2 M N K operations a product (a fused multiply-add is two), as torch.utils.flop_counter counts;
adding a bias and scaling by alpha and beta are not counted, as there. A complex multiply-add is
four real ones. Bytes: both factors and a bias read once, the result written once.

With a sparse factor (COO, CSR, CSC, BSR, BSC): a multiply-add for each of its stored numbers and
each column (or row) of the other. Bytes: the stored numbers and their indices, the rows of the
dense factor that the indices can refer to (at most all), an addend, the result. If the number of
stored elements was not recorded, nothing is known: shapes only give the cost of the dense product.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from pyprof.marker import Tensor
from pyprof.ops import dtypes
from pyprof.ops.examples import NN, Example, f16, f32
from pyprof.ops.registry import BPROP, SPARSE, backward_of, op
from pyprof.ops.signature import Unknown
from pyprof.ops.work import NOT_STORED, Args, Work, broadcast, has_rank, like, require, size

if TYPE_CHECKING:
    from collections.abc import Callable


FAMILY = "gemm"

_X = f16(4, 6)
_MAT = f16(6, 5)
_BIAS = f16(5)
_BATCH_A = f32(3, 4, 6)
_BATCH_B = f32(3, 6, 5)


def multiply_adds(dtype: str | None) -> int:
    """Return the operations of one multiply-add: 2, or 8 for complex numbers."""
    return 8 if dtypes.is_complex(dtype) else 2


def product(first: Tensor, second: Tensor, out: Tensor, m: int, n: int, k: int) -> Work:
    """Return the work of [.., M, K] times [.., K, N]; the batch follows from the size of `out`."""
    batch = out.numel // (m * n) if m * n else 0
    params = {"M": m, "N": n, "K": k, "B": batch if batch > 1 else None, "type": first.dtype}
    flops = multiply_adds(first.dtype) * batch * m * n * k
    return Work(flops, (first, second), (out,), params)


def gradients(forward: Work, kernels: int | None) -> Work:
    """Return the work of the gradients of the two factors that the forward product reads first.

    Where the backward launched a single product, only the second factor's gradient was computed
    (the first layer's input needs none).
    """
    out, (first, second) = forward.writes[0], forward.reads[:2]
    grad_first = Work(forward.flops, (out, second), (like(first),), forward.params)
    grad_second = Work(forward.flops, (out, first), (like(second),), forward.params)
    return grad_second if kernels == 1 else grad_first + grad_second


def gradients_of(forward: Callable[[Args], Work]) -> Callable[[Args], Work]:
    """Return the formula of the backward pass of a matrix product: its factors' `gradients`."""

    def formula(a: Args) -> Work:
        """Both factors' gradients; the second's alone if one product was launched."""
        return gradients(forward(a), a.gemm_kernels)

    formula.__module__ = forward.__module__
    return formula


def added(work: Work, a: Args, name: str) -> Work:
    """Add the reading of a bias, unless it is ignored because beta = 0."""
    bias = a.optional(name)
    if bias is None or a.values.get("beta") in (0, 0.0):
        return work
    return replace(work, reads=(*work.reads, bias), added=(bias, *work.writes))


# 2 * (M=5 * N=4 * K=6) = 240; x 4*6 + w 5*6 + bias 5 + out 4*5 = 79 elements of 2 bytes = 158
@op(
    "linear",
    signature="Tensor input, Tensor weight, Tensor? bias",
    example=Example((_X, f16(5, 6)), flops=240, bytes=158, kwargs={"bias": _BIAS}, mod=NN),
)
def linear(a: Args) -> Work:
    """Input times the transposed weight: M features out, N rows, K features in."""
    x, w = a.tensor("input"), a.tensor("weight")
    require(len(w.shape) in (1, 2) and size(x, -1) == w.shape[-1])
    k = w.shape[-1]
    m = w.shape[0] if has_rank(w, 2) else 1
    n = math.prod(x.shape[:-1])
    out = like(x, (*x.shape[:-1], *w.shape[:-1]))
    return added(product(x, w, out, m, n, k), a, "bias")


# dgrad: 2 * N=4 * M=5 * K=6 = 240, wgrad the same = 480.
# dgrad reads go 20 + w 30, writes 24; wgrad reads go 20 + x 24, writes 30; bias reads go 20,
# writes 5: 173 elements of 2 bytes = 346
@backward_of(linear, flops=480, bytes=346)
def linear_backward(a: Args) -> Work:
    """Input's gradient, weight's gradient and the bias's, a sum over rows (no FLOPs counted)."""
    forward = linear(a)
    work = gradients(forward, a.gemm_kernels)
    for bias in a.present("bias"):
        work += Work(0, forward.writes, (like(bias),), added=(*forward.writes, bias))
    return work


# 2 * 3 * 4 * 6 * 5 = 720; (3*4*6 + 3*6*5 + 3*4*5) = 222 elements of 4 bytes = 888
@op(
    *("matmul", "mm", "bmm", "mv", "dot", "vdot", "inner1d", "_int_mm"),
    signature=(
        "Tensor input, Tensor mat2",
        "Tensor input, Tensor other",
        "Tensor input, Tensor vec",
        "Tensor input, Tensor tensor",
    ),
    example=Example((_BATCH_A, _BATCH_B), flops=720, bytes=888),
)
@op(
    "__rmatmul__",
    signature="Tensor other, Tensor input",
    example=Example((_MAT, _X), flops=240, bytes=148, mod="Tensor"),  # x @ mat
)
def matmul(a: Args) -> Work:
    """Matrices, vectors or batches of them, broadcast as torch.matmul does."""
    return matmul_work(*factors(a), integer=a.op == "_int_mm")


# d(A) = go B^T and d(B) = A^T go, 720 each; go 60 + B 90 + dA 72, go 60 + A 72 + dB 90 = 444 * 4
op(*("matmul", "mm", "bmm", "mv", "dot", "vdot"), direction=BPROP, flops=1440, bytes=1776)(
    gradients_of(matmul)
)
op("__rmatmul__", direction=BPROP, flops=480, bytes=296)(gradients_of(matmul))


def factors(a: Args) -> tuple[Tensor, Tensor]:
    """Return the two factors, whatever the second is called."""
    second = next(name for name in ("mat2", "other", "vec", "tensor") if name in a.values)
    return a.tensor("input"), a.tensor(second)


def matmul_work(first: Tensor, second: Tensor, *, integer: bool = False) -> Work:
    """Return the work of a product as torch.matmul takes it. Raises Unknown if shapes misfit."""
    require(first.shape and second.shape)
    left = (1, *first.shape) if len(first.shape) == 1 else first.shape
    right = (*second.shape, 1) if len(second.shape) == 1 else second.shape
    require(left[-1] == right[-2])
    m, k, n = left[-2], left[-1], right[-1]
    shape = broadcast([left[:-2], right[:-2]])
    shape += (m,) * (len(first.shape) > 1) + (n,) * (len(second.shape) > 1)
    out = Tensor(shape, "int32" if integer else first.dtype)
    return product(first, second, out, m, n, k)


_ADDED = (
    "Tensor input, Tensor first, Tensor second, *, float beta, float alpha",
    "float beta, Tensor input, float alpha, Tensor first, Tensor second",
    "float beta, Tensor input, Tensor first, Tensor second",
)


# 2 * 4 * 6 * 5 = 240; bias 5 + 24 + 30 + out 20 = 79 elements of 2 bytes = 158
@op(
    *("addmm", "addmv", "_addmm_activation"),
    signature=_ADDED,
    example=Example((_BIAS, _X, _MAT, 1, 1), flops=240, bytes=158, mod="aten"),
)
# 2 * 3 * 4 * 6 * 5 = 720; 222 elements of the product + 60 added = 282 * 4 = 1128
@op(
    "baddbmm",
    signature=_ADDED,
    example=Example((f32(3, 4, 5), _BATCH_A, _BATCH_B), flops=720, bytes=1128, kwargs={"beta": 1}),
)
def addmm(a: Args) -> Work:
    """A matrix product, or a batch of them, plus what broadcasts to it."""
    return added(matmul_work(a.tensor("first"), a.tensor("second")), a, "input")


# as mm: 2 * 240 = 480; go 20 + 30 + 24 + go 20 + 24 + 30 = 148, the bias's sum go 20 + 5 = 173 * 2
@op(*("addmm", "addmv"), direction=BPROP, flops=480, bytes=346)
# the two products' gradients as for bmm: 1440 and 444 elements * 4 = 1776; the addend's is go
@op("baddbmm", direction=BPROP, flops=1440, bytes=1776)
def addmm_backward(a: Args) -> Work:
    """Both factors' gradients; and the bias's, a sum if it was broadcast (no FLOPs counted)."""
    forward, addend = addmm(a), a.tensor("input")
    work = gradients(forward, a.gemm_kernels)
    out = forward.writes[0]
    if addend.shape != out.shape:
        work += Work(0, (out,), (like(addend),), added=(out, addend))
    return work


# 4 batches summed: 2 * 3 * 4 * 6 * 5 = 720; 72 + 90 + out 20 + addend 20 = 202 * 4 = 808
@op(
    "addbmm",
    signature=_ADDED[0],
    example=Example((f32(4, 5), _BATCH_A, _BATCH_B), flops=720, bytes=808),
)
def addbmm(a: Args) -> Work:
    """A batch of products, summed over the batch."""
    work = matmul_work(a.tensor("first"), a.tensor("second"))
    summed = like(work.writes[0], work.writes[0].shape[-2:])
    return added(replace(work, writes=(summed,)), a, "input")


# 4 * 5 products; 4 + 5 + 20 written = 29 * 2 = 58
@op(
    *("outer", "ger"),
    signature=("Tensor input, Tensor vec2",),
    example=Example((f16(4), f16(5)), flops=20, bytes=58),
)
def outer(a: Args) -> Work:
    """Every element times every other: one multiplication each, nothing added."""
    first, second = a.tensor("input"), a.tensor("vec2")
    out = like(first, (first.numel, second.numel))
    return Work(out.numel, (first, second), (out,))


# --- a sparse factor ----------------------------------------------------------------------------
_COO = Tensor((40, 60), "float32", subclass="sparse_coo", nnz=10, nbytes=10 * (4 + 2 * 8))
_DENSE = f32(60, 5)
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
    signature=_ADDED,
    example=Example((f32(40, 5), _COO, _DENSE), flops=100, bytes=2000, kwargs={"beta": 1}),
)
def sparse_addmm(a: Args) -> Work:
    """The same, added to a dense matrix."""
    return added(_product(a.tensor("first"), a.tensor("second")), a, "input")


# 2 * 10 positions * 60; 448 of the sparse one read and written, 40 * 60 and 60 * 5 of 4 bytes
@op(
    *("sparse_sampled_addmm", "sampled_addmm", "torch.sparse.sampled_addmm"),
    direction=SPARSE,
    signature=_ADDED[0],
    example=Example((_SAMPLED, f32(40, 60), _DENSE, 1.0, 1.0), flops=1200, bytes=11696, mod="aten"),
)
def sampled_addmm(a: Args) -> Work:
    """The elements of a dense product at the positions that the sparse addend stores."""
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


# the name shows only that a factor is sparse
@op(
    *("_sparse_mm", "hspmm", "torch.sparse.mm", "smm", "_sparse_sparse_matmul", "sspaddmm"),
    *("torch.sparse.addmm", "_sparse_addmm", "_sparse_mm_reduce_impl", "sampled_addmm"),
    *("sparse_sampled_addmm", "torch.sparse.sampled_addmm"),
    signature="Value[] operands",
    example=Example((_COO, _DENSE), flops=100, bytes=1200, mod="aten"),
)
def told_by_name(_: Args) -> Work:
    """Sparse by name only: nothing is known, as the layout of its operands was not recorded."""
    raise Unknown(NOT_STORED)
