"""Totals by op: they add up to all rows."""

import numpy as np
import pytest

from pyprof import schema
from pyprof.analysis.summary.op_totals import LongestRows, op_sums, op_times
from pyprof.answers.summary_answer import OpTime
from pyprof.arrays import Mask
from pyprof.inputs import source
from pyprof.marker import Call, Tensor, encode_op, encode_seq
from pyprof.prof.table import Table
from pyprof.render.text import first_screen
from tests.analysis.answered import answered
from tests.analysis.captures import (
    ADD,
    SGEMM_A100,
    US,
    Range,
    Work,
    capture,
    copy,
    op,
    table,
    training,
)


def top_ops(table: Table, rows: Mask | None = None) -> tuple[OpTime, ...]:
    return op_times(*op_sums(table, rows))


def test_ops_are_totalled_by_direction_and_line() -> None:
    found = top_ops(table(training(2)))
    named = [(op.op, op.dir, op.line, op.calls, op.kernels, op.time_ns // US) for op in found]
    assert named == [
        ("matmul", "fprop", "/src/net.py:5", 2, 2, 120),
        ("matmul", "fprop", "/src/net.py:6", 2, 2, 100),
        ("add", "fprop", "/src/train.py:20", 2, 2, 20),
        (None, "copy", "/src/train.py:20", 2, 2, 4),
    ]


def test_calls_are_those_of_the_op_that_rows_are_named_by() -> None:
    """An optimizer's step is one call, though each op in it has its own cost."""
    x = Tensor((4,), "float32")
    step = encode_op(Call("AdamW", "step", ()))
    ranges = [Range(step, (at, at + 90 * US)) for at in (0, 100 * US)]
    launches = [at + inner for at in (0, 100 * US) for inner in (10 * US, 20 * US, 30 * US)]
    ranges += [op("add_", (at, at + 5 * US), x, x) for at in launches]
    work = [Work((at + 6 * US, at + 7 * US), (at + US, at + 2 * US), "add") for at in launches]
    captured = table(capture([*work, Work((300 * US, 301 * US))], ranges=ranges))
    assert len(np.unique(captured.costs.call)) == 7
    assert [(found.op, found.calls, found.kernels) for found in top_ops(captured)] == [
        ("AdamW.step", 2, 6), (None, 1, 1),
    ]  # fmt: skip


def test_ops_in_a_backward_of_the_users_own_are_calls_of_their_own() -> None:
    """They are named by their markers, not by the node that calls them."""
    x = Tensor((4,), "float32")
    node = encode_seq("autograd::engine::evaluate_function: SwishBackward", seq=1)
    at = [begin * US for begin in (10, 20, 30)]
    work = [Work((begin + 6 * US, begin + 7 * US), (begin + US, begin + 2 * US)) for begin in at]
    ranges = [Range(node, (0, 50 * US)), *(op("mul", (begin, begin + 5 * US), x) for begin in at)]
    (found,) = top_ops(table(capture(work, ranges=ranges)))
    assert (found.op, found.dir, found.calls) == ("mul", "bprop", 3)


def test_rates_are_over_the_time_of_known_rows() -> None:
    """2 * 512^3 FLOPs in 60 us; an unnamed op has its kernel's name."""
    matmul, *_, moved = top_ops(table(training(1)))
    assert matmul.flops_per_s == pytest.approx(2 * 512**3 / 60e-6)
    assert matmul.bytes_per_s == pytest.approx(3 * 512 * 512 * 4 / 60e-6)
    assert matmul.efficiency == pytest.approx(2 * 512**3 / 60e-6 / 19.5e12, rel=0.01)
    assert (matmul.bound, matmul.tc) == ("compute", "0")
    assert (moved.kernel, moved.efficiency, moved.bound, moved.tc) == (
        "[CUDA_memcpy_DtoH]", None, None, None,
    )  # fmt: skip


def test_the_time_of_an_ops_helpers_is_the_ops() -> None:
    """A product of 60 us and its reduction of 20 us: all rates are over 80 us."""
    x = Tensor((512, 512), "float32")
    work = [
        Work((20 * US, 80 * US), (1 * US, 2 * US), SGEMM_A100),
        Work((80 * US, 100 * US), (3 * US, 4 * US), "cublasLt::splitKreduce_kernel<32, float>"),
    ]
    (found,) = top_ops(table(capture(work, ranges=[op("mm", (0, 10 * US), x, x)])))
    assert (found.kernel, found.calls, found.kernels) == (SGEMM_A100, 1, 2)
    assert found.flops_per_s == pytest.approx(2 * 512**3 / 80e-6)
    assert found.bytes_per_s == pytest.approx(3 * 512 * 512 * 4 / 80e-6)
    assert found.efficiency == pytest.approx(2 * 512**3 / 80e-6 / 19.5e12, rel=0.01)


@pytest.mark.parametrize(("took_us", "share"), [(1, 3.2), (3, 1.08)], ids=["far", "a little"])
def test_a_rate_far_above_the_peak_is_remarked_on(took_us: int, share: float) -> None:
    """6.3 MB in 1 us are 4 times the memory's peak; slightly above may be its clock."""
    x = Tensor((512, 1024), "float32")
    work = [Work((20 * US, 20 * US + took_us * 1300), (1 * US, 2 * US), ADD)]
    net = capture(work, ranges=[op("add", (0, 10 * US), x, x)])
    (found,) = top_ops(table(net))
    assert found.efficiency == pytest.approx(share, rel=0.1)
    answer = answered(source.Source(table(net), net))
    remark = "Above the peak: add: faster than DRAM: its data was in cache, or its bytes are over"
    assert (remark in " ".join(first_screen.ops_and_lines(answer, 15))) == (share > 2)
    assert (found.above_peak is not None) == (share > 2)


def test_fills_far_above_the_peak_are_remarked_on() -> None:
    """As a whole: one of a gigabyte in no time, next to some that take most of theirs."""
    work = [
        Work((at, at + 2 * US), (at - 9, at - 5), "[CUDA memset]", schema.MEMSET, bytes=size)
        for at, size in ((10 * US, 1 << 30), (20 * US, 64), (30 * US, 64), (40 * US, 64))
    ]
    (found,) = top_ops(table(capture(work)))
    assert found.efficiency is None
    assert found.above_peak == "fills can be compressed in memory, or go on after the recorded time"


def test_a_kernel_without_a_marker_has_no_rates() -> None:
    (found,) = top_ops(table(capture([Work((0, 10))])))
    rates = (found.op, found.line, found.flops_per_s, found.bytes_per_s, found.efficiency)
    assert rates == (None,) * 5


def test_chosen_rows_alone_are_totalled() -> None:
    whole = table(capture([Work((0, 10)), copy((20, 30), None)]))
    (found,) = top_ops(whole, np.array([False, True]))
    assert (found.dir, found.share) == ("copy", 1.0)


def test_the_longest_chosen_rows_of_each_op_are_kept() -> None:
    work = [Work((start, start + ns)) for start, ns in ((0, 5), (10, 9), (20, 7), (30, 7), (40, 6))]
    whole = table(capture(work))
    (found,) = top_ops(whole)
    assert found.row_ids == (2, 3, 4)
    (found,) = top_ops(whole, np.array([True, False, False, True, True]))
    assert found.row_ids == (4, 5, 1)


def test_row_numbers_continue_in_a_second_capture() -> None:
    a = LongestRows({("mm",): ((9, 1), (3, 2))}, 10)
    b = LongestRows({("mm",): ((7, 1),), ("relu",): ((1, 4),)}, 5)
    merged = a.merged(b)
    assert merged.row_ids(("mm",)) == (1, 11, 2)
    assert merged.row_ids(("relu",)) == (14,)
    assert merged.row_count == 15
