"""Changes that only have an upper bound take it from the advice of the same name."""

from dataclasses import replace

import pytest

from pyprof import schema
from pyprof.analysis.whatif import summarise_whatif
from pyprof.analysis.whatif.upper_bounds import BOUNDS
from pyprof.inputs.source import Source
from tests.analysis.answered import answered
from tests.analysis.captures import ADD, NCCL, US, Range, Work, capture, table
from tests.analysis.whatif.test_replay import launched_slowly, queued
from tests.analysis.whatif.test_step_time import source_of
from tests.known import known

ALONE = [*queued(1), Work((300 * US, 400 * US), (20 * US, 22 * US), NCCL)]


@pytest.mark.parametrize(
    ("change", "work", "gain_us"),
    [("--graphs", launched_slowly(3), 162), ("--overlap", ALONE, 100)],
)
def test_a_bound_is_that_of_the_advice(change: str, work: list[Work], gain_us: int) -> None:
    """Two kernels wait 81 us each for their launch; 100 us are communication."""
    answer = summarise_whatif(source_of(work), [change])
    assert answer.changes == ()
    assert [(each.change, each.gain_ns) for each in answer.bounds] == [(change, gain_us * US)]


def test_overlap_is_changed_as_the_kind_of_collective_is() -> None:
    gathers = [replace(each, name=each.name.replace("AllReduce", "AllGather")) for each in ALONE]
    (bound,) = summarise_whatif(source_of(gathers), ["--overlap"]).bounds
    assert "DistributedDataParallel" not in bound.code


@pytest.mark.parametrize("begin_us", [0, 100_000])
def test_a_bound_is_per_step_where_the_summary_judges_steps(begin_us: int) -> None:
    """Not if guessed steps hold all work, but little of the time."""
    shift_ns = begin_us * US
    work = [
        replace(
            each,
            name=("at::native::relu", "at::native::tanh")[place % 2],
            at=(each.at[0] + shift_ns, each.at[1] + shift_ns),
            call=(known(each.call)[0] + shift_ns, known(each.call)[1] + shift_ns),
        )
        for place, each in enumerate(launched_slowly(40))
    ]
    source = source_of([Work((1, 2), (0, 1), "setup"), *work])
    (bound,) = summarise_whatif(source, ["--graphs"]).bounds
    use = known(answered(source).step)
    assert (bound.gain_step_ns is None) == (use.step_count is None) == (begin_us > 0)


def test_an_optimizer_is_not_replaced() -> None:
    """Only its constructor gets an argument: the program may use SGD."""
    ranges = [Range("Optimizer.step#SGD.step", (0, 900 * US))]
    work = [Work(((100 + 20 * n) * US, (120 + 20 * n) * US), ((5 + n) * US, (6 + n) * US), ADD)
            for n in range(8)]  # fmt: skip
    net = capture(work, ranges=ranges)
    (bound,) = summarise_whatif(Source(table(net), net), ["--fused-optimizer"]).bounds
    assert "AdamW" not in bound.code


@pytest.mark.parametrize(
    ("kernel", "expected"),
    [("at::native::relu", "torch.compile"), ("mine", "use CUDA graphs, larger batches or fused")],
)
def test_a_program_without_pytorch_is_not_changed_by_it(kernel: str, expected: str) -> None:
    work = [replace(each, name=kernel) for each in launched_slowly(3)]
    (bound,) = summarise_whatif(source_of(work), ["--graphs"]).bounds
    assert expected in bound.code


@pytest.mark.parametrize("change", BOUNDS)
def test_without_evidence_it_is_refused(change: str) -> None:
    answer = summarise_whatif(source_of(queued(3)), [change])
    assert answer.bounds == ()
    assert [each.change for each in answer.refused] == [change]


def test_launches_that_blocked_are_the_reason_for_no_bound() -> None:
    """Not that the GPU waits for none: how long it would is unknown."""
    work = [replace(each, call=(known(each.call)[0], each.at[1])) for each in launched_slowly(8)]
    (refused,) = summarise_whatif(source_of(work), ["--graphs"]).refused
    assert refused.why == "launches blocked (CUDA_LAUNCH_BLOCKING=1)"


def test_without_a_gpu_nothing_is_said_about_launches() -> None:
    work = [Work((0, US), (0, US), "aten::add", schema.CPU, grid=None)]
    (refused,) = summarise_whatif(source_of(work), ["--graphs"]).refused
    assert refused.why == "no GPU work was captured"


def test_a_device_without_cuda_graphs_and_peaks_is_refused_by_its_name() -> None:
    net = capture(launched_slowly(3))
    devices = schema.table(schema.DEVICES, {"device": [0], "name": ["MTIA"]})
    net = replace(net, devices=devices)
    refused = summarise_whatif(Source(table(net), net), ["--graphs", "--dtype bf16"]).refused
    assert {each.change: each.why for each in refused} == {
        "--graphs": "the device has no CUDA graphs",
        "--dtype bf16": "the rules were tried on NVIDIA GPUs only",
    }
