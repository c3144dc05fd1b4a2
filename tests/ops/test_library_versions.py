"""Library ops whose arguments differ between versions or between similar ops.

Each call is laid out as the library's own schema says; its cost is that of a plain op which does
the same.
"""

from dataclasses import replace

import pytest

from pyprof import ops
from pyprof.marker import Call, Tensor, Value
from pyprof.ops.examples import bf16, f8, f32, i8, i32, i64, u8
from tests.known import known

B, S, H, D = 2, 8, 4, 16
DENSE = bf16(B, S, H, D)
PACKED, STARTS = bf16(B * S, H, D), i32(B + 1)
LSE, SEED = f32(H, B * S), i64(2)
FULL = B * H * S * S * 2 * (D + D)

X, W, OUT = (Tensor(shape, "bfloat16") for shape in ((4, 6), (5, 6), (4, 5)))
X8, W8 = f8(4, 6), f8(5, 6)
X4, W4 = u8(4, 32), u8(5, 32)
ROWS, COLUMNS = f32(4, 1), f32(5, 1)
BIAS = bf16(5)

NEW_CUTLASS = (*(DENSE,) * 3, *(None,) * 5, 0.0, 1, False, None, None, None)
OLD_CUTLASS = (*(DENSE,) * 3, *(None,) * 4, 0.0, True, 1, None, None, None)


@pytest.mark.parametrize(
    "args",
    [
        NEW_CUTLASS,
        OLD_CUTLASS,
        (*(DENSE,) * 3, None, None, None, True, True),
        (*(DENSE,) * 3, True, True),
    ],
)
def test_xformers_efficient_kernel_in_each_version(args: tuple[Value, ...]) -> None:
    """Each has its causal flag at another position: it halves the products."""
    call = Call("xformers", "efficient_attention_forward_cutlass", args)
    assert (ops.cost(call).flops, ops.cost(call).bytes) == (FULL // 2, 8192)


@pytest.mark.parametrize("args", [NEW_CUTLASS, OLD_CUTLASS])
def test_xformers_efficient_kernel_without_a_mask(args: tuple[Value, ...]) -> None:
    """A flag to keep the sums is not a mask; lengths on the GPU leave the products unknown."""
    call = Call("xformers", "efficient_attention_forward_cutlass", args)
    assert ops.cost(replace(call, args=(*args[:9], 0, *args[10:]))).flops == FULL
    assert ops.cost(replace(call, args=(*args[:-2], STARTS, None))).flops is None


GRADS = (PACKED, PACKED, PACKED, PACKED, PACKED, LSE)
GIVEN = (PACKED, PACKED, PACKED)
LENGTHS = (STARTS, STARTS, S, S, 0.0, 0.25)


@pytest.mark.parametrize(
    "args",
    [
        (*GRADS, *GIVEN, *LENGTHS, True, SEED),
        (*GRADS, *GIVEN, *LENGTHS, True, 0, SEED),
        (*GRADS, *GIVEN, *LENGTHS, True, -1, -1, SEED),
        (False, *GRADS, *LENGTHS, True, -1, -1, SEED),
        (True, *GRADS, *LENGTHS, True, -1, -1, SEED, False),
    ],
)
def test_xformers_flash_backward_in_each_version(args: tuple[Value, ...]) -> None:
    """Gradients were arguments at first; now a flag says how they are stored."""
    plain = Call(
        "flash_attn", "_flash_attn_varlen_backward", (*GRADS, *GIVEN, *LENGTHS, True, -1, -1)
    )
    found, expected = ops.cost(Call("xformers_flash", "flash_bwd", args)), ops.cost(plain)
    assert (found.flops, found.bytes) == (known(expected.flops), expected.bytes)


@pytest.mark.parametrize(
    "rest", [(True, False), (True, 0, False), (True, -1, -1, False), (True, -1, -1, False, None)]
)
def test_xformers_flash_in_each_version(rest: tuple[Value, ...]) -> None:
    """A window was added, then how many keys are used, then pages."""
    used = (None,) if len(rest) > 3 else ()
    args = (*GIVEN, STARTS, STARTS, *used, S, S, 0.0, 0.25, *rest)
    found = ops.cost(Call("xformers_flash", "flash_fwd", args))
    assert (found.flops, found.bytes) == (FULL // 2, 8192)


@pytest.mark.parametrize(
    ("op", "args", "moved"),
    [
        ("gemm_a16w16_atomic_", (X, W, 6, f32(4, 5), None), 48 + 60 + 80),
        ("gemm_a16w16_atomic_", (X, W, 6, None, None), 48 + 60 + 80),
        ("gemm_a16w16_asm", (X, W, OUT, BIAS, None, ""), 48 + 60 + 40 + 10),
        ("_gemm_a16w16_asm", (X, W, OUT, SEED, BIAS, None, "", False), 48 + 60 + 40 + 10),
        ("_gemm_a16w16_asm", (X, W, OUT, SEED, SEED, BIAS, 1, "", False), 48 + 60 + 40 + 10),
        ("gemm_a8w8_bpreshuffle", (X8, W8, ROWS, COLUMNS, BIAS, 6, False), 54 + 36 + 80 + 10),
        ("_flatmm_a8w8_blockscale_asm", (X8, W8, ROWS, COLUMNS, OUT), 54 + 36 + 40),
    ],
)
def test_aiters_products(op: str, args: tuple[Value, ...], moved: int) -> None:
    """Bias, type and result differ in position; the result's type is the stated one."""
    found = ops.cost(Call("aiter", op, args))
    assert (found.flops, found.bytes) == (2 * 4 * 5 * 6, moved)


@pytest.mark.parametrize(
    ("op", "rest", "moved"),
    [
        ("gemm_afp4wfp4_", (6, f32(4, 5), None, False), 80),
        ("gemm_afp4wfp4_", (6, None, None, False), 80),
        ("gemm_a4w4", (f32(1, 5), 15, 1.0, 0.0, True), 40 + 20),
        ("gemm_a4w4", (OUT, f32(1, 5), 1.0, 0.0, True), 40 + 20),
        ("gemm_a4w4", (OUT, None, 1.0, 0.0, True), 40),
        ("gemm_a4w4", (None, 15, 1.0, 0.0, True), 40),
    ],
)
def test_a_product_of_fp4_moves_its_result_and_bias_once(
    op: str, rest: tuple[Value, ...], moved: int
) -> None:
    """A bias is not a result, a type no bias."""
    scales = (u8(4, 2), u8(5, 2))
    found = ops.cost(Call("aiter", op, (X4, W4, *scales, *rest)))
    assert (found.flops, found.bytes) == (2 * 4 * 5 * 64, 128 + 160 + 18 + moved)


def test_aiters_first_stage_of_experts_reads_its_scales() -> None:
    """Its inner size is where other ops have the experts per token."""
    tokens, inner = f8(4, 6), bf16(4, 2, 5)
    up, down = f8(8, 10, 6), f8(8, 6, 5)
    order = i32(8)
    head = (tokens, up, down, order, order, i32(1), inner)
    scales = (f32(4, 1), f32(8, 1))
    own = Call("aiter", "moe_stage1_g1u1", (*head, 5, "", 32, 0, 0, 2, *scales, None))
    other = Call("aiter", "ck_moe_stage1", (*head, 2, "", *reversed(scales), 32, None, 2, 0))
    assert (ops.cost(own).flops, ops.cost(own).bytes) == (960, 24 + 480 + 48 + 80)
    assert ops.cost(other) == replace(ops.cost(own), params=ops.cost(other).params)


@pytest.mark.parametrize(("mod", "front"), [("aiter", (f32(1), 140)), ("sgl_kernel", (140, 1))])
def test_a_quick_reduction_has_two_arguments_before_its_tensors(
    mod: str, front: tuple[Value, ...]
) -> None:
    """An empty tensor and a handle, or a handle and a profile."""
    x = f32(4, 6)
    found = ops.cost(Call(mod, "qr_all_reduce", (*front, x, x, 0, False)))
    assert found.bytes == ops.cost(Call("_C_custom_ar", "qr_all_reduce", (140, x, x, 0))).bytes


def test_int8_product_into_a_given_result() -> None:
    """The result is written and not read, as a bias would be."""
    x, w = i8(4, 6), i8(5, 6)
    for given in ((), (i32(4, 5),)):
        found = ops.cost(Call("bitsandbytes", "int8_linear_matmul", (x, w, *given)))
        assert found.bytes == 24 + 30 + 80
