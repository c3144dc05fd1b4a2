# ruff: noqa: E501 - a kernel's name is as long as it is
"""Kernel names: demangled if possible, short ones never empty."""

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyprof.gpu.kernel_names import demangle, short_name
from tests import strategies

SHORT = [
    ("void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float> >(x)", "reduce_kernel"),
    ("void at::native::<unnamed>::indexSelectLargeIndex<float, int>(int)", "indexSelectLargeIndex"),
    ("void at::native::(anonymous namespace)::softmax<float, (int)4>(float *)", "softmax"),
    ("at::native::(anonymous namespace)::fill(int)", "fill"),
    ("<unnamed>::k(int)", "k"),
    ("void <unnamed>::f<<unnamed>::g>(int)", "f"),
    ("[CUDA memcpy HtoD]", "[CUDA memcpy HtoD]"),
    ("triton_poi_fused_add_0", "triton_poi_fused_add_0"),
    ("void cutlass::Kernel2<cutlass_80_tensorop_s1688gemm>(T1::Params)", "cutlass::Kernel2"),
    ("ncclDevKernel_AllReduce_RING_LL(ncclArgs)", "ncclDevKernel_AllReduce_RING_LL"),
    ("std::enable_if<!(false), void>::type internal::gemvx<int, float>(x)", "internal::gemvx"),
    (("std::enable_if<(((8)>(0)))&&_typeConvert<c10::BFloat16>::exists, void>::type "
     "vllm::fused_add_rms_norm_kernel<c10::BFloat16, 8>(c10::BFloat16*)"), "vllm::fused_add_rms_norm_kernel"),
    (("void cutlass::device_kernel<at::cuda::detail::enable_3x_kernel_for_sm9x<cutlass::gemm::kernel"
     "::GemmUniversal<cute::tuple<int, int>, cutlass::gemm::collective::CollectiveMma<int>>>>(T1)"),
     "cutlass::gemm::kernel::GemmUniversal"),
    ("void cutlass::device_kernel<flash::enable_sm90_or_later<flash::FlashAttnFw", "flash::FlashAttnFw"),
    ("cutlass::device_kernel", "cutlass::device_kernel"),
    ("void ck_tile::kentry<256, 2, ck_tile::FmhaFwdKernel<ck_tile::BlockFmhaPipelineQRKSVSAsync<int>>>(int)",
     "ck_tile::FmhaFwdKernel"),
    ("_ZN7ck_tile6kentryILi1ENS_12Rmsnorm2dFwdINS_27Rmsnorm2dFwdPipelineOnePassIfEEEEvT0_", "ck_tile::Rmsnorm2dFwd"),
    ("void f<g(int)::{lambda(float)#1}>(h)", "f"),
    ("void gpu_kernel<[lambda(float) (instance 1)]>(int)", "gpu_kernel"),
    ("_ZN2at6native13reduce_kernelILi512EEEvi", "reduce_kernel"),
    ("_Z4gemmPf", "gemm"),
    ("kernel_cutlass_kernel_flashinfernormkernelsfused_add_rmsnormFusedAddRMSNormKernel_object_at__tensorptrbf16gmemalign128o409640961_tensorptrbf16gmemalign128o409640961_tensorptrbf16gmemalign_0", "FusedAddRMSNormKernel"),
    ("kernel_cutlass_kernel_flash_attncuteflash_fwd_sm100FlashAttentionForwardSm100_object_at__tensor000o1112", "FlashAttentionForwardSm100"),
    ("kernel_cutlass_kernel_TiledMMA_ThrLayoutVMNK11110000_PermutationMNK____MMAAtom_ThrID10_ShapeMNK12825616_TVLayoutA1128161281128_TVLayoutB1256162561256", "kernel_cutlass_kernel_TiledMMA_ThrLayoutVMNK11110000_PermutationMNK____MMAAtom_ThrID10_ShapeMNK12825616_TVLayoutA1128161281128_TVLayoutB1256162561256"),
    ("kernel_cutlass_my_copy_tensorptrf32gmemo11_0", "my_copy"),
    ("", "unknown"),
    ("  ", "unknown"),
    ("<<<", "<<<"),
    ("()", "()"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "expected"), SHORT)
def test_short_names(name: str, expected: str) -> None:
    assert short_name(name) == expected


PIECES = st.sampled_from(
    [
        *("void ", "at::", "native::", "<unnamed>::", "(anonymous namespace)::", "<", ">", "("),
        *(")", "_Z", "N", "4", "{lambda(int)#1}", " ", "k", "::", ",", "cuda::", "99999999999"),
    ]
)


@given(name=strategies.TEXT | st.lists(PIECES, max_size=8).map("".join))
def test_no_name_is_empty(name: str) -> None:
    assert short_name(name).strip()
    assert isinstance(demangle(name), str)


@pytest.mark.skipif(sys.platform == "win32", reason="no demangler there; names stay as they are")
def test_mangled_names_are_demangled() -> None:
    """Nvprof's databases hold symbols."""
    assert demangle("_Z4gemmPf") == "gemm(float*)"
    assert demangle("_ZN2at6native13reduce_kernelILi512EEEvi").startswith("void at::native::reduce")


@pytest.mark.parametrize("name", ["gemm", "_Znot a symbol", "_Z", "_ZN", "_Z\0", "Z4gemmPf", ""])
def test_a_name_that_is_not_a_symbol_stays(name: str) -> None:
    assert demangle(name) == name
