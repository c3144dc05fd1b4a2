"""Costs are shared among an op call's kernels, and add up to the call's cost."""

from collections import defaultdict
from pathlib import Path

import pandas as pd
import pytest

import pyprof
from pyprof import ops
from pyprof.arrays import MISSING
from pyprof.marker import Call, Tensor, encode_op, encode_seq
from pyprof.ops import cost
from pyprof.parse.record_file import load
from pyprof.prof.costs import Costs
from pyprof.prof.table import Table
from tests.builders import CAPTURES, Range, Work, nsys_db
from tests.commands import run
from tests.known import known
from tests.prof.kernels_in_ranges import called, rows_of

HALF = "float16"
LINEAR = Call(
    "torch.nn.functional",
    "linear",
    (Tensor((64, 1024), HALF), Tensor((4096, 1024), HALF), Tensor((4096,), HALF)),
)
RELU = Call("torch.nn.functional", "relu", (Tensor((64, 4096), HALF),))
GEMM = "sm80_xmma_gemm_f16f16_f16f32_f32_tn_n_tilesize128x128x32"
SPLIT_K = "void splitKreduce_kernel<32, 16, int, float, __half>(x)"
POINTWISE = "void at::native::vectorized_elementwise_kernel<4, relu>(int)"


def capture(folder: Path, *calls: tuple[Call, tuple[tuple[str, int], ...]]) -> Path:
    """Write op calls, each with its kernels (name, duration), one after the other."""
    return called(folder / "net.sqlite", *((encode_op(call), kernels) for call, kernels in calls))


def costs(path: Path) -> Costs:
    return Table(load(str(path))).costs


@pytest.mark.parametrize(
    "kernels",
    [
        ((GEMM, 900),),
        ((GEMM, 900), (SPLIT_K, 100)),
        ((GEMM, 333), (GEMM, 334), (GEMM, 1)),
        ((GEMM, 7), (SPLIT_K, 3), (GEMM, 11), (POINTWISE, 2)),
        (("nobody_knows_this_kernel", 5), ("nor_this", 0)),
    ],
)
def test_the_kernels_of_a_call_add_up_to_its_cost(
    kernels: tuple[tuple[str, int], ...], tmp_path: Path
) -> None:
    expected = ops.cost(LINEAR)
    assert (expected.flops, expected.bytes) != (None, None)
    found = costs(capture(tmp_path, (LINEAR, kernels)))
    assert sum(found.flops) == expected.flops
    assert sum(value for value in found.bytes if value != MISSING) == expected.bytes


def test_two_calls_are_charged_twice_and_their_helpers_nothing(tmp_path: Path) -> None:
    """A split-K reduction has 0 FLOPs: the product's kernel has them all."""
    kernels = ((GEMM, 900), (SPLIT_K, 100))
    found = costs(capture(tmp_path, (LINEAR, kernels), (LINEAR, kernels)))
    assert found.flops.tolist() == [ops.cost(LINEAR).flops, 0] * 2
    assert found.helper.tolist() == [False, True] * 2
    assert len(set(found.call.tolist())) == 2


def test_equal_kernels_share_by_time(tmp_path: Path) -> None:
    """Three times as long, three times the FLOPs."""
    found = costs(capture(tmp_path, (LINEAR, ((GEMM, 750), (GEMM, 250)))))
    whole = known(ops.cost(LINEAR).flops)
    assert found.flops.tolist() == [whole * 3 // 4, whole // 4]


def test_an_unknown_op_has_no_cost_and_a_reason(tmp_path: Path) -> None:
    call = Call("mylib", "mystery", (Tensor((2, 3), HALF),))
    path = capture(tmp_path, (call, (("mystery_kernel", 9),)), (RELU, ((POINTWISE, 9),)))
    done = run("prof", "--csv", "-c", "flops,bytes,why", path)
    first, second = done.rows
    assert (first["FLOPs"], first["Bytes"]) == ("", "")
    assert "unknown op mystery" in first["Why"]
    assert (int(second["FLOPs"]), int(second["Bytes"])) == (64 * 4096, 2 * 2 * 64 * 4096)
    text = run("prof", "-q", "-c", "flops,bytes", path).stdout.splitlines()
    assert text[1] == "- -"
    assert "unknown op mystery (50.0 % in 1)" in done.stderr


FILES = {
    # capture: at least so many op calls have FLOPs or bytes
    "nvprof-v100-apex/net.sql": 50,
    "nvprof-v100-apex/net.dict": 50,
    "nsys2024.2-a100-pyprof-markers/net.sqlite": 50,
    "nsys2026.2-h100x2-fsdp/net.sqlite": 0,  # its texts hold no shapes
}


@pytest.mark.few(2)
@pytest.mark.slow
@pytest.mark.parametrize("name", FILES)
def test_real_op_calls_are_charged_once(name: str) -> None:
    """The kernels of a call, or those and a memset, add up to its cost."""
    path = CAPTURES / name
    if not path.is_file():
        pytest.skip("the shared captures are not here")
    table = Table(load(str(path)))
    found = table.costs
    rows: dict[int, list[int]] = defaultdict(list)
    for row, call in enumerate(found.call.tolist()):
        rows[call].append(row)
    kind = table.records.arrow("kind").fill_null("kernel").to_pylist()
    memsets = {int(found.bytes[row]) for row, what in enumerate(kind) if what == "memset"}
    checked = 0
    for members in rows.values():
        kernels = [row for row in members if kind[row] == "kernel"]
        works = {int(found.work.index[row]) for row in kernels}
        if len(works) != 1:
            assert not works  # one call is one piece of work
            continue
        arithmetic = [row for row in kernels if not found.helper[row]]
        cost = found.work.at(kernels[0]).cost(len(arithmetic) or None)
        for values, whole in ((found.flops, cost.flops), (found.bytes, cost.bytes)):
            shared = [int(values[row]) for row in kernels]
            if whole is None:
                assert set(shared) <= {MISSING}
            elif arithmetic:
                missing = whole - sum(max(value, 0) for value in shared)
                by_memset = values is found.bytes and missing == cost.written in memsets
                assert missing == 0 or by_memset
                checked += 1
        assert all(found.flops[row] <= 0 for row in kernels if found.helper[row])
    assert checked >= FILES[name]


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


@pytest.mark.slow
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
SGEMM, SPLIT = "ampere_sgemm_128x64_tn", "cublasLt::splitKreduce_kernel<32, float>"
CONV = "cudnn::implicit_convolve_sgemm<float>"
# 64 x 32 by 32 x 16 and a bias of 16: the factors, and what its kernel moves
FACTORS, BIASED = 4 * (64 * 32 + 32 * 16), 4 * (16 + 64 * 16)
ADDMM = _op("aten::addmm", [16], [64, 32], [32, 16], dtypes=("float32",) * 3)
UNBIASED = _op("aten::mm", [64, 32], [32, 16], dtypes=("float32",) * 2)
CONV_SIZES = (2, 4, 8, 8), (6, 4, 3, 3), (6,)
CONV2D = encode_op(Call("torch", "conv2d", tuple(Tensor(s, "float32") for s in CONV_SIZES)))
FILTERED, SHIFTED = 4 * (2 * 4 * 64 + 6 * 4 * 9), 4 * (6 + 2 * 6 * 36)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("op", "kernels", "moved"),
    [
        (ADDMM, (SGEMM,), [FACTORS + BIASED]),
        (ADDMM, (COPY, SGEMM), [BIASED, FACTORS]),
        (ADDMM, (COPY, SGEMM, SPLIT), [BIASED, FACTORS, None]),
        # the other copy makes a factor contiguous
        (ADDMM, (COPY, COPY, SGEMM), [BIASED, None, FACTORS]),
        (UNBIASED, (COPY, SGEMM), [None, FACTORS + 4 * 64 * 16]),
        (CONV2D, (CONV, ADD), [FILTERED, SHIFTED]),
        (CONV2D, (COPY, CONV), [None, FILTERED + SHIFTED]),
    ],
)
def test_a_kernel_of_the_bias_moves_the_bias_and_the_result(
    tmp_path: Path, op: str, kernels: tuple[str, ...], moved: list[int | None]
) -> None:
    """And the product's kernel the rest; together they move the op call's minimum."""
    assert _moved(rows_of(tmp_path, [op], *kernels)) == moved


def _moved(rows: pd.DataFrame) -> list[int | None]:
    return [None if size != size else int(size) for size in rows.bytes.astype(float)]  # noqa: PLR0124 - nan


def test_the_gradient_of_a_bias_is_a_sum_of_its_own(tmp_path: Path) -> None:
    """The incoming gradient is read and the bias's written; the products have the rest."""
    given = tuple(Tensor(shape, "float32") for shape in ((64, 32), (16, 32), (16,)))
    linear = Call("torch.nn.functional", "linear", given)
    ranges = [
        Range(encode_op(linear), (0, 9)),
        Range("AddmmBackward0, seq = 3, op_id = 2", (9, 100)),
        Range("aten::addmm, seq = 3, op_id = 1", (1, 8)),
    ]
    whole = known(cost(linear, "bprop").bytes)
    work = [
        Work(name, (1000 + 200 * at, 1100 + 200 * at), (10 + 10 * at, 15 + 10 * at))
        for at, name in enumerate((SGEMM, SGEMM, SUM))
    ]
    moved = _moved(pyprof.load(nsys_db(tmp_path / "net.sqlite", work, ranges)))
    assert moved == [(whole - BIASED) // 2, (whole - BIASED) // 2, BIASED]


GO, X, W = [2, 6, 8, 8], [2, 4, 8, 8], [6, 4, 3, 3]
ONE = 2 * (6 * 4 * 3 * 3) * 2 * 8 * 8
MOVED = 4 * (2 * 6 * 64 + 2 * 4 * 64 + 6 * 4 * 9)
DGRAD = "sm80_xmma_dgrad_implicit_gemm_tf32f32_tf32f32_f32_nhwckrsc_nhwc_tilesize128x64x16_tensor"
WGRAD = "sm80_xmma_wgrad_implicit_gemm_tf32f32_tf32f32_f32_nhwckrsc_nhwc_tilesize128x64x16_tensor"
LAYOUT = "void cudnn::ops::nchwToNhwcKernel<float, float>(int)"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mask", "kernels", "flops", "moved"),
    [
        # each gradient needs the same, whichever kernel is the faster; one kernel is one gradient
        ("", (DGRAD, WGRAD), [ONE, ONE], [MOVED, MOVED]),
        ("", (LAYOUT, DGRAD, WGRAD), [0, ONE, ONE], [None, MOVED, MOVED]),
        ("", (WGRAD,), [ONE], [MOVED]),
        ("[True, True, False]", (DGRAD, WGRAD), [ONE, ONE], [MOVED, MOVED]),
        ("[False, True, False]", (WGRAD,), [ONE], [MOVED]),
        ("[True, True, False]", (WGRAD,), [2 * ONE], [2 * MOVED]),  # counted as both
    ],
)
def test_each_gradient_costs_the_same(
    tmp_path: Path, mask: str, kernels: tuple[str, ...], flops: list[int], moved: list[int | None]
) -> None:
    """Counted by the recorded mask, else by the number of kernels that compute."""
    text = encode_seq(
        "aten::convolution_backward",
        op_id=1,
        sizes=[GO, X, W, *[[]] * 8],
        dtypes=[*["float32"] * 3, *[""] * 8],
        inputs=["", "", "", "", "[1, 1]", "[1, 1]", "[1, 1]", "False", "[0, 0]", "1", mask],
    )
    timed = [(name, 100 + 200 * at) for at, name in enumerate(kernels)]
    rows = pyprof.load(called(tmp_path / "net.sqlite", (text, timed)))
    assert rows.flops.tolist() == flops
    assert rows.bytes.astype(object).where(rows.bytes.notna(), None).tolist() == moved
