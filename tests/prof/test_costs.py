"""Costs are shared among an op call's kernels: as much as the call costs, once."""

import csv
import io
from collections import defaultdict
from pathlib import Path

import pytest

from pyprof import ops
from pyprof.arrays import MISSING
from pyprof.marker import Call, Tensor, encode_op
from pyprof.parse.record_file import load
from pyprof.prof.costs import Costs
from pyprof.prof.table import Table
from tests.builders import CAPTURES, Range, Work, nsys_db
from tests.commands import run

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
    work, ranges, clock = [], [], 1000
    for call, kernels in calls:
        start = clock
        for name, duration in kernels:
            at = (clock + 9000, clock + 9000 + duration)
            work.append(Work(name, at=at, call=(clock + 10, clock + 20)))
            clock += 10_000
        ranges.append(Range(encode_op(call), (start, clock - 1)))
    return nsys_db(folder / "net.sqlite", work, ranges)


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
    """Exactly, for FLOPs and bytes, however many kernels a call launched."""
    expected = ops.cost(LINEAR)
    assert (expected.flops, expected.bytes) != (None, None)
    found = costs(capture(tmp_path, (LINEAR, kernels)))
    assert sum(found.flops) == expected.flops
    assert sum(value for value in found.bytes if value != MISSING) == expected.bytes


def test_two_calls_are_charged_twice(tmp_path: Path) -> None:
    """The same op with the same shapes is another call, with its own cost."""
    kernels = ((GEMM, 900), (SPLIT_K, 100))
    found = costs(capture(tmp_path, (LINEAR, kernels), (LINEAR, kernels)))
    expected = ops.cost(LINEAR).flops
    assert expected is not None
    assert sum(found.flops) == 2 * expected
    assert len(set(found.call.tolist())) == 2


def test_helpers_do_no_arithmetic(tmp_path: Path) -> None:
    """A split-K reduction gets 0 FLOPs: the product's kernel has them all."""
    found = costs(capture(tmp_path, (LINEAR, ((GEMM, 900), (SPLIT_K, 100)))))
    assert found.flops.tolist() == [ops.cost(LINEAR).flops, 0]
    assert found.helper.tolist() == [False, True]


def test_equal_kernels_share_by_time(tmp_path: Path) -> None:
    """Three times as long, three times the FLOPs."""
    found = costs(capture(tmp_path, (LINEAR, ((GEMM, 750), (GEMM, 250)))))
    whole = ops.cost(LINEAR).flops
    assert whole is not None
    assert found.flops.tolist() == [whole * 3 // 4, whole // 4]


def test_an_unknown_op_has_no_cost_and_a_reason(tmp_path: Path) -> None:
    """Unknown is empty, never 0; the reason is in `why`."""
    call = Call("mylib", "mystery", (Tensor((2, 3), HALF),))
    path = capture(tmp_path, (call, (("mystery_kernel", 9),)), (RELU, ((POINTWISE, 9),)))
    done = run("prof", "--csv", "-c", "flops,bytes,why", path)
    first, second = csv.DictReader(io.StringIO(done.stdout))
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


@pytest.mark.parametrize("name", FILES)
def test_real_op_calls_are_charged_once(name: str) -> None:
    """Per op call: the sum over its kernels, or those and a memset, is the cost of the call."""
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
        works = {int(found.work_of[row]) for row in kernels}
        if len(works) != 1:
            assert not works  # one call is one piece of work
            continue
        arithmetic = [row for row in kernels if not found.helper[row]]
        cost = found.work[works.pop()].cost(len(arithmetic) or None)
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
