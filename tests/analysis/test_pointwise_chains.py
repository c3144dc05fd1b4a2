"""Chains of point-wise kernels, and their time if fused."""

import numpy as np
import pytest

from pyprof.analysis.advice.rule_context import RuleContext
from pyprof.analysis.pointwise_chains import chain_ns, pointwise_chains
from pyprof.marker import Tensor
from tests.analysis.captures import ADD, GEMM, US, Range, Work, capture, op, table, trace

_SOFTMAX = "void (anonymous namespace)::softmax_warp_forward<float, float, float, 10, false>"


def _case(*names: str) -> RuleContext:
    work = [
        Work((at * 20 * US, (at * 20 + 10) * US), (at, at + 1), name)
        for at, name in enumerate(names, 1)
    ]
    return RuleContext(table(capture(work)))


def test_a_product_ends_a_chain_and_a_single_kernel_is_none() -> None:
    """Softmax belongs to the second one."""
    case = _case(_SOFTMAX, ADD, GEMM, ADD, _SOFTMAX, GEMM, ADD)
    rows, chain = pointwise_chains(case, case.chosen)
    assert rows.tolist() == [0, 1, 3, 4]
    assert chain.tolist() == [0, 0, 1, 1]


@pytest.mark.parametrize(
    "name", ["aten::_fft_r2c", "aten::cumsum", "aten::quantize_per_tensor", "aten::multinomial"]
)
def test_what_compilers_leave_to_libraries_ends_a_chain(name: str) -> None:
    """As a draw from a whole row, unlike the random numbers of a dropout."""
    dropout = "void at::native::<unnamed>::fused_dropout_kernel_vec<float, float, 1, 4>()"
    case = _case(ADD, name, _SOFTMAX, dropout)
    assert pointwise_chains(case, case.chosen)[0].tolist() == [2, 3]


@pytest.mark.parametrize("line", ["/src/net.py:7", None])
def test_a_loop_over_tensors_is_no_chain(line: str | None) -> None:
    """An op that repeats on one line; without lines, one that repeats with the same sizes."""
    sizes = (4, 4, 8) if line is None else (4, 8, 16)
    ranges = [
        each
        for place, size in enumerate(sizes)
        for each in (
            op("relu", (place * 100, place * 100 + 50), Tensor((size,), "float32")),
            *([trace((place * 100, place * 100 + 50), line)] if line else ()),
        )
    ]
    work = [
        Work((1000 + place * 100, 1050 + place * 100), (place * 100 + 10, place * 100 + 20), ADD)
        for place in range(3)
    ]
    case = RuleContext(table(capture(work, ranges=ranges)))
    rows = pointwise_chains(case, case.chosen)[0].tolist()
    assert rows == ([1, 2] if line is None else [])


def test_a_chain_ends_with_its_step() -> None:
    """What the next step begins with is not computed from it at once."""
    work = [
        Work((1000 + at * 100, 1050 + at * 100), (at * 100 + 10, at * 100 + 20), name)
        for at, name in enumerate((_SOFTMAX, ADD, _SOFTMAX, ADD))
    ]
    steps = [Range(f"step {number}", (number * 200, number * 200 + 199)) for number in range(2)]
    case = RuleContext(table(capture(work, ranges=steps)))
    rows, chain = pointwise_chains(case, case.chosen)
    assert (rows.tolist(), chain.tolist()) == ([0, 1, 2, 3], [0, 0, 1, 1])


def test_bytes_between_two_kernels_are_moved_no_more() -> None:
    """Two that move 30 MB each move 30 as one; one of 3 and one of 30 move 30.

    No kernel takes less than its overhead.
    """
    moved, chain = np.array([30e6, 30e6, 3e6, 30e6, 1e3, 1e3]), np.array([0, 0, 1, 1, 2, 2])
    fused = chain_ns(np.full(6, 1e6), moved, chain, np.full(6, 1e12))
    assert fused == pytest.approx([*[30e6 / 0.75e12 * 1e9] * 2, 2500])


def test_without_bytes_or_bandwidth_a_chain_takes_as_long_as_its_longest() -> None:
    ns, unknown = np.array([4e3, 9e3]), np.full(2, np.nan)
    for moved, bandwidth in ((unknown, np.full(2, 1e12)), (np.full(2, 1e6), unknown)):
        assert chain_ns(ns, moved, np.zeros(2, np.int64), bandwidth).tolist() == [9e3]


def test_the_bandwidth_of_a_row_is_its_device_s() -> None:
    """As reported by the driver."""
    assert _case(ADD).bandwidth.tolist() == [1_555_200_000_000]
