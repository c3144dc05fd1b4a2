"""Matrix products whose weight is packed: int8, int4, two of each four numbers kept.

2 M N K as in `gemm`, of a dense product; the weight is read at its packed size, with its scales or
with the places of what was kept.
"""

from __future__ import annotations

from dataclasses import replace

from pyprof.marker import Call, Tensor
from pyprof.ops.gemm import product
from pyprof.ops.registry import op
from pyprof.ops.work import Args, Work, fresh, like, size

FAMILY = "gemm"

_TOKENS = Tensor((4, 6), "bfloat16")


# weight of 5 rows of 6 bytes: 2 * 4 * 6 * 5; 24 of 2 bytes, 30 of 1, scales 5 of 2, out 20 of 2
@op(
    *("_weight_int8pack_mm",),
    signature="Tensor input, Tensor mat2, Tensor scales",
    example=Call(
        "aten",
        "_weight_int8pack_mm",
        (Tensor((4, 6), "bfloat16"), Tensor((5, 6), "int8"), Tensor((5,), "bfloat16")),
    ),
    flops=240,
    bytes=128,
)
def int8_weight_mm(a: Args) -> Work:
    """Activations times an int8 weight that lies transposed."""
    x, w = a.tensor("input"), a.tensor("mat2")
    n, k = size(w, 0), size(w, 1)
    out = like(x, (*x.shape[:-1], n))
    work = product(x, w, out, x.numel // max(1, k), n, k)
    return replace(work, reads=(*work.reads, a.tensor("scales")))


# 2 * 16 * 64 * 8; x 1024 of 2 bytes, 8 * 64 weights of half a byte, 2 groups of 32 * 8 * 2 scales
# and zeros of 2, out 128 of 2: 2048 + 256 + 64 + 256
@op(
    *("_weight_int4pack_mm", "_weight_int4pack_mm_for_cpu"),
    signature="Tensor input, Tensor mat2, int group, Tensor scales",
    example=Call(
        "aten",
        "_weight_int4pack_mm",
        (
            *(Tensor((16, 64), "bfloat16"), Tensor((1, 2, 32, 1), "int32"), 32),
            Tensor((2, 8, 2), "bfloat16"),
        ),
    ),
    flops=16384,
    bytes=2624,
)
def int4_weight_mm(a: Args) -> Work:
    """Activations times a packed int4 weight; the scales tell how many rows it has."""
    x, w, scales = a.tensor("input"), a.tensor("mat2"), a.tensor("scales")
    n, k = size(scales, -2), size(x, -1)
    out = like(x, (*x.shape[:-1], n))
    work = product(x, w, out, x.numel // max(1, k), n, k)
    packed = fresh((n * k // 2,), "uint8")
    return replace(work, reads=(x, packed, scales))


# 2 * 4 * 6 * 5 as though dense; 24, a weight of 5 * 3 and the result's 20 of 2 bytes, and which two
# of four the 15 are, 5 * 3 numbers of one
@op(
    "_sparse_semi_structured_linear",
    signature="Tensor input, Tensor mat2, Tensor meta, *, Tensor? bias",
    example=Call(
        "aten",
        "_sparse_semi_structured_linear",
        (_TOKENS, Tensor((5, 3), "bfloat16"), Tensor((5, 3), "uint8")),
    ),
    flops=240,
    bytes=133,
)
def sparse_linear(a: Args) -> Work:
    """A weight of which two of each four are kept; the product counts as a dense one."""
    x, w = a.tensor("input"), a.tensor("mat2")
    n, k = size(w, 0), size(x, -1)
    out = like(x, (*x.shape[:-1], n))
    work = product(x, w, out, x.numel // max(1, k), n, k)
    return replace(work, reads=(*work.reads, a.tensor("meta"), *a.present("bias")))


# the sparse one first: 2 * 5 * 4 * 6; 15, 24 and 20 of 2 bytes and the 15 places
@op(
    "_sparse_semi_structured_mm",
    signature="Tensor mat1, Tensor meta, Tensor mat2",
    example=Call(
        "aten",
        "_sparse_semi_structured_mm",
        (Tensor((5, 3), "bfloat16"), Tensor((5, 3), "uint8"), Tensor((6, 4), "bfloat16")),
    ),
    flops=240,
    bytes=133,
)
# and 20 of 2 bytes added
@op(
    "_sparse_semi_structured_addmm",
    signature="Tensor bias, Tensor mat1, Tensor meta, Tensor mat2",
    example=Call(
        "aten",
        "_sparse_semi_structured_addmm",
        (
            *(Tensor((5, 4), "bfloat16"), Tensor((5, 3), "bfloat16"), Tensor((5, 3), "uint8")),
            Tensor((6, 4), "bfloat16"),
        ),
    ),
    flops=240,
    bytes=173,
)
def sparse_mm(a: Args) -> Work:
    """As above, as a matrix product."""
    sparse, dense = a.tensor("mat1"), a.tensor("mat2")
    m, k, n = size(sparse, 0), size(dense, 0), size(dense, -1)
    work = product(sparse, dense, like(dense, (m, n)), m, n, k)
    return replace(work, reads=(*work.reads, a.tensor("meta"), *a.present("bias")))
