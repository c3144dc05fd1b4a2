"""MFU, HFU and MBU, compared with figures worked out by hand."""

import itertools
from dataclasses import replace

import pytest

from pyprof import schema
from pyprof.analysis.summary.overview import summarise
from pyprof.analysis.summary.utilization import NO_WORK, Utilization, part_mfu, utilization
from pyprof.analysis.time.steps import find_steps
from pyprof.analysis.time.timeline import timeline
from pyprof.gpu.peaks import Rate
from pyprof.inputs.source import Source
from pyprof.marker import Tensor, encode_seq
from pyprof.parse import parse
from pyprof.prof.table import Override, Table
from pyprof.records.merging import merge_sums
from tests.analysis.captures import NCCL, SGEMM_A100, US, Range, Work, capture, copy, op
from tests.known import known

_SIDE = 512
_X = Tensor((_SIDE, _SIDE), "float32")
_FLOPS, _BYTES = 2 * _SIDE**3, 3 * 4 * _SIDE**2
_PEAK = Override(peak_flops=10e12, peak_bandwidth=1e12)


DECODING = ("step[EXTEND bs=1 toks=64]", "step[DECODE bs=3]", "step[DECODE bs=3]")
"""A prefill step has more to compute than to move."""


def _marks(*texts: str) -> list[Range]:
    return [Range(text, (100 * n * US, (100 * n + 90) * US)) for n, text in enumerate(texts)]


def _calls(count: int, *more: Range, unknown: int = 0, name: str = SGEMM_A100) -> schema.Capture:
    """Write products, 100 us after each other, the last of them without an op."""
    return capture(_work(count, name), ranges=[*more, *_products(count - unknown)])


def _work(count: int, name: str = SGEMM_A100) -> list[Work]:
    return [
        Work((at + 20 * US, at + 70 * US), (at + 10 * US, at + 12 * US), name)
        for at in range(0, 100 * count * US, 100 * US)
    ]


def _products(count: int) -> list[Range]:
    return [
        op("matmul", (at + 8 * US, at + 15 * US), _X, _X)
        for at in range(0, 100 * count * US, 100 * US)
    ]


def _of(net: schema.Capture, override: Override = _PEAK) -> Utilization:
    table = Table(parse(net), override)
    found = find_steps(table.records, net)
    return utilization(table, found, None, timeline(table.records, net))


def test_mfu_is_flops_over_time_and_peak() -> None:
    """Without steps, of the whole span from the first kernel to the last."""
    found = _of(_calls(2))
    assert found.wall_ns == 150 * US
    assert found.mfu == found.hfu == pytest.approx(2 * _FLOPS / 150e-6 / 10e12)
    assert (found.known, found.why, found.mbu) == (1.0, "", None)


def test_only_the_time_in_steps_counts() -> None:
    found = _of(_calls(3, *_marks("first", "step 1", "step 2")))
    assert found.wall_ns == 150 * US
    assert found.work.hardware_flops == 2 * _FLOPS


def test_each_step_has_its_mfu() -> None:
    """None if the FLOPs of much of its time are unknown."""
    net = _calls(3, *_marks("step 0", "step 1", "step 2"), unknown=1)
    usage = _of(net)
    loop_steps = find_steps(Table(parse(net), _PEAK).records, net)
    took = loop_steps.duration_ns.tolist()
    mfu = usage.of_steps(took).mfu
    assert mfu == (*(pytest.approx(_FLOPS / (ns / 1e9) / 10e12) for ns in took[:2]), None)
    assert merge_sums(usage, usage).of_steps(took).mfu[:2] == pytest.approx(mfu[:2])
    assert usage.of_steps([*took, 100]).mfu == (*mfu, None)
    assert replace(usage, flops_by_peak={}).of_steps(took).mfu == (None,) * 3


def _node() -> list[Range]:
    """Return a node of autograd, as its engine calls it, with work of its own: without a number."""
    name = "AddBackward0, seq = 3, op_id = 7"
    return [
        Range(f"autograd::engine::evaluate_function: {name}", (100 * US, 190 * US)),
        Range(name, (101 * US, 189 * US)),
        Range("aten::detach, op_id = 10", (181 * US, 185 * US)),
    ]


def test_recomputation_counts_in_hfu_only() -> None:
    """Of the step that has it, and of the whole."""
    inner = Range(encode_seq("aten::matmul", seq=9, op_id=8), (105 * US, 180 * US))
    marks = [Range(f"step {n}", (100 * n * US, (100 * n + 95) * US)) for n in (0, 1)]
    usage = _of(_calls(2, *marks, *_node(), inner))
    shares = usage.of_steps([50 * US, 100 * US])
    first = _FLOPS / 50e-6 / 10e12
    assert shares.mfu == pytest.approx((first, 0))
    assert shares.hfu == pytest.approx((first, first / 2))
    assert (usage.work.hardware_flops, usage.work.model_flops) == (2 * _FLOPS, _FLOPS)
    assert usage.mfu == pytest.approx((usage.hfu or 0) / 2)


def test_each_decode_step_has_its_mbu() -> None:
    """A prefill step has none; the mean of decode steps is that of the capture."""
    usage = _of(_calls(3, *_marks(*DECODING)))
    mbu = pytest.approx(_BYTES / 100e-6 / 1e12)
    assert [*usage.of_steps([50 * US, 100 * US, 100 * US]).mbu] == [None, mbu, mbu]
    assert usage.mbu == mbu
    assert _of(_calls(3, *_marks(DECODING[0]))).mbu is None


@pytest.mark.parametrize(("net", "override", "why"), [
    (_calls(2, unknown=1), _PEAK, "FLOPs of only 50 % of compute time are known"),
    (capture([*_work(1), Work((US * 100, US * 10**6), (90 * US, 91 * US), "unknown")],
             ranges=_products(1)), _PEAK, "FLOPs of only <0.1 % of compute time are known"),
    (_calls(2), Override(gpu=None), ""),
    (capture([Work((5, 9), (1, 2), "[CUDA memcpy HtoD]", 1, bytes=4)]), _PEAK,
     "no FLOPs were executed"),
    (capture([copy((5, 995), (1, 2)), Work((1000, 1010), (996, 999), "unknown")]), _PEAK,
     "no FLOPs are known"),
    (capture([Work((5, 15), (1, 2), NCCL), Work((20, 21), (16, 19), "unknown")]), _PEAK,
     "no FLOPs are known"),
])  # fmt: skip
def test_unknown_shares_have_a_reason(net: schema.Capture, override: Override, why: str) -> None:
    found = _of(net, override)
    assert found.why == why
    assert (found.mfu is None) == (found.hfu is None) == bool(why)


@pytest.mark.slow
def test_steps_that_are_guessed_are_measured_if_they_are_chosen() -> None:
    """Without a choice, the whole capture is."""
    rounds = [replace(work, name=f"{SGEMM_A100}_{n % 3}") for n, work in enumerate(_work(12))]
    net = capture(rounds, ranges=_products(12))
    table = Table(parse(net), _PEAK)
    whole, chosen = (
        next(iter(summarise(Source(table, net), text).loops.values())) for text in (None, "1:3")
    )
    assert whole.steps.guessed
    assert (whole.utilization.work.hardware_flops, chosen.utilization.work.hardware_flops) == (
        12 * _FLOPS,
        6 * _FLOPS,
    )
    assert chosen.utilization.wall_ns == 600 * US
    assert chosen.utilization.of_steps([300 * US]).hfu == (None,)  # it may be a layer


def test_a_device_without_a_peak_has_no_mfu() -> None:
    net = _calls(2)
    nameless = replace(net, devices=net.devices.slice(0, 0))
    assert _of(nameless, Override()).why == "the device's peak for this work is unknown"


def test_the_peak_is_that_of_the_units_that_were_used() -> None:
    """Float32 products without Tensor Cores: 19.5 TFLOP/s on an A100."""
    found = _of(_calls(2), Override())
    peak = known(found.flops_peak)
    assert peak.value == pytest.approx(19.5e12, rel=0.01)
    assert "fp32" in peak.label


@pytest.mark.parametrize(("override", "known"), [(Override(), False), (_PEAK, True)])
def test_without_the_units_that_were_used_only_a_peak_of_both_is_known(
    override: Override, *, known: bool
) -> None:
    """Against CUDA cores, a product on Tensor Cores would have had an MFU of several 100 %."""
    found = _of(_calls(2, name="gemm_kernel"), override)
    assert (found.mfu is not None, not found.why) == (known, known)


def test_several_gpus_add_up() -> None:
    """Twice the FLOPs in twice the time of one GPU."""
    one = _of(_calls(2))
    both = merge_sums(one, one)
    assert both.mfu == pytest.approx(one.mfu)
    assert both.wall_ns == 2 * one.wall_ns


def test_each_part_of_the_step_has_its_share() -> None:
    """Of its GPU time; none if the FLOPs of much of that are unknown."""
    net = _calls(
        4, Range("forward", (0, 195 * US)), Range("backward", (200 * US, 399 * US)), unknown=2
    )
    parts = summarise(Source(Table(parse(net), _PEAK), net)).parts
    assert part_mfu(parts["forward"], Rate(10e12, "given")) == pytest.approx(
        2 * _FLOPS / 100e-6 / 10e12
    )
    assert part_mfu(parts["backward"], Rate(10e12, "given")) is None
    assert part_mfu(parts["forward"], None) is None
    assert part_mfu(replace(NO_WORK, busy_ns=50), Rate(10e12, "given")) is None  # of copies


def test_the_peak_of_several_captures_is_that_of_most_flops_in_any_order() -> None:
    """Of 10, 6 and 6 TFLOP, the two on one device, not the largest single part."""
    first, second = Rate(1.0, "first"), Rate(2.0, "second")
    parts = [
        Utilization(work=replace(NO_WORK, hardware_flops=flops), flops_by_peak={rate: flops})
        for flops, rate in ((10, first), (6, second), (6, second))
    ]
    for a, b, c in itertools.permutations(parts):
        for merged in (merge_sums(merge_sums(a, b), c), merge_sums(a, merge_sums(b, c))):
            assert known(merged.flops_peak).label == "second"
