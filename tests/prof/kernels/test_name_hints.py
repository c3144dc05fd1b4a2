"""Types and flags that emit_nvtx leaves out follow from kernel names."""

from pathlib import Path

import numpy as np
import pytest

import pyprof
from pyprof.gpu.kernel_dtypes import data_type, moved_type
from pyprof.marker import Call, Tensor, encode_op, encode_seq
from pyprof.prof.kernels.name_hints import agreed_value
from tests.commands import run
from tests.prof.kernels_in_ranges import rows_of


def test_a_group_agrees_on_its_only_value_above_0() -> None:
    group, value = np.array([[0, 0, 1, 1, 2], [3, 0, 1, 2, 0]], np.int32)
    assert agreed_value(group, value).tolist() == [3, 3, 0, 0, 0]
    assert not len(agreed_value(group[:0], value[:0]))


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
    """float32 beside a 16-bit type is that of its arithmetic; two types or a cast are unclear."""
    assert data_type(name) == dtype


@pytest.mark.slow
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
    """Those of its compute kernels; if they disagree or have no type, bytes are unknown."""
    rows = rows_of(tmp_path, [encode_seq(op, seq=1, op_id=1, sizes=sizes)], *kernels)
    assert rows.flops.sum() == flops
    assert (rows.bytes.sum() if rows.bytes.notna().any() else None) == moved
    assert (rows.why == "unknown dtype").any() == (moved is None)


BF16_GEMM = "ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_stages_32x5_tn"
SOFTMAX = "void (anonymous namespace)::softmax_warp_forward<{0}, {0}, float, 5, false, false>(int)"
FUNCTIONAL = "torch.nn.functional"


@pytest.mark.parametrize(
    ("op", "shapes", "stated", "kernels", "dtype", "elements"),
    [
        ("linear", [(64, 32), (16, 32), (16,)], "float32", [CAST, CAST, BF16_GEMM], "bfloat16",
         64 * 32 + 16 * 32 + 16 + 64 * 16),
        ("softmax", [(64, 32)], "bfloat16", [CAST, SOFTMAX.format("float")], "float32",
         2 * 64 * 32),
        ("softmax", [(64, 32)], "bfloat16", [SOFTMAX.format("c10::BFloat16")], "bfloat16",
         2 * 64 * 32),
        ("linear", [(64, 32), (16, 32)], "float64", [BF16_GEMM], "float64",
         64 * 32 + 16 * 32 + 64 * 16),  # autocast leaves it alone
    ],
)  # fmt: skip
def test_autocast_converts_operands_behind_a_marker(
    tmp_path: Path,
    op: str,
    shapes: list[tuple[int, ...]],
    stated: str,
    kernels: list[str],
    dtype: str,
    elements: int,
) -> None:
    """The op's own kernel shows the type that it computes in; casts count no bytes."""
    tensors = tuple(Tensor(shape, stated) for shape in shapes)
    call = Call(FUNCTIONAL, op, (*tensors, -1) if op == "softmax" else tensors)
    rows = rows_of(tmp_path, [encode_op(call)], *kernels)
    casts = rows.kernel.str.contains("unrolled")
    assert rows.bytes[casts].isna().all()
    size = {"float64": 8, "float32": 4, "bfloat16": 2}[dtype]
    assert rows.bytes[~casts].tolist() == [size * elements]
    assert f"type={dtype}" in rows.params.iloc[-1]


TRANSFORM = (
    "void at::native::batch_norm_transform_input_kernel<float, float, float, true, int>(int)"
)


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
    sizes = [[2, 4, 3, 3], *[[4]] * 4, [], [], [], []]
    text = encode_seq("aten::native_batch_norm", seq=1, op_id=1, sizes=sizes)
    rows = rows_of(tmp_path, [text], *kernels)
    assert (rows.flops.sum() if rows.flops.notna().any() else None) == (each and each * 72)
    assert (rows.why == "training not recorded").any() == (each is None)


CAT = (
    "void at::native::(anonymous namespace)::CatArrayBatchedCopy<{0}, unsigned int, 3, 128, 1>"
    "({0}*, at::native::(anonymous namespace)::CatArrInputTensorMetadata<{0}, unsigned int>, int)"
)
LIST_COPY = (
    "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<TensorListMetadata<2>, "
    "at::native::(anonymous namespace)::UnaryOpFunctor<long, 2, 1, 1>, at::native::Copy<{}, {}> >"
)
OPAQUE = "at::native::(anonymous namespace)::OpaqueType<{0}>"
COPIED = (
    "void at::native::elementwise_kernel<128, 4, at::native::gpu_kernel_impl_nocast<at::native::"
    "direct_copy_kernel_cuda(at::TensorIteratorBase&)::{lambda()#3}::operator()() const::"
    "{lambda(long)#1}>(at::TensorIteratorBase&)::{lambda(int)#1}>(int)"
)


@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        (CAT.format("bool"), "bool"),
        (CAT.format("long"), "int64"),
        (CAT.format("c10::BFloat16"), "bfloat16"),
        (CAT.format("c10::complex<float>"), "complex64"),
        (CAT.format(OPAQUE.format("2u")), "opaque2"),
        (CAT.format(OPAQUE.format("(unsigned int)16")), "opaque16"),  # as nsys spells it
        (
            "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<int>>",
            "int32",
        ),
        ("void at::native::vectorized_elementwise_kernel<4, FillFunctor<unsigned char>>", "uint8"),
        ("void at::native::indexSelectLargeIndex<float, long, unsigned int, 2, 2>", "float32"),
        (COPIED, "int64"),
        (LIST_COPY.format("long", "long"), "int64"),
        (LIST_COPY.format("long", "int"), None),  # it converts
        (COPIED.replace("impl_nocast<", "impl<"), None),  # it may convert
        (CAST, None),
        ("void elementwise_kernel_with_index<int, at::native::arange_cuda_out>", None),
        ("void at::native::vectorized_gather_kernel<16, long>(char*, char*, long*)", None),
        ("my_kernel<bool>", None),
    ],
)
def test_the_type_of_what_a_kernel_moves(name: str, dtype: str | None) -> None:
    """Integers, too; if several types of one width fit, only the width is known."""
    assert moved_type(name) == dtype


@pytest.mark.parametrize(
    ("op", "kernel", "moved"),
    [
        ("aten::cat", CAT.format("bool"), 2 * 30),
        ("aten::cat", CAT.format("long"), 8 * 2 * 30),
        ("aten::stack", CAT.format(OPAQUE.format("2u")), 2 * 2 * 30),
        ("aten::cat", CAT.format("float"), 4 * 2 * 30),
        ("aten::cat", "my_kernel", None),
    ],
)
def test_lists_of_tensors_have_the_type_that_the_kernel_moves(
    tmp_path: Path, op: str, kernel: str, moved: int | None
) -> None:
    text = encode_seq(op, op_id=1, sizes=[[[4, 5], [2, 5]], []], dtypes=["", ""], inputs=["", "0"])
    rows = rows_of(tmp_path, [text], kernel)
    assert rows.flops.tolist() == [0]
    assert (None if rows.bytes.isna().all() else rows.bytes.sum()) == moved


CSRMM = "void cusparse::csrmm_alg2_kernel<cusparse::CsrMMPolicy<int, float, float>, true>(int)"
_MM = encode_seq("aten::mm", seq=1, op_id=1, sizes=[[40, 60], [60, 5]])
_STORED = Tensor((40, 60), "float32", subclass="sparse_csr", nnz=10, nbytes=448)
_OUTER = encode_op(Call("torch", "mm", (_STORED, Tensor((60, 5), "float32"))))


@pytest.mark.parametrize(
    ("ranges", "kernel", "flops", "reason"),
    [
        ([_MM], "ampere_sgemm_128x64_tn", 2 * 40 * 60 * 5, None),
        ([_MM], CSRMM, None, "sparse: how many elements are stored is not recorded"),
        ([_OUTER, _MM], CSRMM, 2 * 10 * 5, None),  # the marker around it knows
        ([_OUTER], CSRMM, 2 * 10 * 5, None),
    ],
)
def test_a_sparse_product_is_not_counted_as_a_dense_one(
    tmp_path: Path, ranges: list[str], kernel: str, flops: int | None, reason: str | None
) -> None:
    """emit_nvtx writes no layout: the kernel's name or the marker around it decides."""
    rows = rows_of(tmp_path, ranges, kernel)
    assert (None if rows.flops.isna().all() else rows.flops.sum()) == flops
    if reason:
        assert rows.why.tolist() == [reason]
        assert rows.bytes.isna().all()


@pytest.mark.parametrize(("kernel", "moved"), [(CAST, None), (COPIED, 2 * 4 * 2048)])
def test_a_cast_has_two_types_so_that_the_markers_alone_tells_no_bytes(
    tmp_path: Path, kernel: str, moved: int | None
) -> None:
    marker = encode_op(Call("torch", "addmm", (Tensor((64, 32), "float32"),)))
    copy = encode_seq("aten::copy_", seq=1, op_id=1, sizes=[[64, 32], [64, 32], []])
    rows = rows_of(tmp_path, [marker, copy], kernel)
    assert (None if rows.bytes.isna().all() else rows.bytes.sum()) == moved


@pytest.mark.slow
def test_autocast_on_a_cpu_converts_operands_inside_an_op(tmp_path: Path) -> None:
    """torch.profiler records the float32 of the outer op, and what the inner one multiplied."""
    torch = pytest.importorskip("torch")
    rows, weight, bias = torch.ones(64, 32), torch.ones(16, 32), torch.ones(16)
    with torch.profiler.profile(record_shapes=True) as made, torch.autocast("cpu"):
        torch.nn.functional.linear(rows, weight, bias)
    made.export_chrome_trace(str(tmp_path / "cpu.json"))
    loaded = pyprof.load(tmp_path / "cpu.json")
    product = int(loaded.idx[loaded.flops > 0].iloc[0])
    explained = run("prof", "--explain", str(product), tmp_path / "cpu.json").stdout
    assert "by the ops inside it: dtype bfloat16" in explained
    assert loaded.bytes.dropna().tolist() == [2 * (64 * 32 + 16 * 32 + 16 + 64 * 16)]
    assert set(loaded.params) == {"M=16,N=64,K=32,type=bfloat16,"}
