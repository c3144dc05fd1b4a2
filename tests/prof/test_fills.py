"""What a fill writes and a bias's kernel moves is charged once; other helpers change nothing."""

from pathlib import Path

import pytest

import pyprof
from pyprof.marker import Call, Tensor, encode_op, encode_seq
from pyprof.ops import cost
from tests.builders import Range, Work, nsys_db

FILL = (
    "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>, "
    "std::array<char*, 1> >(int, at::native::FillFunctor<float>, std::array<char*, 1>)"
)
KERNEL = "void at::native::(anonymous namespace)::embedding_backward_feature_kernel<float>(long)"
PICK = "void at::native::(anonymous namespace)::indexSelectLargeIndex<float, long>(long)"
GRADIENT, IDS, TABLE = [10, 8], [10], [500, 8]
WHOLE, ZEROS = 4 * 80 + 8 * 10 + 4 * 4000, 4 * 4000  # go and indices read, the table's written


def _op(name: str, *sizes: list[int], dtypes: tuple[str, ...]) -> str:
    return encode_seq(name, op_id=1, sizes=list(sizes), dtypes=list(dtypes))


BACKWARD = encode_seq(
    "aten::embedding_dense_backward",
    op_id=1,
    sizes=[GRADIENT, IDS, [], [], []],
    dtypes=["float32", "int64", "", "", ""],
    inputs=["", "", "500", "-1", "False"],
)
PICKED = _op("aten::embedding", TABLE, IDS, dtypes=("float32", "int64"))


@pytest.mark.parametrize(
    ("outer", "inner", "fill", "moved"),
    [
        # an op of its own inside, a memset, a kernel without an op: each writes the table
        (BACKWARD, ("aten::zero_", TABLE), Work(FILL), [ZEROS, WHOLE - ZEROS]),
        (BACKWARD, None, Work("", kind="memset", bytes=ZEROS), [ZEROS, WHOLE - ZEROS]),
        (BACKWARD, None, Work(FILL), [ZEROS, WHOLE - ZEROS]),
        # something else is filled inside
        (BACKWARD, ("aten::zero_", [7]), Work(FILL), [4 * 7, WHOLE]),
        (BACKWARD, None, Work("", kind="memset", bytes=64), [64, WHOLE]),
        # no gradient: what it fills is its own business
        (PICKED, ("aten::zero_", [80]), Work(FILL), [4 * 80, 8 * 10 + 2 * 4 * 80]),
    ],
)
def test_zeros_are_written_by_the_fill(
    tmp_path: Path, outer: str, inner: tuple[str, list[int]] | None, fill: Work, moved: list[int]
) -> None:
    """The fill's bytes, and the rest, which is the kernel's."""
    ranges = [Range(outer, (0, 100))]
    if inner is not None:
        ranges.append(Range(_op(inner[0], inner[1], dtypes=("float32",)), (5, 30)))
    name = KERNEL if outer == BACKWARD else PICK
    work = [
        Work(fill.name, (1000, 1100), (10, 20), kind=fill.kind, bytes=fill.bytes),
        Work(name, (1200, 1300), (40, 50)),
    ]
    rows = pyprof.load(nsys_db(tmp_path / "net.sqlite", work, ranges))
    assert rows.bytes.tolist() == moved
    assert rows.flops[0] == 0


COPY = (
    "void at::native::elementwise_kernel<128, 4, at::native::gpu_kernel_impl_nocast<at::native::"
    "direct_copy_kernel_cuda(at::TensorIteratorBase&)::{lambda()#3}::operator()() const::"
    "{lambda(float)#1}> >(int)"
)
ADD = "void at::native::elementwise_kernel<128, 4, at::native::CUDAFunctor_add<float> >(int)"
SUM = "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float> >(int)"
GEMM, SPLIT = "ampere_sgemm_128x64_tn", "cublasLt::splitKreduce_kernel<32, float>"
CONV = "cudnn::implicit_convolve_sgemm<float>"
# 64 x 32 by 32 x 16 and a bias of 16: the factors, and what its kernel moves
FACTORS, BIASED = 4 * (64 * 32 + 32 * 16), 4 * (16 + 64 * 16)
ADDMM = _op("aten::addmm", [16], [64, 32], [32, 16], dtypes=("float32",) * 3)
UNBIASED = _op("aten::mm", [64, 32], [32, 16], dtypes=("float32",) * 2)
CONV2D = encode_op(
    Call(
        "torch",
        "conv2d",
        (
            *(Tensor((2, 4, 8, 8), "float32"), Tensor((6, 4, 3, 3), "float32")),
            Tensor((6,), "float32"),
        ),
    )
)
FILTERED, SHIFTED = 4 * (2 * 4 * 64 + 6 * 4 * 9), 4 * (6 + 2 * 6 * 36)


@pytest.mark.parametrize(
    ("op", "kernels", "moved"),
    [
        (ADDMM, (GEMM,), [FACTORS + BIASED]),
        (ADDMM, (COPY, GEMM), [BIASED, FACTORS]),
        (ADDMM, (COPY, GEMM, SPLIT), [BIASED, FACTORS, None]),
        (ADDMM, (COPY, COPY, GEMM), [BIASED, None, FACTORS]),  # the other makes a factor contiguous
        (UNBIASED, (COPY, GEMM), [None, FACTORS + 4 * 64 * 16]),
        (CONV2D, (CONV, ADD), [FILTERED, SHIFTED]),
        (CONV2D, (COPY, CONV), [None, FILTERED + SHIFTED]),
    ],
)
def test_a_kernel_of_the_bias_moves_the_bias_and_the_result(
    tmp_path: Path, op: str, kernels: tuple[str, ...], moved: list[int | None]
) -> None:
    """And the product's kernel the rest: together what the op call moves at least."""
    assert _moved(tmp_path, [Range(op, (0, 100))], kernels) == moved


def _moved(folder: Path, ranges: list[Range], kernels: tuple[str, ...]) -> list[int | None]:
    work = [
        Work(name, (1000 + 200 * at, 1100 + 200 * at), (10 + 10 * at, 15 + 10 * at))
        for at, name in enumerate(kernels)
    ]
    rows = pyprof.load(nsys_db(folder / "net.sqlite", work, ranges))
    return [None if size != size else int(size) for size in rows.bytes.astype(float)]  # noqa: PLR0124 - nan


def test_a_biass_gradient_is_a_sum_of_its_own(tmp_path: Path) -> None:
    """What comes in is read, the bias's gradient written; the products have the rest."""
    linear = Call(
        "torch.nn.functional",
        "linear",
        tuple(Tensor(shape, "float32") for shape in ((64, 32), (16, 32), (16,))),
    )
    ranges = [
        Range(encode_op(linear), (0, 9)),
        Range("AddmmBackward0, seq = 3, op_id = 2", (9, 100)),
        Range("aten::addmm, seq = 3, op_id = 1", (1, 8)),
    ]
    whole = cost(linear, "bprop").bytes
    assert whole is not None
    found = _moved(tmp_path, ranges, (GEMM, GEMM, SUM))
    assert found == [(whole - BIASED) // 2, (whole - BIASED) // 2, BIASED]
