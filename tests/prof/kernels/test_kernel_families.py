"""The family of a row's work, from its op or its kernel's name."""

from pathlib import Path

import pytest

from pyprof.gpu.role_rules import Role
from pyprof.marker import Call, Tensor, encode_op
from pyprof.ops.registry import FAMILIES
from pyprof.prof.kernels.kernel_families import OF_OPS, OF_ROLES, family_of_kernel
from tests.builders import Range, Work, nsys_db
from tests.commands.test_prof import column, table

_X = Tensor((64, 64), "float16")


@pytest.mark.parametrize(
    ("name", "family"),
    [
        ("_matmul_ogs_NNT_bf16xbf16xmxfp4_128x256x128x1_swiglu", "MoE"),
        ("fused_moe_kernel", "MoE"),
        ("void vllm::cross_device_reduce_1stage<__half, 2>(int)", "communication"),
        ("void vllm::rotary_embedding_kernel<c10::BFloat16, true>(int)", "element-wise"),
        ("void at::native::(anonymous namespace)::indexSelectLargeIndex<float>(int)", "indexing"),
        ("triton_red_fused_embedding_native_layer_norm_0", "Triton"),
        ("[CUDA memcpy HtoD]", "copy"),
        ("[CUDA memset]", "fill"),
        ("void wgrad2d_grouped_direct_kernel<float>(int)", "convolution"),
        ("fmhaReductionKernel", "attention"),
        ("_fwd_kernel_stage2", "attention"),
        ("_chunk_state_fwd_kernel", "state space"),
        ("void NVFP4Quantize<__half>(int)", "quantization"),
        ("void flashinfer::norm::FusedAddRMSNormKernel<8u, __nv_bfloat16>(T1)", "norm"),
        ("void flashinfer::MergeStatesKernel<8u>(T1)", "attention"),
        ("void deep_gemm::smxx_fp8_paged_mqa_logits<1u>(float*)", "attention"),
        ("chunk_gated_delta_rule_fwd_kernel_h_blockdim64", "linear attention"),
        ("_chunk_scan_fwd_kernel", "state space"),
        ("_causal_conv1d_update_kernel", "state space"),
        ("bmm_Bfloat16_E2m1E2m1_Fp32_t128x8x512_clmp_swiGlu_dynBatch_sm100f", "MoE"),
        ("void tensorrt_llm::kernels::cutlass_kernels::expandInputRowsKernel<int>(x)", "MoE"),
        ("void moe::dev::activation::activationDeepSeekKernel<x>(y)", "MoE"),
        ("void vllm::cvt_fp16_to_fp4<__nv_bfloat16, false>(int)", "quantization"),
        ("void transformer_engine::cast_transpose_general_kernel<x>(y)", "quantization"),
        ("_lora_shrink_kernel", "GEMM"),
        ("my_kernel", "other"),
    ],
)
def test_a_kernels_family_follows_from_its_name(name: str, family: str) -> None:
    assert family_of_kernel(name) == family


def test_every_family_and_role_has_a_word() -> None:
    """Except families that only ops have, and roles that say nothing."""
    assert {*FAMILIES} - {*OF_OPS} == {"view", "fused", "other"}
    assert {*Role} - {*OF_ROLES} == {Role.SETUP, Role.OTHER}


def test_the_op_takes_precedence_over_the_kernels_name(tmp_path: Path) -> None:
    """All kernels of a convolution belong to it, but NCCL's are communication."""
    ranges = [
        Range(encode_op(Call("torch", "mm", (_X, _X))), (90, 200)),
        Range(encode_op(Call("torch", "relu", (_X,))), (290, 400)),
    ]
    names = ["transpose_kernel", "ncclDevKernel_AllReduce", "my_kernel", "layer_norm_kernel"]
    calls = [100, 120, 300, 500]
    work = [
        Work(name, (1000 * n, 1000 * n + 500), (at, at + 5))
        for n, (name, at) in enumerate(zip(names, calls, strict=True), 1)
    ]
    path = nsys_db(tmp_path / "a.sqlite", work, ranges)
    families = ["GEMM", "communication", "element-wise", "norm"]
    assert column(table("-c", "idx,family", path), "Family") == families
    rows = table("--by", "family", path)
    assert {*column(rows, "Family")} == {*families}
    assert sum(int(row["Total(ns)"]) for row in rows) == 2000
