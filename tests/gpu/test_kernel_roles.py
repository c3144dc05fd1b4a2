# ruff: noqa: E501 - a kernel's name is as long as it is
"""Roles of real kernel names, and which kernels of a call do its arithmetic."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyprof.gpu.kernel_names import split
from pyprof.gpu.kernel_roles import (
    FAMILY_RANKS,
    HELPERS,
    communicates,
    crosses_link,
    rank,
    role,
    sparse_product,
    training,
)
from pyprof.gpu.role_rules import Role
from tests.analysis.captures import ADD
from tests.gpu.captured_names import CAPTURES, captured_names

NAMES = [
    ("gemm", "nvjet_sm120_tst_mma_32x16x128_4_16x16x128_tmaAB_bz_splitK_TNNN"),
    ("gemm", "std::enable_if<!T7, void>::type internal::gemvx::kernel<int, int, float2, float2>(T)"),
    ("gemm", "Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT256x192x64_MI16x16x1_SN_LDSB1"),
    # words of a long template are parts of the kernel, not its role
    ("gemm", "void ck_tile::kentry<2, ck_tile::MoeFlatmmKernel<ck_tile::GemmSpatiallyLocalTilePartitioner<ck_ti"),
    ("attention", "void ck_tile::kentry<256, 2, ck_tile::FmhaFwdKernel<ck_tile::BlockFmhaPipelineQRKSVSAsync<int>>>(int)"),
    ("norm", "std::enable_if<(((8)>(0)))&&_typeConvert<c10::BFloat16>::exists, void>::type vllm::fused_add_rms_norm_kernel<c10::BFloat16>(int)"),
    ("conv", "igemm_fwd_gtcx3_nhwc_fp16_bx0_ex1_bt128x128x32_wt32x32x8_ws1x1_wr2x2"),
    ("gemm", "fused_moe_kernel"),
    # the library is not the kernel
    ("random", "void flashinfer::sampling::SamplingFromProbKernel<1024u>(float*)"),
    ("index", "void fbgemm_gpu::bounds_check_indices_kernel<long>(long const*)"),
    ("elementwise", "void fbgemm_gpu::jagged_dense_elementwise_dense_output_kernel_<3, long>(float*)"),
    ("layout", "void fbgemm_gpu::permute_2D_data_kernel<true, long, long, float>(int)"),
    ("comm", "void fbgemm_gpu::one_shot_all_reduce<8, true>(int, int)"),
    ("setup", "void deep_gemm::transpose_and_pack_fp32_into_ue8m0<512u, 48u>(float*)"),
    ("gemm", "void deep_gemm::smxx_fp8_paged_mqa_logits<1u>(float*)"),
    ("index", "void moe::dev::routing::routingRenormalize::routingIndicesClusterKernel<int>(T1)"),
    ("elementwise", "void transformer_engine::gated_kernels::cast_gated_kernel<true>(int)"),
    ("norm", "void cuComputeGradInput<float, float, c10::BFloat16>(int)"),
    ("index", "_compute_slot_mapping_kernel"),
    ("index", "write_req_to_token_pool_triton"),
    ("index", "void moe_fused_gate_kernel<float, 1, 256>(void*)"),
    ("elementwise", "_fused_gate_up_silu_mul_kernel"),
    ("norm", "l2norm_fwd_kernel"),
    ("random", "rejection_random_sample_kernel"),
    ("elementwise", "void vllm::apply_repetition_penalties_kernel<float>(float*)"),
    ("elementwise", "apply_token_bitmask_inplace_kernel"),
    ("elementwise", "_silu_mul_fp8_quant_deep_gemm"),
    ("elementwise", "_per_token_cast_to_fp8"),
    ("layout", "void tensorrt_llm::kernels::block_scale_interleave_kernel(int)"),
    ("gemm", "void deep_gemm::sm100_fp8_fp4_mega_moe_impl<1u>(float*)"),
    ("splitk", "void cutlass::Kernel<cutlass::reduction::kernel::ReduceSplitK<cutlass::MatrixShape<4, 128>>>(T1)"),
    ("splitk", "void cutlass::device_kernel<flash::FlashAttnFwdCombine<cute::tuple<cute::C<16>>>>(T1)"),
    ("conv", "cudnn_infer_volta_scudnn_128x64_relu_xregs_large_nn_v1"),
    ("conv", "sm80_xmma_fprop_implicit_gemm_indexed_tf32f32_tf32f32_f32_nhwckrsc_nchw_tilesize"),
    ("conv", "void wgrad_alg0_engine<float, 128, 6, 8, 3, 3, 5, false, 512>(int, int, int)"),
    ("attention", "void flash::flash_fwd_kernel<Flash_fwd_kernel_traits<(int)128>>(T1)"),
    ("splitk", "void cublasLt::splitKreduce_kernel<32, 16, int, float, float, float, float>(int)"),
    ("splitk", "void cudnn::cnn::reduce_wgrad_nchw_helper<float, float>(void*, void const*)"),
    ("setup", "cask_cudnn::computeWgradSplitKOffsetsKernel(cask_cudnn::ComputeSplitKOffsetsParams)"),
    ("splitk", "wgrad2d_c1_k1_nhwc_reduce"),
    ("splitk", ("kernel_cutlass_kernel_flash_attncuteflash_fwd_combineFlashAttentionForwardCombine"
               "_object_at__tensorptrf32gmem")),
    ("setup", ("kernel_cutlass_kernel_flash_attncuteflash_bwd_preprocessFlashAttentionBackward"
              "Preprocess_object_at__tensorptrbf16gmem")),
    ("setup", ("kernel_cutlass_kernel_flash_attncuteflash_bwd_postprocessFlashAttentionBackward"
              "Postprocess_object_at__tensorptrf32gmem")),
    ("setup", "void cutlass::device_kernel<cutlass::fmha::kernel::FmhaKernelBwdSumOdO<int>>(T1)"),
    ("setup", "void cutlass::device_kernel<cutlass::fmha::kernel::FmhaKernelBwdConvert<int>>(T1)"),
    ("setup", "cudnn::fusion::compute_dot_do_o"),
    ("layout", "void cudnn::winograd_nonfused::winogradWgradDelta4x4<float, float>(int)"),
    ("layout", "void fft2d_c2r_32x32<float, (bool)0, (bool)0, (unsigned int)1>(T1 *, float2 *)"),
    ("elementwise", "cupy_true_divide__float64_float64_float64"),
    ("copy", ("void at::native::elementwise_kernel<(int)128, (int)2, void at::native::"
     "gpu_kernel_impl_nocast<at::native::direct_copy_kernel_cuda(at::TensorIteratorBase &)>>(int)")),
    ("copy", ("void at::native::<unnamed>::multi_tensor_apply_kernel<at::native::<unnamed>::TensorL"
     "istMetadata<(int)2>, at::native::<unnamed>::UnaryOpFunctor<long>, at::native::Copy<long, lo")),
    ("fill", "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<long>>(int)"),
    ("fill", "void cudnn::ops::scalePackedTensor_kernel<float, float>(long, float*, float)"),
    ("reduce", "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::NormO"),
    ("softmax", "void (anonymous namespace)::softmax_warp_forward<float, float, float, 10, true>(int)"),
    ("norm", "void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<c10::BFloat16>()"),
    ("norm", "void cudnn::bn_fw_tr_1C11_singleread<float, 512, true, 1, 2, 0>(int)"),
    ("pool", "void at::native::<unnamed>::upsample_bilinear2d_out_frame<float, float>(int, T2, T2)"),
    ("pool", "void vision::ops::(anonymous namespace)::roi_align_forward_kernel_impl<float>(int)"),
    ("loss", "void cunn_ClassNLLCriterion_updateOutput_kernel<float, float>(float*, float*)"),
    ("random", "void at::native::<unnamed>::distribution_elementwise_grid_stride_kernel<float, 4>()"),
    ("optimizer", ("void at::native::(anonymous namespace)::multi_tensor_apply_kernel<at::native::("
     "anonymous namespace)::TensorListMetadata<2>, at::native::BinaryOpListAlphaFunctor<float>>()")),
    ("triton", "triton_red_fused_add_mean_mul_pow_rsqrt_0"),
    ("memset", "[CUDA memset]"),
    ("memcpy", "[Unified Memory Memcpy DtoH]"),  # nvprof
    ("other", "void build_GPU2<128, 4>(int*, int*)"),
    # SGLang and vLLM on Blackwell
    ("attention", "void flashinfer::BatchPrefillWithPagedKVCacheKernel<flashinfer::KernelTraits<1>>(int)"),
    ("norm", "_gemma_norm_rope"),
    ("attention", "void flashinfer::msa_prefill_nvfp4::(anonymous namespace)::sparse_prefill_kernel<flashinfer::msa_pref"),
    ("linear attention", "kernel_cutlass_kernel_GdnBwdCfguse_initial_stateFalse"),
    ("elementwise", "applyMLARopeAndAssignQKVKernel"),
    ("index", "void moe_align_block_size_small_batch_expert_kernel<int, 256>(int const*)"),
    ("gemm", "void deep_gemm::sm100_tf32_hc_prenorm_gemm_impl<24u, 16384u, 64u, 32u>(unsigned int)"),
    # mangled, as nvprof stored them: the file name `Dropout` in the namespace is not a role
    ("index", "_Z21indexSelectLargeIndexIfjLi2ELi2ELin2ELb1EEv10TensorInfoIT_T0_ES3_S0_IlS2_EiiS2_S2_l"),
    ("fill", "_ZN2at6native18elementwise_kernelILi128ELi4EZNS0_15gpu_kernel_implIZZZNS0_16fill_kernel_cuda"),
    ("copy", "_ZN2at6native18elementwise_kernelILi128ELi4EZNS0_15gpu_kernel_implIZZZNS0_21copy_device_to_deviceE"),
    ("elementwise", ("_ZN2at4cuda78_GLOBAL__N__54_tmpxft_0000849d_00000000_11_Dropout_compute_75_cpp1_ii_275f3a0521"
     "kernelPointwiseApply3IZNS_6native")),
    ("random", ("_ZN2at6native78_GLOBAL__N__54_tmpxft_0000849d_00000000_11_Dropout_compute_75_cpp1_ii_275f3a0520"
     "fused_dropout_kernelIffjLi1EEEv")),
]  # fmt: skip


@pytest.mark.parametrize(("expected", "name"), NAMES, ids=[row[1][:60] for row in NAMES])
def test_real_names_have_their_role(expected: str, name: str) -> None:
    assert role(name).value == expected


@pytest.mark.slow
@pytest.mark.skipif(not CAPTURES.exists(), reason="no shared captures")
def test_captured_names_are_known() -> None:
    """In the shared captures only users' own kernels have no role."""
    unknown = {split(name).path for name in captured_names() if role(name) is Role.OTHER}
    assert unknown == {"build_GPU2", "probe_GPU2", "saxpy", "nvfuser_none_f0_c0_r0_g0"}


@pytest.mark.parametrize(
    ("family", "kind", "place"),
    [
        ("conv", Role.CONV, 0),
        ("conv", Role.GEMM, 0),  # a convolution that ran as transforms around an sgemm
        ("conv", Role.REDUCE, 1),
        ("conv", Role.LAYOUT, None),
        ("conv", Role.SPLITK, None),
        ("gemm", Role.ELEMENTWISE, 2),  # a bmm that was computed by a product and a sum
        ("gemm", Role.COPY, None),
        ("moe", Role.LAYOUT, 1),  # rows of experts in another order
        ("moe", Role.INDEX, 2),
        ("copy", Role.COPY, 0),
        # without a family all kernels but helpers share the cost
        ("", Role.GEMM, 0),
        ("", Role.ELEMENTWISE, 0),
        ("", Role.COPY, None),
    ],
)
def test_the_kernels_of_the_lowest_rank_have_the_flops_and_helpers_none(
    family: str, kind: Role, place: int | None
) -> None:
    assert rank(kind, family) == place


@pytest.mark.parametrize("family", [*FAMILY_RANKS, "", "no such family"])
def test_computing_kernels_always_rank(family: str) -> None:
    """A compute kernel may do any op's arithmetic; a helper only if moving data is the op."""
    ranked = {kind for kind in Role if rank(kind, family) is not None}
    assert ranked >= {kind for kind in Role if kind not in HELPERS}
    if family not in {"copy", "fill", "index", "embedding", "comm", "moe"}:
        assert not ranked & HELPERS


@given(name=st.text())
def test_any_text(name: str) -> None:
    assert role(name) in Role
    assert isinstance(split(name).path, str)


@pytest.mark.parametrize(("name", "crosses"), [
    ("[CUDA memcpy HtoD]", True), ("[CUDA memcpy PtoP]", True), ("[CUDA memcpy DtoD]", False),
    ("[CUDA Unified Memory memcpy HtoD]", True), ("[CUDA Unified Memory memcpy DtoH]", True),
    # pages migrate from one device to another, never within one
    ("[CUDA Unified Memory memcpy DtoD]", True),
    ("volta_sgemm_128x64_tn", False),
])  # fmt: skip
def test_transfers_over_a_link_are_not_compared_with_dram(name: str, crosses: bool) -> None:  # noqa: FBT001
    """A unified-memory migration is a copy over PCIe or NVLink."""
    assert crosses_link(name) == crosses


MULTIMEM = (
    "void (anonymous namespace)::multimem_all_reduce_kernel<c10::BFloat16, 16>"
    "(c10::BFloat16*, unsigned long, unsigned int**, unsigned long, unsigned long)"
)
COMBINE = "void deep_ep::intranode::combine<__nv_bfloat16, (int)8, (int)768, (int)4096>(T1 *)"
FUSED = (
    "void flashinfer::trtllm_allreduce_fusion::allreduce_fusion_kernel_oneshot_lamport"
    "<(flashinfer::trtllm_allreduce_fusion::AllReduceFusionPattern)1, __nv_bfloat16, 2, true, true>"
    "(flashinfer::trtllm_allreduce_fusion::AllReduceFusionParams<__nv_bfloat16>)"
)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (MULTIMEM, True),
        (COMBINE, True),
        (FUSED, True),
        ("void deep_ep::internode_ll::dispatch<true, 3, 7168>(void*)", True),
        ("void deep_ep::internode::notify_dispatch<false, 16>(int const*)", True),
        ("void deep_ep::layout::get_dispatch_layout<256, 32, 8>(long const*)", False),
        ("hybrid_ep::device_sync_kernel(hybrid_ep::params)", True),
        ("void vllm::cross_device_reduce_1stage<__nv_bfloat16, 8>(vllm::RankData*)", True),
        ("two_shot_all_reduce_kernel_inplace", True),
        ("twoshotAllreduceKernel", True),
        ("void nvshmemi_transfer_rma_p2p<1>(void*)", True),
        ("hcom_broadcast__447_0_1", True),
        ("hcom_receive__447_0_1", True),
        ("void barrier_on_stream_kernel_threadgroup<(threadgroup_t)1>(int, int)", True),
        ("mscclKernel_Sum_half_Simple_false(ncclDevComm*)", True),
        ("void quickreduce::allreduce_prototype_twoshot<int>(int)", True),
        ("kuserbuffers_pushsend(int*)", True),
        ("mori::moe::EpDispatchIntraNodeKernel", True),
        ("c10d::allreduce_", True),
        ("_c10d_functional::wait_tensor", True),
        ("symm_mem::multimem_all_reduce_", True),
        ("gloo:all_reduce", True),
        ("record_param_comms", True),
        ("fsdp::all_gather_copy_in", False),
        ("void c10d::checkForNaN<float>(float*, unsigned long)", False),
        ("triton_poi_fused_all_gather_into_tensor_cat_wait_tensor_0", False),
        ("void softmax<BlockAllReduce<float>>(float*)", False),
        ("void layer_norm::warpAllReduce<float>(float*)", False),
        ("void flux::gemm_reduce_scatter<cutlass::half_t>(int)", False),
        ("aten::scatter_reduce", False),
        (ADD, False),
    ],
)
def test_names_that_communicate(name: str, expected: bool) -> None:  # noqa: FBT001 - a parameter
    """Real names of each library; kernels that only prepare, copy or have similar names do not."""
    assert communicates(name) == expected


@pytest.mark.parametrize(
    ("name", "trains"),
    [
        ("void cudnn::bn_fw_tr_1C11_kernel_NCHW<float, float, 512, true, 1>(float const*)", True),
        ("cudnn::batchnorm_fwtr_nhwc_semiPersist<__half, __half, float, float, 512>", True),
        ("void at::native::batch_norm_collect_statistics_kernel<InvStd, float, float>", True),
        ("void cudnn::bn_fw_inf_1C11_kernel_NCHW<float, float, true, 1>(float, float)", False),
        (
            "void at::native::batch_norm_transform_input_kernel<float, float, float, true, int>(int)",
            None,
        ),
        ("void cudnn::bn_bw_1C11_kernel_new<float, float, float2, 512, true, 1>(float)", None),
    ],
)
def test_batch_norm_kernels_that_compute_statistics_train(
    name: str, *, trains: bool | None
) -> None:
    """Kernels of both modes leave it open."""
    assert training(name) is trains


@pytest.mark.parametrize(
    ("name", "sparse"),
    [
        (
            "void cusparse::csrmm_alg2_kernel<cusparse::CsrMMPolicy<int, float, float>, true>(int)",
            True,
        ),
        ("void cusparse::load_balancing_kernel<128u, 4u, 0ul, int, int>(int)", True),
        ("void rocsparse::csrmmnn_row_split_kernel<256u, float>(int)", True),
        ("_sampled_addmm_kernel", None),
        ("_bsr_strided_addmm_kernel", True),
        ("void cusparseLt::kernel<half>(int)", None),
        ("sm80_xmma_sparse_gemm_f16f16_f16f32_f32_tn_n_tilesize128x128x64", None),
        ("ampere_sgemm_128x64_tn", None),
    ],
)
def test_which_kernels_multiply_by_a_sparse_matrix(name: str, *, sparse: bool | None) -> None:
    """Not those for 2:4 sparsity, which do the work of dense ones."""
    assert sparse_product(name) is sparse
