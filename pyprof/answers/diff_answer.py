"""`pyprof diff --json`: what changed, how certain that is, and likely causes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from pyprof.answers import answer, not_in_json
from pyprof.answers.base import Answer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyprof.analysis.diff.compare import Change as FoundChange
    from pyprof.analysis.diff.compare import Comparison, Metric

UNCLEAR: Literal["not significant"] = "not significant"
"""The status of a change that may be chance."""

MAX_STAGES = 8
SAME_BELOW = 0.01
"""A relative difference up to this counts as none."""

_UNITS = {
    "ns": "_ns",
    "": "_count",
    "flop": "",
    "bytes": "_bytes",
    "j": "_j",
    "hz": "_hz",
    "%": "_percent",
}


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
    change: float | None
    """B minus A; null if either is null, or covers another share of the rows than the other."""
    change_share: float | None
    """The change relative to A; null if `change` is null or A is 0."""
    low: float | None
    """Lower end of the interval of `change`; null if noise is unknown or nothing was sampled."""
    high: float | None
    """Upper end; null if `low` is."""
    p: float | None
    """Probability of such a change by chance; null if `low` is."""
    significant: bool | None
    """Whether the change is more than chance; null if `low` is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What was matched, an op by default, in A and in B."""

    key: Mapping[str, str | None]
    """Its values of the matched keys; null where its rows have no value."""
    status: Literal["faster", "slower", "same", "new", "gone", "not significant"]
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
@dataclass(frozen=True, slots=True, kw_only=True)
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
    """time_ns, busy_ns, idle_ns, step_ns (median), kernels_count, flops, bytes."""
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


def diff(comparison: Comparison, failed: Sequence[str] = (), top: int | None = None) -> Diff:
    """Build the answer with `top` changes, or all if None."""
    changes, counts, held = comparison.changes[:top], comparison.per_step, comparison.held
    return Diff(
        processor=comparison.processor,
        a_gpus=comparison.gpus[0],
        b_gpus=comparison.gpus[1],
        per_step=StepCounts(*counts, *held) if counts and held else None,
        why_totals=comparison.why_totals,
        matched_by=comparison.keys,
        noise=NoiseBasis(
            comparison.noise.unit,
            *comparison.noise.counts,
            comparison.noise.why,
            "Welch's t interval; p of changes corrected as by Benjamini and Hochberg, by time",
            comparison.noise.level,
            comparison.noise.enough,
        ),
        metrics={
            name if name == metric.unit else name + _UNITS[metric.unit]: _measure(metric)
            for name, metric in comparison.metrics.items()
        },
        causes=comparison.causes,
        waterfall=tuple(waterfall(comparison)),
        changes=tuple(_change(change, comparison.keys) for change in changes),
        changes_left_out=len(comparison.changes) - len(changes),
        failed=tuple(failed),
        common=comparison.common,
    )


def _measure(metric: Metric) -> Measure:
    interval, delta = metric.interval, metric.delta
    if interval is None or delta is None:
        sure = (None, None, None, None)
        return Measure(metric.a, metric.b, delta, metric.relative, *sure)
    ends = (delta - interval.half, delta + interval.half)
    return Measure(
        metric.a, metric.b, delta, metric.relative, *ends, interval.p, interval.significant
    )


def _change(change: FoundChange, keys: Sequence[str]) -> Change:
    a, b, interval = change.a, change.b, change.interval
    return Change(
        key=dict(zip(keys, change.key, strict=True)),
        status=change.status,
        a_ns=change.a_ns if a else None,
        b_ns=change.b_ns if b else None,
        change_ns=change.delta_ns,
        change_share=change.relative,
        low_ns=change.delta_ns - interval.half if interval else None,
        high_ns=change.delta_ns + interval.half if interval else None,
        p=interval.p if interval else None,
        significant=interval.significant if interval else None,
        a_calls=a.calls if a else None,
        b_calls=b.calls if b else None,
        a_rows=a.rows if a else None,
        b_rows=b.rows if b else None,
        causes=change.causes,
        a_key=dict(zip(keys, change.a_key, strict=True)) if change.a_key else None,
        half_ns=interval.half if interval else None,
    )


def waterfall(comparison: Comparison, most: int = MAX_STAGES) -> list[Stage]:
    """Add up the changes by the first key, which is the op unless others were asked for.

    The `most` largest have a stage of their own; all stages add up to the change of the time.
    """
    delta_by_name: dict[str | None, float] = {}
    for change in comparison.changes:
        name = change.key[0] if change.key else None
        delta_by_name[name] = delta_by_name.get(name, 0.0) + change.delta_ns
    ordered = sorted(delta_by_name.items(), key=lambda entry: (-abs(entry[1]), entry[0] or ""))
    moved = [(name, 1, delta) for name, delta in ordered if delta]
    shown = moved[:most]
    if rest := moved[most:]:
        shown.append(("all others", len(rest), sum(delta for _, _, delta in rest)))
    stages: list[Stage] = []
    time_ns = sum(change.a_ns for change in comparison.changes)
    for name, ops, delta in shown:
        stages.append(Stage(name, ops, delta, time_ns, time_ns + delta))
        time_ns += delta
    return stages
