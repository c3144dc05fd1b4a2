"""`pyprof diff --json`: what changed, how certain that is, and likely causes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from pyprof.answers import answer, not_in_json
from pyprof.answers.base import Answer

Status: TypeAlias = Literal["faster", "slower", "same", "new", "gone", "not significant"]
UNCLEAR: Literal["not significant"] = "not significant"
"""The status of a change that may be chance."""

SAME_BELOW = 0.01
"""A relative difference up to this counts as none."""


@dataclass(frozen=True, slots=True)
class NoiseBasis:
    """What intervals and significance rest on."""

    samples: Literal["steps", "ranks"] | None
    """What the samples are, such as steps; null if noise is unknown: see `why`."""
    a_count: int
    """Number of samples of A; 0 if noise is unknown."""
    b_count: int
    """Number of samples of B; 0 if noise is unknown."""
    why: str
    """Why noise is unknown; empty if it is known. Noise between runs is always unknown."""
    method: str
    """How the intervals are computed."""
    level_share: float
    """Confidence level of the intervals."""
    enough: int = not_in_json(default=0)
    """With fewer steps than this, only large changes stand out from noise."""


@dataclass(frozen=True, slots=True)
class Measure:
    """A total in A and in B: per step or of the whole captures, see `per_step`."""

    a: float | None
    """Its value in A, in the unit that its name ends with; null if A does not record it."""
    b: float | None
    """Its value in B; null if B does not record it."""
    change: float | None = None
    """B minus A; null if either is null, or covers another share of the rows than the other."""
    change_share: float | None = None
    """The change relative to A; null if `change` is null or A is 0."""
    low: float | None = None
    """Lower end of the interval of `change`; null if noise is unknown or nothing was sampled."""
    high: float | None = None
    """Upper end; null if `low` is."""
    p: float | None = None
    """Probability of such a change by chance; null if `low` is."""
    significant: bool | None = None
    """Whether the change is more than chance; null if `low` is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What was matched, an op by default, in A and in B."""

    key: Mapping[str, str | None]
    """Its values of the matched keys; null where its rows have no value."""
    status: Status
    """"same": changed by at most 1 %; "not significant": by more, but perhaps by chance."""
    a_ns: float | None
    """Time in A, per step or in the whole capture; null if it is new."""
    b_ns: float | None
    """Time in B; null if it is gone."""
    change_ns: float
    """B minus A."""
    change_share: float | None
    """The change relative to A; null if it is new or took no time in A."""
    low_ns: float | None
    """Lower end of the interval of `change_ns`; null if noise is unknown."""
    high_ns: float | None
    """Upper end; null if noise is unknown."""
    p: float | None
    """Probability of such a change by chance, corrected for the number of changes; null if noise
    is unknown."""
    significant: bool | None
    """Whether the change is more than chance; null if noise is unknown."""
    a_calls: int | None
    """Op calls in all counted steps of A; null if it is new."""
    b_calls: int | None
    """Op calls in B; null if it is gone."""
    a_rows: int | None
    """Kernels, copies and fills in A; null if it is new."""
    b_rows: int | None
    """Kernels, copies and fills in B; null if it is gone."""
    causes: tuple[str, ...]
    """What else is different: kernel, shape, type, autotuning."""
    a_key: Mapping[str, str | None] | None
    """Its key in A, if its layer has another name there; null if it is the same as `key`."""
    half_ns: float | None = not_in_json()
    """Half the width of the interval; None if noise is unknown."""


@dataclass(frozen=True, slots=True)
class Stage:
    """A bar of the waterfall from A's time to B's."""

    name: str | None
    """The op, or the value of the first key, over all shapes and layers; null if rows have none."""
    op_count: int
    """Number of ops summed; more than 1 in the last bar, which sums all other ops."""
    change_ns: float
    """How much more time B takes."""
    from_ns: float
    """The time before it."""
    to_ns: float
    """The time after it."""


@dataclass(frozen=True, slots=True)
class StepCounts:
    """The steps over which numbers are averaged."""

    a_count: int
    """Number of steps of A."""
    b_count: int
    """Number of steps of B."""
    a_share: float
    """The share of A's time in these steps; the rest is not compared."""
    b_share: float
    """The share of B's time in these steps."""


def held_text(a_share: float, b_share: float) -> str:
    """Format the share of each capture's time that is in steps."""
    return f"{100 * a_share:.0f} % of A's time, {100 * b_share:.0f} % of B's"


@answer("diff")
@dataclass(frozen=True, slots=True, repr=False, kw_only=True)
class Diff(Answer):
    """Captures A and B compared."""

    processor: str
    """What the times are of: GPU, or CPU in captures without one."""
    a_gpus: tuple[str, ...]
    """Names of the GPUs of A."""
    b_gpus: tuple[str, ...]
    """Names of the GPUs of B."""
    per_step: StepCounts | None
    """The steps after warm-up that numbers are means of; null if they are totals."""
    why_totals: str
    """Why numbers are totals: no comparable steps, or guessed ones that hold little of the time;
    empty if they are per step."""
    matched_by: tuple[str, ...]
    """The keys that changes are matched by: those that both captures have."""
    noise: NoiseBasis
    """The samples behind the intervals."""
    metrics: Mapping[str, Measure]
    """time_ns, busy_ns, idle_ns, exposed_ns (communication while nothing was computed), step_ns
    (median), kernels_count, flops, bytes."""
    causes: tuple[str, ...]
    """Possible common causes of many changes, such as another GPU or another clock."""
    waterfall: tuple[Stage, ...]
    """A waterfall from A's summed time to B's: the largest changes first, then all others."""
    changes: tuple[Change, ...]
    """The largest first."""
    changes_left_out: int
    """Number of changes left out by --top."""
    failed: tuple[str, ...]
    """Conditions of --fail-if that are exceeded or cannot be checked, each with the reason."""
    gpus: tuple[tuple[str | None, ...], tuple[str | None, ...]] = not_in_json()
    """The GPUs of A and of B; None for those without a name."""
    common: tuple[str, ...] = not_in_json()
    """What `causes` finds different for most ops at once: kernel, shape, dtype."""

    @property
    def differing(self) -> tuple[Change, ...]:
        """The changes that are large enough, and more than chance where noise is known."""
        return tuple(each for each in self.changes if each.status not in ("same", UNCLEAR))

    @property
    def unclear_count(self) -> int:
        """Number of changes that are large enough, but may be chance."""
        return sum(each.status == UNCLEAR for each in self.changes)
