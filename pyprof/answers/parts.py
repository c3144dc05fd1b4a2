"""Parts of answers: known costs, advice, verdict and its evidence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyprof.records.merging import first, merged_by

if TYPE_CHECKING:
    from pyprof.prof.coverage import Coverage


@dataclass(frozen=True, slots=True)
class UnknownCost:
    """Rows whose cost is unknown for the same reason."""

    reason: str
    """The reason."""
    time_ns: int
    """Their summed time."""
    rows: int
    """Number of these rows."""


@dataclass(frozen=True, slots=True)
class KnownCost:
    """How much of the time is that of rows with a known cost."""

    processor: str
    """What the times are of: GPU, NPU or the like; CPU in a capture without one."""
    total_ns: int
    """Summed time of all rows; rows of several streams may overlap."""
    known_share: float
    """Share of that time in rows with a known cost."""
    kernel_known_share: float | None
    """The same share of kernels alone, without copies and fills; null without kernels."""
    unknown: tuple[UnknownCost, ...]
    """The rows of unknown cost by reason, the longest first."""


def known_cost(coverage: Coverage) -> KnownCost:
    """Build the part of an answer that says how much is known, and why the rest is not."""
    unknown = [UnknownCost(reason, *sums) for reason, sums in coverage.unknown.items()]
    unknown.sort(key=lambda entry: (-entry.time_ns, entry.reason))
    of_kernels = coverage.kernel_percent
    return KnownCost(
        coverage.processor,
        coverage.total_ns,
        coverage.percent / 100,
        None if of_kernels is None else of_kernels / 100,
        tuple(unknown),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ChosenRows:
    """The rows that --where chose; all other figures of the answer refer to these alone."""

    where: str = merged_by(first)
    """The conditions, as given."""
    row_count: int
    """Number of rows that meet them."""
    all_row_count: int
    """Number of all rows, or of those of the chosen steps if --steps is given."""
    time_ns: int
    """Summed time of the chosen rows."""
    all_time_ns: int
    """Summed time of all `rows`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Equal rows that are evidence for advice."""

    what: str
    """The op; a kernel or a range if there is no op."""
    line: str | None = None
    """Source line; null if no stack was recorded, or none of its frames is the user's."""
    detail: str = ""
    """What is wrong with them, if that differs from row to row; else empty."""
    count: int
    """Number of these rows or ranges."""
    time_ns: int
    """The sum of their times."""
    row_ids: tuple[int, ...] = ()
    """`idx` in `prof` of the longest of these rows, at most 10; none for ranges."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictedGain:
    """The kernel time that a change saves, by a rule that was tested on real changes."""

    low_ns: int
    """The smallest likely gain, of one GPU like `gain_ns`."""
    expected_ns: int
    """The gain by the rule's formula."""
    high_ns: int
    """The largest likely gain."""
    validation: str
    """The data that the rule was tested on, and its error there."""
    code: str
    """The change in the program."""

    @property
    def middle_ns(self) -> int:
        """The middle of the interval, by which gains are ranked.

        It is below what is expected where the interval reaches far down: surer gains come first.
        """
        return (self.low_ns + self.high_ns) // 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Suggestion:
    """Something that the user could change."""

    rule: str
    """Name of the rule, which stays the same from release to release."""
    title: str
    """What was found."""
    action: str
    """What to do."""
    gain_ns: int | None
    """The most time that one GPU could gain; null if no bound is known. Gains overlap."""
    gain_step_ns: float | None
    """The same in a mean step; also null without steps, and for what happens once."""
    gain_share: float | None
    """The same as a share of a mean step, where steps are known (of `lines`: of the loop's time);
    else, and for what happens once, of the whole capture's time; null if no bound is known."""
    predicted: PredictedGain | None
    """The gain as an interval; null if only the upper bound is known."""
    evidence: tuple[Finding, ...]
    """The rows that it is based on, the longest first."""
    once: bool
    """Whether the gain is made once a run (in start-up, say), not in every step."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """One sentence of the verdict, with its evidence."""

    about: str
    """bound: what bounds the work; top: the line, or op, with most GPU time; gain: the largest
    gain; missing: what a better answer needs."""
    subject: str
    """What it names: for bound an idle cause, communication, copies or kernels; for top a line, an
    op or a kernel; for gain a rule; for missing gpu, costs or steps."""
    text: str
    """The sentence."""
    time_ns: float | None
    """The time that the sentence states, in a mean step if there are steps; null if none."""
    share: float | None
    """The same as a share of the step, for top of its GPU time; for missing of all GPU time; null
    if unknown."""
    evidence: tuple[Finding, ...]
    """The evidence, the longest first; never empty."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepUse:
    """What a GPU does in a mean step, or in the whole capture without steps; means over GPUs."""

    step_count: int | None
    """Number of steps that it is a mean of; null without steps."""
    gpu_count: int
    """Number of GPUs; one that several processes use counts once for each."""
    waits_known: bool
    """Whether calls that wait for the GPU are known; else their time counts as launch or host."""
    span_ns: float
    """The time of the step on the GPUs of a process, or from their first start to their last end,
    without pauses."""
    busy_ns: float
    """Time in which anything ran."""
    compute_ns: float
    """Time in which kernels other than collectives ran."""
    exposed_communication_ns: float
    """Time in which collectives ran and nothing computed."""
    exposed_copy_ns: float
    """Time in which copies ran and nothing else."""
    idle_by_cause_ns: Mapping[str, float]
    """Time in which nothing ran, by cause."""
    late_row_ids: Mapping[str, tuple[int, ...]]
    """`idx` of the rows that began after the longest waits for a cause, at most 3; empty for causes
    that are not the main one of any GPU."""
