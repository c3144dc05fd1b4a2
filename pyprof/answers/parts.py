"""What several answers hold: known costs, advice."""

from __future__ import annotations

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
    """Rows alike that an advice rests on."""

    what: str
    """An op, else a kernel or a range."""
    line: str | None
    """Source line; null where no stack was recorded, or none of its frames is the user's."""
    detail: str
    """What is wrong with them, where that differs from row to row; else empty."""
    count: int
    """How many rows, or ranges, they are."""
    time_ns: int
    """The time that they stand for, summed."""
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
    """On what the rule was tried, and its error there."""
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
    """At most so much time of one GPU could be gained; gains overlap. null where no bound is
    known."""
    gain_step_ns: float | None
    """The same in a mean step; null without steps, too, and for what happens once."""
    gain_share: float | None
    """The same as a share of a mean step, where steps are known (of `lines`: of the loop's time);
    else, and for what happens once, of the whole capture's time; null where no bound is known."""
    predicted: PredictedGain | None
    """The gain as an interval; null where no rule was tried: there is the upper bound alone."""
    evidence: tuple[Finding, ...]
    """What it rests on, the most time first."""
    once: bool
    """The gain is in start-up, warm-up or after the loop: once a run, not in every step."""
