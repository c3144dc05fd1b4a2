"""Types of inputs, sums and weights from kernel names."""

import pytest

from pyprof.gpu.kernel_dtypes import name_types, weight_type


@pytest.mark.parametrize(
    ("accumulate", "name"),
    [
        ("float32", "volta_fp16_s884gemm_fp16_128x128_ldg8_f2f_nn"),
        ("float16", "turing_h1688gemm_128x128_ldg8_tn"),
        ("float16", "nvjet_sm120_hhh_mma_128x128x64_4_64x64x64_tmaAB_bz_NNNN"),
        ("float32", "nvjet_hsh_256x128_64x4_1x2_h_bz_coopA_NTT"),
        ("float32", "nvjet_sm100_qqtst_128x256_128x6_2x1_2cta_v_bz_bias_TNT"),
        ("int32", "nvjet_sm120_biu_mma_256x128x128_2_64x64x128_tmaAB_bz_TNNN"),
        ("float16", "sm75_xmma_fprop_implicit_gemm_f16f16_f16f16_f16_nhwckrsc_tensor16x8x8_k"),
        ("float32", "sm80_xmma_gemm_f16f16_f16f32_f32_tn_n_tilesize32x32x64_tensor16x8x16_k"),
        (None, "pytorch_flash::flash_fwd_kernel"),
    ],
)
def test_accumulate_type(accumulate: str | None, name: str) -> None:
    """The type of the sum, if the name has it, decides the peak on GeForce cards."""
    assert name_types(name).accumulate == accumulate


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("mxfp4", "_matmul_ogs_NNT_bf16xbf16xmxfp4_128x256x128x1_swiglu"),
        ("mxfp4", "bmm_Bfloat16_MxE2m1MxE4m3_Fp32_Ab32_Bb32_t128x8x256_s4_et128x8"),
        ("mxfp4", "bmm_Bfloat16_MxE2m1Bfloat16_Fp32_bA32_t128x8x256_s4_et128x8"),
        ("nvfp4", "bmm_E2m1_E2m1E2m1_Fp32_bA16_bB16_t128x64x256_s6_et128x64"),
        ("fp8", "bmm_Bfloat16_E4m3E4m3_Fp32_t128x8x128_s5_et64x8"),
        (None, "bmm_Bfloat16_Bfloat16Bfloat16_Fp32_t128x8x128_s5_et64x8"),
        (None, "fused_moe_kernel"),
    ],
)
def test_how_an_experts_weights_are_stored(kind: str | None, name: str) -> None:
    """The narrower of two input types is the weights'."""
    assert weight_type(name) == kind
