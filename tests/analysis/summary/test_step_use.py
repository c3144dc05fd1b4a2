"""GPU use in a mean step, measured between the ends of steps on the GPU."""

from dataclasses import replace
from pathlib import Path

import pytest

from pyprof.analysis.summary.op_totals import LongestRows
from pyprof.analysis.summary.step_use import UseSums, gains_of, step_use, use_sums, waited_ns
from pyprof.analysis.time.steps import find_steps
from pyprof.analysis.time.timeline import timeline
from pyprof.answers.parts import Suggestion
from pyprof.answers.summary_answer import DeviceUse
from pyprof.inputs.source import Source, load
from tests.analysis import captures
from tests.analysis.answered import answered
from tests.builders import Range, Work, nsys_db
from tests.known import known

GAIN = Suggestion(
    rule="r", title="t", action="a", gain_ns=100, gain_step_ns=10.0, gain_share=0.9,
    predicted=None, evidence=(), once=False,
)  # fmt: skip


def _sums(**changed: object) -> UseSums:
    sums = UseSums(
        waits_known=True,
        gpus=2, steps=8, span_ns=800, busy_ns=200, compute_ns=160, exposed_communication_ns=30,
        exposed_of_gpu_ns=(15, 15), exposed_copy_ns=10, idle_ns={"launch": 600, "sync": 0},
        late=LongestRows({}, 5),
    )  # fmt: skip
    return replace(sums, **changed)  # type: ignore[arg-type]


def test_means_are_over_steps_and_gpus() -> None:
    use = known(step_use(_sums()))
    assert (use.step_count, use.gpu_count, use.span_ns, use.busy_ns) == (4, 2, 100, 25)
    assert use.idle_by_cause_ns == {"launch": 75}
    use = known(step_use(_sums(steps=0)))
    assert (use.step_count, use.span_ns) == (None, 400)


@pytest.mark.parametrize("sums", [None, _sums(gpus=0)])
def test_without_gpus_everything_is_unknown(sums: UseSums | None) -> None:
    assert step_use(sums) is None


def test_chosen_steps_are_all_that_is_measured(tmp_path: Path) -> None:
    starts = range(0, 50_000, 10_000)
    work = [Work("k", (at + 6000, at + 8000), (at + 10, at + 20)) for at in starts]
    ranges = [Range(f"step {n}", (at, at + 9000)) for n, at in enumerate(starts)]
    net = load(str(nsys_db(tmp_path / "a.sqlite", work, ranges)))
    use = known(answered(net, "2:4").step)
    assert (use.step_count, use.span_ns, use.busy_ns) == (2, 10_000, 2_000)


@pytest.mark.parametrize("chosen", [None, "1:4"])
def test_a_gpu_that_ends_early_idles_until_its_process_ends(chosen: str | None) -> None:
    """Its steps take as long as those of the other GPU of the process."""
    work: list[captures.Work] = []
    ranges: list[captures.Range] = []
    for step in range(4):
        at = 100 * step
        ranges.append(captures.Range(f"step {step}", (at, at + 90)))
        work += [captures.Work((at + 10, at + 90), (at + 1, at + 2), device=0)]
        work += [captures.Work((at + 10, at + 90), (at + 3, at + 4), device=1)] * (step < 2)
    net = captures.capture(work, ranges=ranges)
    found = answered(Source(captures.table(net), net), chosen)
    use = known(found.step)
    count = found.steps.averaged_count
    assert (use.gpu_count, use.step_count, use.span_ns) == (2, count, found.steps.mean_ns)
    assert use.busy_ns + sum(use.idle_by_cause_ns.values()) == pytest.approx(use.span_ns)


@pytest.mark.parametrize(
    ("steps", "gain", "step_ns", "share"),
    [
        (8, GAIN, 10.0, 0.1),
        (8, replace(GAIN, gain_step_ns=None, once=True), None, 0.9),
        (8, replace(GAIN, gain_step_ns=300.0, gain_share=0.6), 300.0, 0.6),
        (0, GAIN, None, 0.25),
    ],
    ids=["of a mean step", "once, of all", "of a rank that takes longer", "without steps"],
)
def test_gains_are_shares_of_what_is_judged(
    steps: int, gain: Suggestion, step_ns: float | None, share: float
) -> None:
    """Not of all time from a step's first occurrence to its last, which also holds pauses."""
    (judged,) = gains_of(step_use(_sums(steps=steps)), [gain])
    assert judged == replace(gain, gain_step_ns=step_ns, gain_share=share)


DEVICE = DeviceUse(
    rank=0, device=0, processor="GPU", span_ns=800, busy_ns=800, idle_ns=0, compute_ns=600,
    communication_ns=300, exposed_communication_ns=0, copy_ns=0, exposed_copy_ns=0, overlap_ns=0,
    idle_by_cause_ns={}, windows=1, paused_ns=0, pid=0,
)  # fmt: skip


def test_the_excess_over_the_rank_that_waits_least_is_waiting() -> None:
    """Judged in the averaged steps: recordings may begin seconds apart."""
    devices = [replace(DEVICE, rank=rank) for rank in range(3)]
    assert waited_ns(_sums(exposed_of_gpu_ns=(120, 10, 120)), devices) == 110
    assert waited_ns(_sums(exposed_of_gpu_ns=(120, 60, 120)), devices) is None
    assert waited_ns(_sums(exposed_of_gpu_ns=(120, 10, 120), span_ns=200), devices) == 100
    assert waited_ns(_sums(exposed_of_gpu_ns=(120, 10, 120)), [DEVICE]) is None


@pytest.mark.parametrize("exposed_ns", [(100, 10, 100, 10), (100, 100), ()])
def test_ranks_that_none_waits_for_are_not_said_to_be_waited_for(
    exposed_ns: tuple[int, ...],
) -> None:
    """Such as replicas of two ranks each; ranks that do not communicate are not among these."""
    devices = [replace(DEVICE, rank=rank) for rank in range(5)]
    assert waited_ns(_sums(exposed_of_gpu_ns=exposed_ns), devices) is None


def test_only_gpus_that_communicate_may_wait(tmp_path: Path) -> None:
    """Not that of a rank which evaluates meanwhile."""
    sums = [
        known(
            use_sums(
                net, timeline(net.table.records, net.capture), find_steps(net.table.records), None
            )
        )
        for name in ("gemm", "ncclDevKernel_AllReduce")
        for net in [load(str(nsys_db(tmp_path / f"{name}.sqlite", [Work(name, (0, 9), (0, 1))])))]
    ]
    assert [each.exposed_of_gpu_ns for each in sums] == [(), (9,)]
