"""What answers are made of: known costs, advice, the verdict of a summary and what it rests on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyprof.prof.coverage import Coverage


@dataclass(frozen=True, slots=True)
class UnknownCost:
    """Rows whose cost is unknown for one reason."""

    reason: str
    """Why."""
    time_ns: int
    """Their summed time."""
    rows: int
    """How many."""


@dataclass(frozen=True, slots=True)
class KnownCost:
    """How much of the time has a known cost."""

    processor: str
    """Whose time it is: GPU, NPU or the like; CPU in a capture without one."""
    total_ns: int
    """Summed time of all rows; rows of several streams may overlap."""
    known_share: float
    """Share of that time whose cost is known."""
    kernel_known_share: float | None
    """The same of kernels alone, without copies and fills; null without kernels."""
    unknown: tuple[UnknownCost, ...]
    """The rest by reason, the most time first."""


def known_cost(coverage: Coverage) -> KnownCost:
    """How much is known, and why the rest is not."""
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


@dataclass(frozen=True, slots=True)
class ChosenRows:
    """The rows that --where chose; all other figures of the answer are of these alone."""

    where: str
    """The conditions."""
    row_count: int
    """How many rows fulfil them."""
    all_row_count: int
    """How many rows there are, of the chosen steps if --steps is given."""
    time_ns: int
    """Summed time of the chosen rows."""
    all_time_ns: int
    """Summed time of all these rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Equal rows that are evidence for advice."""

    what: str
    """An op, else a kernel or a range."""
    line: str | None
    """Source line; null if no stack was recorded, or none of its frames is the user's."""
    detail: str
    """What is wrong with them, where that differs from row to row; else empty."""
    count: int
    """How many rows, or ranges, they are."""
    time_ns: int
    """The sum of their times."""
    row_ids: tuple[int, ...]
    """`idx` of the rows of `prof` among them that take most time, at most 10; none for ranges."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictedGain:
    """The time of kernels that a change saves, by a rule that was tried on real changes."""

    low_ns: int
    """The least that is likely, of one GPU, as `gain_ns`."""
    expected_ns: int
    """By the rule's formula."""
    high_ns: int
    """The most that is likely."""
    validation: str
    """The data that the rule was tested on, and its error there."""
    code: str
    """The change in the program."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Suggestion:
    """Something that the user could change."""

    rule: str
    """Name of the rule, which stays the same from release to release."""
    title: str
    """What is the case."""
    action: str
    """What to do."""
    gain_ns: int | None
    """The most time that one GPU could gain; gains overlap. null if no bound is known."""
    gain_step_ns: float | None
    """The same in a mean step; null without steps, too, and for what happens once."""
    gain_share: float | None
    """The same as a share of a mean step, where steps are known (of `lines`: of the loop's time);
    else, and for what happens once, of the whole capture's time; null if no bound is known."""
    predicted: PredictedGain | None
    """The gain as an interval; null if no rule was tried: there is the upper bound alone."""
    evidence: tuple[Finding, ...]
    """What it rests on, the most time first."""
    once: bool
    """The gain is in start-up, warm-up or after the loop: once a run, not in every step."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """One line of the verdict, with what proves it."""

    about: str
    """bound: what bounds the work; top: the line, or op, with most GPU time; gain: the largest
    gain; missing: what a better answer needs."""
    subject: str
    """What it names: for bound an idle cause, communication, copies or kernels; for top a line, an
    op or a kernel; for gain a rule; for missing gpu, costs or steps."""
    text: str
    """The sentence."""
    time_ns: float | None
    """The time that it speaks of, in a mean step if there are steps; null if none."""
    share: float | None
    """The same as a share of the step, or of the GPU time for top and missing; null if unknown."""
    evidence: tuple[Finding, ...]
    """What proves it, the most time first; never empty."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepUse:
    """What a GPU does in a mean step, or without steps in the whole capture: means over GPUs."""

    step_count: int | None
    """How many steps it is a mean of; null without steps."""
    gpu_count: int
    """How many GPUs, each as one process used it."""
    waits_known: bool
    """Whether calls that wait for the GPU are known; else their time counts as launch or host."""
    span_ns: float
    """The time of the step on the GPU, or from its first start to its last end, without pauses."""
    busy_ns: float
    """When anything ran."""
    compute_ns: float
    """When kernels ran, but those of collectives."""
    exposed_communication_ns: float
    """When collectives ran and nothing computed."""
    exposed_copy_ns: float
    """When copies ran and nothing else."""
    idle_by_cause_ns: Mapping[str, float]
    """When nothing ran, by cause."""
    late_row_ids: Mapping[str, tuple[int, ...]]
    """`idx` of the rows that began after the longest waits for a cause, at most 3; empty for causes
    that are not the main one of any GPU."""
