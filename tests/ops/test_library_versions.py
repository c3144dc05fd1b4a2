"""Ops of libraries whose arguments changed between versions, or differ from those of their kin.

Each call is laid out as the library's own schema says; its cost is that of a plain op which does
the same.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from pyprof import ops
from pyprof.marker import Call, Tensor, Value

B, S, H, D = 2, 8, 4, 16
DENSE = Tensor((B, S, H, D), "bfloat16")
PACKED, STARTS = Tensor((B * S, H, D), "bfloat16"), Tensor((B + 1,), "int32")
LSE, SEED = Tensor((H, B * S), "float32"), Tensor((2,), "int64")
FULL = B * H * S * S * 2 * (D + D)

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
    """Each says in another place that the mask is causal: half of the products are left."""
    call = Call("xformers", "efficient_attention_forward_cutlass", args)
    assert (ops.cost(call).flops, ops.cost(call).bytes) == (FULL // 2, 8192)


@pytest.mark.parametrize("args", [NEW_CUTLASS, OLD_CUTLASS])
def test_xformers_efficient_kernel_without_a_mask(args: tuple[Value, ...]) -> None:
    """Whether the sums are kept is no mask; lengths on the GPU leave the products unknown."""
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
    """The gradients were given at first; now a truth value says how they are stored."""
    plain = Call(
        "flash_attn",
        "_flash_attn_varlen_backward",
        (*GRADS, *GIVEN, *LENGTHS, True, -1, -1),
    )
    found, expected = ops.cost(Call("xformers_flash", "flash_bwd", args)), ops.cost(plain)
    assert expected.flops is not None
    assert (found.flops, found.bytes) == (expected.flops, expected.bytes)


@pytest.mark.parametrize(
    "rest",
    [(True, False), (True, 0, False), (True, -1, -1, False), (True, -1, -1, False, None)],
)
def test_xformers_flash_in_each_version(rest: tuple[Value, ...]) -> None:
    """A window came, then how many keys are used, then pages."""
    used = (None,) if len(rest) > 3 else ()
    args = (*GIVEN, STARTS, STARTS, *used, S, S, 0.0, 0.25, *rest)
    found = ops.cost(Call("xformers_flash", "flash_fwd", args))
    assert (found.flops, found.bytes) == (FULL // 2, 8192)
