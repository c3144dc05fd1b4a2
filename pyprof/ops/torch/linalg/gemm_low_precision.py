"""Matrix products of low precision and of groups: packed weights, FP8, two of four numbers kept.

2 M N K as in `gemm`, for a dense product; a packed weight is read at its packed size, with the
positions of the kept elements. Scales are read, but multiplying by them is not counted, as
torch.utils.flop_counter does not either.
"""

from dataclasses import replace

from pyprof.marker import Opaque, Tensor
from pyprof.ops.examples import Example, bf16, f8, f32, i8, i32, u8
from pyprof.ops.registry import BPROP, op
from pyprof.ops.torch.linalg.gemm import gradients_of, product
from pyprof.ops.work import Args, Work, fresh, has_rank, like, require, row_count, size

FAMILY = "gemm"


def rows_times(x: Tensor, weight: Tensor, n: int, *others: Tensor) -> Work:
    """Return the work of all rows of `x` times a weight of N outputs; others are read with it."""
    out = like(x, (*x.shape[:-1], n))
    work = product(x, weight, out, row_count(x), n, size(x, -1))
    return replace(work, reads=work.reads + others)


# weight of 5 rows of 6 bytes: 2 * 4 * 6 * 5; 24 of 2 bytes, 30 of 1, scales 5 of 2, out 20 of 2
@op(
    "_weight_int8pack_mm",
    signature="Tensor input, Tensor mat2, Tensor scales",
    example=Example((bf16(4, 6), i8(5, 6), bf16(5)), flops=240, bytes=128, mod="aten"),
)
# 2 * 4 * 6 * 5 as if dense; 24, a weight of 5 * 3 and the result's 20 of 2 bytes, and which two
# of four the 15 are, 5 * 3 numbers of one
@op(
    "_sparse_semi_structured_linear",
    signature="Tensor input, Tensor mat2, Tensor meta, *, Tensor? bias",
    example=Example((bf16(4, 6), bf16(5, 3), u8(5, 3)), flops=240, bytes=133, mod="aten"),
)
def transposed_weight_mm(a: Args) -> Work:
    """Activations times a weight [N, K] of int8, or with two of each four numbers kept.

    The latter counts as a dense one.
    """
    w = a.tensor("mat2")
    return rows_times(a.tensor("input"), w, size(w, 0), *a.present("scales", "meta", "bias"))


# 2 * 16 * 64 * 8; x 1024 of 2 bytes, 8 * 64 weights of half a byte, 2 groups of 32 * 8 * 2 scales
# and zeros of 2, out 128 of 2: 2048 + 256 + 64 + 256
@op(
    *("_weight_int4pack_mm", "_weight_int4pack_mm_for_cpu"),
    signature="Tensor input, Tensor mat2, int group, Tensor scales",
    example=Example(
        (bf16(16, 64), i32(1, 2, 32, 1), 32, bf16(2, 8, 2)), flops=16384, bytes=2624, mod="aten"
    ),
)
def int4_weight_mm(a: Args) -> Work:
    """Activations times a packed int4 weight; its number of rows follows from the scales."""
    x, scales = a.tensor("input"), a.tensor("scales")
    n, k = size(scales, -2), size(x, -1)
    packed = fresh((n * k // 2,), "uint8")
    return rows_times(x, packed, n, scales)


# the sparse one first: 2 * 5 * 4 * 6; 15, 24 and 20 of 2 bytes and the 15 indices
@op(
    "_sparse_semi_structured_mm",
    signature="Tensor mat1, Tensor meta, Tensor mat2",
    example=Example((bf16(5, 3), u8(5, 3), bf16(6, 4)), flops=240, bytes=133, mod="aten"),
)
# and 20 of 2 bytes added
@op(
    "_sparse_semi_structured_addmm",
    signature="Tensor bias, Tensor mat1, Tensor meta, Tensor mat2",
    example=Example(
        (bf16(5, 4), bf16(5, 3), u8(5, 3), bf16(6, 4)), flops=240, bytes=173, mod="aten"
    ),
)
def sparse_mm(a: Args) -> Work:
    """A matrix with two of each four numbers kept times a dense one, counted as if both were."""
    sparse, dense = a.tensor("mat1"), a.tensor("mat2")
    m, k, n = size(sparse, 0), size(dense, 0), size(dense, -1)
    work = product(sparse, dense, like(dense, (m, n)), m, n, k)
    return replace(work, reads=(*work.reads, a.tensor("meta"), *a.present("bias")))


_A = f8(4, 6)
_B = f8(6, 5)
_ONE = f32(1)
_GEMM_SCALED_TOKENS = bf16(8, 6)
_EXPERTS = bf16(2, 6, 5)
_ENDS = i32(2)
_SCALED = (
    "Tensor mat_a, Tensor mat_b, Tensor[] scale_a, any recipe_a, Tensor[] scale_b, any recipe_b,"
    "any swizzle_a, any swizzle_b"
)


def _factors(a: Args) -> tuple[Tensor, Tensor]:
    """Return both matrices: `mat_a` and `mat_b` of torch.nn.functional, or ATen's."""
    names = ("mat_a", "mat_b") if "mat_a" in a.values else ("input", "mat2")
    return a.tensor(names[0]), a.tensor(names[1])


def _out_dtype(a: Args, first: Tensor) -> str | None:
    if "output_dtype" in a.values:
        return (a.dtype("output_dtype") or "bfloat16") if a.known("output_dtype") else None
    return (a.dtype("out_dtype") or first.dtype) if a.known("out_dtype") else None


def read_tensors(a: Args, *names: str) -> tuple[Tensor, ...]:
    """Return the tensors among these arguments, each of them one, a list, or not given."""
    operands: list[Tensor] = []
    for name in names:
        value = a.values.get(name)
        operands += [
            item
            for item in (value if isinstance(value, tuple) else (value,))
            if isinstance(item, Tensor)
        ]
    return tuple(operands)


# 2 * 4 * 6 * 5 = 240; 24 + 30 of 1 byte, two scales of 4, out 20 of 2: 54 + 8 + 40
@op(
    "_scaled_mm",
    signature=(
        "Tensor input, Tensor mat2, Tensor scale_a, Tensor scale_b, Tensor? bias,"
        "Tensor? scale_result, dtype out_dtype, bool use_fast_accum"
    ),
    example=Example((_A, _B, _ONE, _ONE, None, None, 15, False), flops=240, bytes=102, mod="aten"),
)
@op(
    "_scaled_mm_v2",
    signature=(
        "Tensor input, Tensor mat2, Tensor[] scale_a, any recipe_a, any swizzle_a,"
        "Tensor[] scale_b, any recipe_b, any swizzle_b, Tensor? bias, dtype out_dtype"
    ),
    example=Example(
        (_A, _B, (_ONE,), (0,), (0,), (_ONE,), (0,), (0,), None, 15),
        flops=240,
        bytes=102,
        mod="aten",
    ),
)
@op(
    "torch.nn.functional.scaled_mm",
    signature=f"{_SCALED}, Tensor? bias, dtype output_dtype",
    example=Example((_A, _B, _ONE, Opaque("enum"), _ONE, Opaque("enum")), flops=240, bytes=102),
)
def scaled_mm(a: Args) -> Work:
    """A product of FP8 or FP4 matrices with their scales; FP4 packs two numbers in an element."""
    first, second = _factors(a)
    require(has_rank(first, 2) and has_rank(second, 2))
    m, k, n = first.shape[0], first.shape[1], second.shape[1]
    require(second.shape[0] == k)
    k *= 2 if first.dtype == "float4_e2m1fn_x2" else 1
    out = fresh((m, n), _out_dtype(a, first))
    work = product(first, second, out, m, n, k)
    return replace(work, reads=work.reads + read_tensors(a, "scale_a", "scale_b", "bias"))


# 8 tokens, each through one of two experts: 2 * 8 * 6 * 5 = 480; 48 + 60 + out 40 of 2 bytes,
# ends 2 of 4
@op(
    *("_grouped_mm", "grouped_mm"),
    signature="Tensor input, Tensor mat2, Tensor? offs, Tensor? bias, dtype out_dtype",
    example=Example((_GEMM_SCALED_TOKENS, _EXPERTS), flops=480, bytes=304, kwargs={"offs": _ENDS}),
)
@op(
    *("_scaled_grouped_mm", "scaled_grouped_mm"),
    signature=(
        "Tensor input, Tensor mat2, Tensor scale_a, Tensor scale_b, Tensor? offs, Tensor? bias,"
        "Tensor? scale_result, dtype out_dtype"
    ),
    # the same with 48 + 60 of 1 byte, two scales of 4 and the result in 2 bytes: 204
    example=Example(
        (f8(8, 6), f8(2, 6, 5), _ONE, _ONE, _ENDS, None, None, 15), flops=480, bytes=204, mod="aten"
    ),
)
@op(
    "_scaled_grouped_mm_v2",
    signature=(
        "Tensor input, Tensor mat2, Tensor[] scale_a, any recipe_a, any swizzle_a,"
        "Tensor[] scale_b, any recipe_b, any swizzle_b, Tensor? offs, Tensor? bias, dtype out_dtype"
    ),
    example=Example(
        (f8(8, 6), f8(2, 6, 5), (_ONE,), (0,), (0,), (_ONE,), (0,), (0,), _ENDS, None, 15),
        flops=480,
        bytes=204,
        mod="aten",
    ),
)
@op(
    "torch.nn.functional.scaled_grouped_mm",
    signature=f"{_SCALED}, Tensor? bias, Tensor? offs, dtype output_dtype",
    example=Example(
        (f8(8, 6), f8(2, 6, 5), _ONE, Opaque("enum"), _ONE, Opaque("enum")),
        flops=480,
        bytes=204,
        kwargs={"offs": _ENDS},
    ),
)
@op(
    "torch.nn.functional.grouped_mm",
    signature="Tensor mat_a, Tensor mat_b, *, Tensor? offs, Tensor? bias, dtype out_dtype",
    example=Example(
        flops=480,
        bytes=304,
        kwargs={"mat_a": _GEMM_SCALED_TOKENS, "mat_b": _EXPERTS, "offs": _ENDS},
    ),
)
def grouped_mm(a: Args) -> Work:
    """A product for each group; where the groups end does not change the sum of the work."""
    first, second = _factors(a)
    m, k, n = size(first, -2), size(first, -1), size(second, -1)
    groups = 1
    shape: tuple[int, ...] = (m, n)
    if has_rank(first, 3) and has_rank(second, 3):
        groups = first.shape[0]
        shape = (groups, m, n)
    elif not has_rank(first, 3) and has_rank(second, 2):  # the inner dimension is divided
        offs = a.present("offs")
        require(offs)
        shape = (size(offs[0], 0), m, n)
    require(size(second, -2) == k)
    work = product(first, second, fresh((m, n), None), m, n, k)
    out = fresh(shape, _out_dtype(a, first))
    extra = read_tensors(a, "scale_a", "scale_b", "offs", "bias")
    return Work(groups * (work.flops or 0), work.reads + extra, (out,), work.params)


# both factors' gradients, 480 each; go 40 + experts 60 + 48, go 40 + tokens 48 + 60: 296 of 2 bytes
op(*("_grouped_mm", "grouped_mm"), direction=BPROP, flops=960, bytes=592)(gradients_of(grouped_mm))
op("torch.nn.functional.grouped_mm", direction=BPROP, flops=960, bytes=592)(
    gradients_of(grouped_mm)
)
