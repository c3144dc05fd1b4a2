"""Sizes without types and flags, as emit_nvtx writes them: the kernels' names tell what is left."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import pyprof
from pyprof.gpu.dtypes import data_type
from pyprof.gpu.roles import training
from pyprof.marker import encode_seq
from tests.builders import Range, Work, nsys_db

if TYPE_CHECKING:
    from pathlib import Path

HALVES = (
    "void at::native::vectorized_elementwise_kernel<4, at::native::BinaryFunctor<c10::Half, "
    "c10::Half, c10::Half, at::native::binary_internal::MulFunctor<float> >, std::array<char*, 3> >"
)
FLOATS = "void at::native::vectorized_elementwise_kernel<4, at::native::MulFunctor<float> >(int)"
CAST = (
    "void at::native::unrolled_elementwise_kernel<at::native::direct_copy_kernel_cuda(at::"
    "TensorIteratorBase&)::{lambda(float)#1}, std::array<char*, 2>, at::native::memory::"
    "LoadWithCast<1>, at::native::memory::StoreWithCast<1> >(int)"
)


@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        (HALVES, "float16"),
        (CAST, None),
        ("nvjet_tst_128x256_64x4_2x1_v_bz_coopA_NNT", "bfloat16"),
        ("ampere_s1688gemm_tf32_128x128_nn", "float32"),
        ("void at::native::vectorized_elementwise_kernel<4, CUDAFunctor_add<double> >", "float64"),
        ("void softmax_warp_forward<c10::Half, c10::BFloat16, float, 8, false, false>", None),
        ("void at::native::vectorized_elementwise_kernel<4, CUDAFunctor_add<int> >", None),
        ("ampere_int8_i16816gemm_int8_128x128", None),  # its result is wider than its input
        ("my_kernel", None),
    ],
)
def test_the_type_of_a_kernels_data(name: str, dtype: str | None) -> None:
    """float32 beside a 16-bit type is what it computes in; two types, or a cast, tell nothing."""
    assert data_type(name) == dtype


@pytest.mark.parametrize(
    ("op", "sizes", "kernels", "flops", "moved"),
    [
        # 64 x 32 by 32 x 16, with a bias of 16: 512 + 2048 + 16 + 1024 elements of 2 bytes
        (
            "aten::addmm",
            [[16], [64, 32], [32, 16], [], []],
            ["nvjet_tst_64x16_64x4_v_bz_NNT", "cublasLt::splitKreduce_kernel<32, float>"],
            2 * 64 * 32 * 16,
            2 * (16 + 64 * 32 + 32 * 16 + 64 * 16),
        ),
        ("aten::mul", [[40], [40]], [HALVES], 40, 2 * 3 * 40),
        ("aten::mul", [[40], [40]], ["my_kernel"], 40, None),
        ("aten::mul", [[40], [40]], [HALVES, FLOATS], 40, None),
    ],
)
def test_bytes_by_the_names_of_an_ops_kernels(
    tmp_path: Path, op: str, sizes: list[object], kernels: list[str], flops: int, moved: int | None
) -> None:
    """Those that do its arithmetic; where they disagree or say nothing, bytes are not known."""
    text = encode_seq(op, seq=1, op_id=1, sizes=sizes)
    work = [
        Work(name, (1000 + 100 * at, 1050 + 100 * at), (10 + 10 * at, 15 + 10 * at))
        for at, name in enumerate(kernels)
    ]
    rows = pyprof.load(nsys_db(tmp_path / "net.sqlite", work, [Range(text, (0, 100))]))
    assert rows.flops.sum() == flops
    assert (rows.bytes.sum() if rows.bytes.notna().any() else None) == moved
    assert (rows.why == "unknown dtype").any() == (moved is None)


TRANSFORM = (
    "void at::native::batch_norm_transform_input_kernel<float, float, float, true, int>(int)"
)


@pytest.mark.parametrize(
    ("name", "trains"),
    [
        ("void cudnn::bn_fw_tr_1C11_kernel_NCHW<float, float, 512, true, 1>(float const*)", True),
        ("cudnn::batchnorm_fwtr_nhwc_semiPersist<__half, __half, float, float, 512>", True),
        ("void at::native::batch_norm_collect_statistics_kernel<InvStd, float, float>", True),
        ("void cudnn::bn_fw_inf_1C11_kernel_NCHW<float, float, true, 1>(float, float)", False),
        (TRANSFORM, None),
        ("void cudnn::bn_bw_1C11_kernel_new<float, float, float2, 512, true, 1>(float)", None),
    ],
)
def test_which_batch_norm_trains(name: str, *, trains: bool | None) -> None:
    """Computing statistics is training; what either does tells nothing."""
    assert training(name) is trains


@pytest.mark.parametrize(
    ("kernels", "each"),
    [
        # statistics 4, normalising 2, scale and shift 2 an element
        (("void at::native::batch_norm_collect_statistics_kernel<float>(int)", TRANSFORM), 8),
        (("void cudnn::bn_fw_inf_1C11_kernel_NCHW<float, float>(float)",), 4),
        ((TRANSFORM,), None),
    ],
)
def test_a_batch_norm_whose_flag_was_not_recorded(
    tmp_path: Path, kernels: tuple[str, ...], each: int | None
) -> None:
    """What its kernels tell; nothing where they do not."""
    sizes = [[2, 4, 3, 3], *[[4]] * 4, [], [], [], []]
    text = encode_seq("aten::native_batch_norm", seq=1, op_id=1, sizes=sizes)
    work = [
        Work(name, (1000 + 100 * at, 1050 + 100 * at), (10 + 10 * at, 15 + 10 * at))
        for at, name in enumerate(kernels)
    ]
    rows = pyprof.load(nsys_db(tmp_path / "net.sqlite", work, [Range(text, (0, 100))]))
    assert (rows.flops.sum() if rows.flops.notna().any() else None) == (each and each * 72)
    assert (rows.why == "training not recorded").any() == (each is None)
