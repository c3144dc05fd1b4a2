"""Tensor Core verdicts: real names, near misses, and what dtype and device decide."""

import re
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyprof.gpu.kernel_names import split
from pyprof.gpu.tensorcore import RULES, Rule, TensorCore, tensor_core
from tests.gpu.captured_names import CAPTURES, captured_names
from tests.gpu.tensorcore_names import NAMES, TORCH

needs_captures = pytest.mark.skipif(not CAPTURES.exists(), reason="no shared captures")


@pytest.mark.parametrize(("value", "dtype", "name"), NAMES, ids=[row[2][:60] for row in NAMES])
def test_real_names_have_their_verdict(value: str, dtype: str | None, name: str) -> None:
    verdict = tensor_core(name)
    assert (verdict.value, verdict.dtype) == (value, TORCH[dtype] if dtype else None)


def test_a_product_with_few_columns_is_none_with_a_vector_for_the_types_of_its_arguments() -> None:
    name = "gemmSN_TN_kernel<float, 128, 16, 2, 4, 4, 4, true, cublasGemvTensorBatched<float>>(int)"
    assert tensor_core(name).rule.startswith("gemm-small-n: ")


@pytest.mark.slow
@needs_captures
def test_every_captured_name_has_a_value() -> None:
    """Of the shared captures; few remain unknown."""
    verdicts = {name: tensor_core(name) for name in captured_names()}
    assert {verdict.value for verdict in verdicts.values()} == {"1", "0", "?", "-"}
    unknown = [name for name, verdict in verdicts.items() if verdict.value == "?"]
    # users' own; Triton's attention, by its op's type; `triton_`: any loop or product of Inductor's
    assert {split(name).path.partition("__0d1d")[0] for name in unknown} == {
        *("build_GPU2", "probe_GPU2", "saxpy", "nvfuser_none_f0_c0_r0_g0", "triton"),
        *("attn_fwd", "kernel_unified_attention_2d"),
        "_fwd_kernel_aligned_0d1d2d3d45d6de7de8c9de10de11c12de13de14c15de16de17c18de19de20c21de22de23de",
    }


@pytest.mark.parametrize(
    ("value", "cc", "dtype", "name"),
    [
        # nothing before Volta has Tensor Cores, whatever the kernel is called
        ("0", (6, 1), None, "cutlass_80_tensorop_s16816gemm_bf16_128x128_32x5_tn_align8"),
        ("0", (6, 0), None, "some_users_kernel"),
        ("-", (6, 0), None, "void at::native::reduce_kernel<512, 1>(int)"),
        # no TF32 before Ampere
        ("0", (7, 0), "float32", "some_users_kernel"),
        ("0", (7, 5), "float32", "_fwd_kernel"),
        ("?", (8, 0), "float32", "_fwd_kernel"),
        ("0", (8, 6), "float64", "some_users_kernel"),
        ("?", (9, 0), "float64", "some_users_kernel"),
        ("0", (8, 0), "float8_e4m3fn", "some_users_kernel"),
        ("0", (9, 0), "complex64", "some_users_kernel"),
        # the op's type settles families that exist for narrow types only
        ("1", None, "float16", "triton_tem_fused_mm_0"),
        ("?", None, "float32", "triton_tem_fused_mm_0"),
        ("1", (8, 0), "bfloat16", "cudnn_generated_fort_native_sm80_convFwd_pointwise"),
        ("1", (8, 0), "float16", "BatchPrefillWithRaggedKVCacheKernel"),
        ("?", (8, 0), "float16", "_fwd_kernel"),
        ("1", None, "bfloat16", "attn_fwd"),
        # AMD's compute capability is no CUDA compute capability
        ("1", (9, 4), None, "Cijk_Alik_Bljk_BBS_BH_Bias_MT256x192x64_MI16x16x1_SN"),
    ],
)
def test_device_and_dtype_decide_only_what_the_name_leaves_open(
    value: str, cc: tuple[int, int] | None, dtype: str | None, name: str
) -> None:
    assert tensor_core(name, cc=cc, dtype=dtype).value == value


@given(name=st.text(), cc=st.none() | st.tuples(st.integers(0, 13), st.integers(0, 9)))
def test_any_text(name: str, cc: tuple[int, int] | None) -> None:
    verdict = tensor_core(name, cc=cc)
    assert isinstance(verdict, TensorCore)
    assert verdict.value in {"1", "0", "?", "-"}
    assert re.match(r"[\w-]+: \S", verdict.rule)


def test_rule_names_are_unique() -> None:
    """Users filter by them."""
    counts = Counter(rule.name for rule in RULES)
    assert {name: n for name, n in counts.items() if n > 1} == {}


@pytest.mark.parametrize("rule", RULES, ids=[rule.name for rule in RULES])
def test_every_rule_decides_a_real_name(rule: Rule) -> None:
    """A rule that decides none is dead."""
    reasons = {tensor_core(name).rule.split(":")[0] for _, _, name in NAMES}
    assert rule.name in reasons
