# ruff: noqa: E501 - a kernel's name is as long as it is
"""Real kernel names, with whether they use Tensor Cores and their input type.

One row per name: the verdict, the type (`?` if the name hides it), the name, cut short if the
source was. A new family of names starts here. Types: f16, bf16, f32, ... for torch's float16, bfloat16, float32.
"""

_ROWS = r"""
# Volta
1 f16 volta_h884gemm_256x128_ldg8_nn
0 f16 volta_fp16_scudnn_fp16_128x128_stridedB_splitK_small_nn_v1
0 c64 volta_gcgemm_32x32_nt
0 i8 volta_sgemm_int8_128x128_nt
0 f64 volta_dgemm_128x64_nn
# Turing
1 i8 trt_turing_int8_i8816cudnn_int8_256x64_ldg16_relu_medium_nt_v1
0 f32 turing_scudnn_128x64_relu_interior_nn_v1
- ? void nchwToNhwcKernel<__half, __half, float, false, true>(int, int, int)
# Ampere
1 f16 trt_ampere_h16816gemm_128x64_ldg8_nn_v1
1 bf16 cutlass_80_tensorop_s16816gemm_bf16_128x128_32x5_tn_align8
1 tf32 cutlass_80_tensorop_s1688gemm_128x128_16x5_nn_align4
1 f16 cutlass_80_wmma_h161616gemm_16x16_128x1_tn_align8
1 i8 cutlass_tensorop_s8_i16832gemm_s8_256x128_64x3_tn_align16
1 i4 cutlass_tensorop_s4_i16864gemm_s4_256x128_128x3_tn_align32
0 f32 ampere_scudnn_128x64_relu_small_nn_v1
0 f32 sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize128x128x8_stage3_warpsize2x2x1_ffma_aligna4_alignc4_execute_kernel__5x_cublas
? f16 sm80_xmma_depthwise_convolution_dgrad_tiling_f16f16_f16f32_f32_nhwckrsc_nhwc
? f16 void conv2d_c1_k1_nhwc_kernel_specialized<__half, __half, __half, float, 5>()
# cut short before the instruction: the type is all there is
1 f16 sm80_xmma_gemm_f16f16_f16f32_f32_tn_n_tilesize64x64x
# Ada
1 e4m3 sm89_xmma_gemm_e4m3bf16_e4m3f32_f32_tn_n_tilesize128x64x64_stage4_warpsize2x2x1_tensor16x8x32_algo2_execute_kernel__5x_cublas
# Hopper
1 tf32 sm90_xmma_dgrad_implicit_gemm_f32f32_tf32f32_f32_nhwckrsc_nhwc_tilesize64x64x32_warpgroupsize1x1x1_g1_execute_segment_k_off_kernel__5x_cudnn
1 tf32 nvjet_sss_tf32_128x256_TNT
1 f16 nvjet_sm90_hss_320x128_64x3_1x2_h_bz_coopB_NTT
# float32, but TF32 or not is not named
? f32 nvjet_sss_128x256_32x4_2x1_v_bz_coopA_TNT
1 ? void cutlass::device_kernel<cutlass::gemm::kernel::GemmUniversal<cute::tuple<int, int, int>, cutlass::gemm::collective::CollectiveMma<cutlass::gemm::MainloopSm90TmaGmmaWarpSpecialized<4
1 ? void marlin::Marlin<(long)1125899906910725, (long)1125899906843648>(int)
# Blackwell, data centre
1 bf16 nvjet_sm100_tst_16x64_64x16_4x1_v_bz_TNN
1 i8 cutlass3x_sm100_tensorop_i256x256x32gemm_s8_s8_s32_s8_s8_256x256x128_4x2x1
1 f4 cutlass3x_sm100_bstensorop_s256x256x64gemm_block_scaled_ue4m3xf4_ue4m3xf4_f32
# Blackwell, GeForce and RTX PRO
1 e4m3 nvjet_sm120_qqtst_mma_64x128x64_8_32x64x64_tmaAB_bz_TNNN
1 i8 nvjet_sm120_biu_mma_256x128x128_2_64x64x128_tmaAB_bz_TNNN
# Attention
1 f16 void pytorch_flash::flash_fwd_splitkv_kernel<Flash_fwd_kernel_traits<cutlass::half_t>>
1 f16 void fmha_fwd_loop_kernel<FMHA_kernel_traits<(int)128, (int)32, (int)16, (int)1, (int)4, (unsigned int)8, __half>, (bool)0, (bool)0, (bool)0>(FMHA_fprop_params)
- ? void pytorch_flash::flash_fwd_splitkv_combine_kernel<pytorch_flash::Flash_fwd_ke
1 bf16 void pytorch_flash::flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel<pytorch_flash::Flash_bwd_kernel_traits<64, 64, 128, 8, 2, 4, 4, false, false, cutlass::bfloat16_t>>
- ? void pytorch_flash::flash_bwd_dot_do_o_kernel<true, pytorch_flash::Flash_bwd_kernel
1 ? flash::FlashAttentionForwardSm100
1 f16 fmha_cutlassB_f16_aligned_64x64_k64_sm80(PyTorchMemEffAttention::AttentionBackwa
# three TF32 products for one of float32
1 f32 fmha_cutlassF_f32_aligned_64x64_rf_sm80(PyTorchMemEffAttention::AttentionKernel<float
0 f32 fmha_cutlassF_f32_aligned_64x64_rf_sm75(PyTorchMemEffAttention::AttentionKernel<float
0 f32 fmha_cutlassF_f32_aligned_64x64_rf_sm50(PyTorchMemEffAttention::AttentionKernel<
1 ? cudnn_generated_fort_native_sdpa_sm80_knob_6_128x64x64_4x1x1_kernel0_0
1 bf16 void flashinfer::BatchPrefillWithPagedKVCacheKernel<flashinfer::KernelTraits<(flashinfer::MaskMode)0, 16u, 1u, 4u, 4u, 4u, 1u, 4u, (flashinfer::PosEncodingMode)0, __nv_bfloat16, __nv_bfloat16, __nv_bfloat16, float, int>>
0 ? void flashinfer::BatchDecodeWithPagedKVCacheKernel<(flashinfer::PosEncodingMode)0, 2u, 4u, 8u, 16u>(T1)
1 e4m3 fmhaSm100aKernel_QE4m3KvE2m1OE4m3H128PagedKvCausalP32VarSeqQ128Kv128PersistentContext
- ? fmhaReductionKernel
1 f16 void sm90::fwd::sparse_attn_fwd_kernel<sm90::fwd::KernelTemplate<512, true>, cutlass::half_t>()
- bf16 void vllm::reshape_and_cache_flash_kernel<__hip_bfloat16, __hip_bfloat16, (vllm::Fp8KVCacheDataType)0>(int)
- ? void (anonymous namespace)::store_kvcache<2048l, 4, false, long>((anonymous namespace)::StoreKVCacheParams)
1 ? void cutlass::device_kernel<cutlass::fmha::kernel::Sm100FmhaMlaKernelTmaWarpspecialized<cute::tuple<int>>>(T1)
- bf16 void cutlass::device_kernel<cutlass::fmha::kernel::Sm100FmhaMlaReductionKernel<cutlass::bfloat16_t>>(T1)
1 e4m3 void cutlass::device_kernel<vllm::cutlass_3x_gemm_sm100<cutlass::float_e4m3_t, cutlass::bfloat16_t>::GemmKernel>(T1)
1 bf16 fmha_v2_flash_attention_bf16_64_64_S_qkv_128_sm90_kernel
1 ? kernel_mha
1 ? void flashinfer::PrefillWithKVCacheKernel<flashinfer::CollectiveMainloop<int>>(T1)
1 ? void flashinfer::mla::BatchMLAPagedAttentionKernel<flashinfer::mla::KernelTraits<true, 2u>>(T1)
- ? void flash_fwd_mla_combine_kernel<cutlass::bfloat16_t, float, long, 512, 32>(T1)
- bf16 void flashinfer::PersistentVariableLengthMergeStatesKernel<8u, 16u, 8u, 4u, __nv_bfloat16, __nv_bfloat16>(T1)
0 ? _fwd_kernel_stage1
- ? _fwd_kernel_stage2
# a library's name is not a kernel's: `flashinfer`, `deep_gemm`
- ? void flashinfer::activation::act_and_mul_kernel<__nv_bfloat16, &(silu(float const&))>(T1)
- bf16 void flashinfer::BatchQKApplyRotaryPosIdsCosSinCacheHeadParallelismKernel<true, 128u, 8u, 16u, __nv_bfloat16, long>(T1)
- ? void deep_gemm::smxx_clean_logits<256u, 64u>(unsigned int)
# recurrent layers
0 ? fused_recurrent_gated_delta_rule_fwd_kernel
? ? _chunk_scan_fwd_kernel
0 ? _state_passing_fwd_kernel
0 bf16 void selective_scan_fwd_kernel<Selective_Scan_fwd_kernel_traits<64, 16, 1, true, c10::BFloat16>>(SSMParamsBase)
0 bf16 void causal_conv1d_fwd_kernel<Causal_conv1d_fwd_kernel_traits<128, 4, true, c10::BFloat16>>(ConvParamsBase)
# products of serving libraries
1 bf16 void fused_a_gemm_kernel<1, 2112, 7168, 16>(__nv_bfloat16*)
0 ? void vllm::gptq::gemm_half_q_half_gptq_4bit_kernel<true, 1>(int)
0 ? void moe_wna16_gemm_kernel<int, 4, 64>(int)
0 ? void mul_mat_vec_q<int, 256, 32>(int)
1 ? void cutlass::device_kernel<machete::MacheteKernelTemplate<int>>(T1)
- ? void moe::dev::finalize::finalizeKernel<int>(T1)
- bf16 void vllm::cvt_fp16_to_fp4<__nv_bfloat16, false>(int)
1 e4m3 bmm_Bfloat16_MxE2m1MxE4m3_Fp32_Ab32_Bb32_t128x8x256_s4_et128x8_m128x8x32_c1x1x1_rM_TN_tran
1 e4m3 sm90_fp8_gemm_1d2d_impl
1 e4m3 sm100_fp8_gemm_1d1d_impl
1 e4m3 fp8_gemm_kernel
1 i8 void qk_int8_sv_f8_attn_kernel<64u, 128u, 128u, 128u, (QuantGranularity)3>(CUtensorMap_st)
1 f16 void qk_int_sv_f16_attn_kernel<128u, 64u, 32u, 64u, 128u, (DataType)1>(signed char*, signed char*)
1 tf32 void deep_gemm::sm90_tf32_hc_prenorm_gemm_impl<24u, 16384u, 64u, 32u>(unsigned int, CUtensorMap_st, float*)
1 e4m3 _w8a8_block_fp8_matmul_unrolledx4
1 bf16 _matmul_ogs_NNT_bf16xbf16xmxfp4_128x128x128x1_swiglu
1 f16 _p_matmul_ogs_NNN_fp16xfp16xfp16_128x256x64x1
- bf16 _finalize_matmul_scatter_bf16
- ? _combined_routing_compute
# between devices
- f32 void deep_ep::internode_ll::dispatch<true, false, 7168>(void*, float*, int*, long*)
1 ? flash_mla_sparse_fwd_kernel
# cuDNN, generated at run time
? ? cudnn_generated_fort_native_sm80_convFwd_pointwise_pointwise_pointwise
# Triton and Inductor
- ? triton_poi_fused__unsafe_view_mul_silu_2
- ? triton_red_fused_add_mean_mul_pow_rsqrt_0
- ? triton_per_fused__softmax_3
- ? triton_for_fused_0
? ? triton_flex_attention_backward_7
? ? attn_fwd
# Helpers and vectors
- ? compute_gemm_pointers
- f32 void cudnn::cnn::im2col4d_kernel<float, long>(cudnn::cnn::im2col4d_params)
0 f32 void gemmk1_kernel<int, float, 256, 5, false, false, false, false>(T1)
0 f32 void gemmSN_TN_kernel<float, (int)128, (int)16, (int)2, (int)4, (int)4, (int)4, (bool)1>
0 f64 void gemv2T_kernel_val<int, int, double, double, double, double, 128, 16, 4, 4>
0 f32 magma_sgemmEx_kernel
- bf16 void elemWiseRNNcell<__nv_bfloat16, __nv_bfloat16>(int)
- ? strided_dgrad_indexed
# Old cuDNN
0 bf16 void implicit_convolveNd_sgemm<__nv_bfloat16, 3>(int)
0 f16 void convolve_common_engine_float_NHWC<__half, __half, 128, 5, 5, 3, 3, 3>(int)
0 f32 void cudnn::detail::dgrad_engine<float, 512, 6, 5, 3, 3, 3, false>(int, int)
- f32 void fft2d_r2c_32x32<float, false, 1u, false>(float2*, float const*, int)
- f32 void cudnn::winograd_nonfused::winogradForwardData4x4<float, float>(int)
- ? void cudnn::bn_bw_1C11_kernel_new<float, double, float2, 512, true, 1>(float)
? ? direct_group
0 f16 void cudnn::cnn::conv2d_grouped_direct_kernel<false, true, false, __half>(int)
# Traps: the digits are a hash, the word part of another word
- ? sm50_xmma_pooling_coalescedC_NHWC_kMAX_3_False
# before Volta, still chosen for odd shapes
0 f32 sm50_xmma_fprop_conv2d_c1_k1_f32f32_f32_f32_nchwkcrs_nchw_tilesize10x40x8_threadsize4x4
0 f32 void sgemm_largek_lds64<true, false, 6, 3, 4, 5, 2, 66>(float*, float const*, float)
0 f32 void at::native::(anonymous namespace)::conv_depthwise2d_forward_kernel<3, float, int>(T)
# structured sparsity
1 f16 sm80_xmma_sparse_gemm_f16f16_f16f32_f32_tt_t_tilesize128x128x64_stage3_warpsize2x2x1_sptensor16x8x32_execute_kernel_5x_cusparselt
? ? triton_unk_fused_matmul_mul_permute_0
# AMD
1 bf16 Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT256x192x64_MI16x16x1_SN_LDSB1
1 f16 igemm_fwd_gtcx3_nhwc_fp16_bx0_ex1_bt128x128x32_wt32x32x8_ws1x1_wr2x2_ta1x8x2x1_1x4x1x64_tb1x8x2x1_1x4x1x64_gkgs
1 f16 void ck::kernel_grouped_conv_fwd_multiple_abd_xdl_cshuffle<ck::GridwiseGemmMultipleABD_xdl_cshuffle<_Float16, _Float16>>(T)
1 bf16 void ck_tile::kentry<256, 2, ck_tile::FmhaFwdKernel<ck_tile::BlockFmhaPipelineQRKSVSAsync<ck_tile::bf16_t>>>(int)
1 ? void ck_tile::kentry<256, 1, ck_tile::FmhaBwdDQDKDVKernel<ck_tile::BlockFmhaBwdDQDKDVPipeline
- f32 void ck_tile::kentry<64, 2, ck_tile::FmhaBwdOGradDotOKernel<ck_tile::BlockFmhaBwdOGradDotO<float>>>(int)
1 ? void ck_tile::kentry<1, ck_tile::GroupedGemmKernel<ck_tile::GemmSpatiallyLocalTilePartitioner<ck_tile::TileGemmShape
1 ? void ck_tile::kentry<2, ck_tile::MoeFlatmmKernel<ck_tile::GemmSpatiallyLocalTilePartitioner<ck_tile::TileGemmShape
- f32 void ck_tile::kentry<2, ck_tile::MoeSortingKernel<ck_tile::MoeSortingProblemEx<int, float, 2, true>>>(int)
- ? _ZN7ck_tile6kentryILi1ENS_12Rmsnorm2dFwdINS_27Rmsnorm2dFwdPipelineOnePassINS_27Rmsnorm2dFwdPipelineProblemIDF16bDF16bfDF16bDF16bDF16bffNS_19Generic2dBlockShapeINS_8sequenceIJLi1ELi3072EEEE
0 f32 void miopenSp3AsmConv_v21_1_3_gfx9_fp32_f3x2_stride1(float*)
# SGLang and vLLM on Blackwell
1 ? kernel_cutlass_kernel_flashinfergemmkernelsdense_blockscaled_gemm_sm100Sm100BlockScaledPersistentDenseGemmKernel_object_at__TiledMMA_ThrLayoutVMNK11110000_PermutationMNK____MMAAtom_ThrID1_0
1 ? kernel_cutlass_kernel_TiledMMA_ThrLayoutVMNK11110000_PermutationMNK____MMAAtom_ThrID10_ShapeMNK12825616_TVLayoutA1128161281128_TVLayoutB1256162561256
0 bf16 void flashinfer::trtllm_dsv3_router_gemm::router_gemm_kernel<__nv_bfloat16, float, 128, 8, 16, 256, 7168>(float*, __nv_bfloat16 const*, __nv_bfloat16 const*)
1 f4 bmm_E2m1_E2m1E2m1_Fp32_Ab16_Bb16_Cb16_t128x128x512u2_s3x3x3x3x1x3_et128x32_m256x128x64_c2x1x1_rM_TN_transOut_schPd2x1x2x3_biasFp32M_fCp_bN_ldgsts_ldgstsSf_rgTma_clmp_swiGlu_lbW4_lsfbW4_dynB_sm100f
0 f32 cutlass3x_sm100_simt_sgemm_f32_f32_f32_f32_f32_128x64x16_1x1x1_3_tnn_align1_bias_f32_relu
1 f4 void deep_gemm::sm100_nvfp4_nvfp4_mega_moe_impl<16512u, 6144u, 3072u, 128u, 4u, 4u, 192u, 128u, 256u, 48u, 256
- e4m3 _silu_and_mul_mxfp8_quant_tiled_kernel
- ? _chunk_cumsum_fwd_kernel
# Others
- ? [CUDA Unified Memory memcpy HtoD]
- ? Memset (Device)
- ? ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<(unsigned long)4096>)
1 bf16 void at::native::tinygemm_m16n8k16_chunk_kernel<at::native::ALayout_RM<__nv_bfloat16>>
"""


def _row(line: str) -> tuple[str, str | None, str]:
    used, dtype, name = (*line.split(maxsplit=2), "")[:3]
    return used, None if dtype == "?" else dtype, name


NAMES = tuple(_row(line) for line in _ROWS.strip().splitlines() if not line.startswith("# "))

TORCH = {
    "f16": "float16", "bf16": "bfloat16", "tf32": "tf32", "f32": "float32", "f64": "float64",
    "c64": "complex64", "e4m3": "float8_e4m3fn", "f4": "float4_e2m1fn", "i8": "int8", "i4": "int4",
}  # fmt: skip
