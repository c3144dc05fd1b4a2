"""What changed from one capture to the other: in total, and op by op, and how sure that is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from pyprof.analysis.diff import noise
from pyprof.analysis.diff.estimates import COUNTED, Measured
from pyprof.analysis.diff.keys import renamed_layers
from pyprof.analysis.diff.noise import RANKS, STEPS, Interval, Noise
from pyprof.answers.diff_answer import SAME_BELOW, UNCLEAR, held_text
from pyprof.prof.processor import processor

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyprof.analysis.diff.side import Key, Side, Sum, Sums

Status: TypeAlias = Literal["faster", "slower", "same", "new", "gone", "not significant"]
FASTER: Status = "faster"
SLOWER: Status = "slower"
SAME: Status = "same"
NEW: Status = "new"
REMOVED: Status = "gone"

SHAPES = ("shape", "dtype")
"""Keys that may differ where an op of one capture replaces one of the other."""

HELD = 0.8
"""Guessed steps that hold a smaller share of a capture's time do not represent it."""
_NO_STEPS = "no comparable steps were found"


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """One number of both captures, on the basis of the comparison; None if not known."""

    name: str
    unit: str
    """`ns`, `flop`, `bytes`, `j`, `hz`, `%` or empty for a count."""
    a: float | None
    b: float | None
    comparable: bool = True
    """False if one capture has it for many more of its rows than the other."""
    interval: Interval | None = None
    """Around the change; None if noise is unknown, or the number is no mean over samples."""

    @property
    def delta(self) -> float | None:
        """How much more b has; None if unknown."""
        if self.a is None or self.b is None or not self.comparable:
            return None
        return self.b - self.a

    @property
    def relative(self) -> float | None:
        """How much more b has, as a fraction of a."""
        return None if self.delta is None or not self.a else self.delta / self.a


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One op of either capture. Times in ns and counts are on the basis of the comparison."""

    key: Key
    status: Status
    a: Sum | None
    b: Sum | None
    a_ns: float
    b_ns: float
    interval: Interval | None = None
    """The interval of the change; None if noise is unknown."""
    causes: tuple[str, ...] = ()
    """What else is different, in words."""
    a_key: Key | None = None
    """The key in A, if its layer has another name there."""

    @property
    def delta_ns(self) -> float:
        """How much longer b takes."""
        return self.b_ns - self.a_ns

    @property
    def relative(self) -> float | None:
        """How much longer b takes, as a fraction of a; None for what is new."""
        return self.delta_ns / self.a_ns if self.a_ns else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """What a comparison of two captures found."""

    keys: tuple[str, ...]
    """What ops were matched by."""
    per_step: tuple[int, int] | None
    """The number of steps by which each side is divided; None: totals are compared."""
    why_totals: str
    """Why totals are compared; "" if steps are."""
    held: tuple[float, float] | None
    """The share of each capture's time in the compared steps; None: totals are compared."""
    metrics: Mapping[str, Metric]
    changes: list[Change]
    """The largest difference first."""
    processor: str
    """What the compared time was spent on: GPU, CPU or the like."""
    gpus: tuple[tuple[str, ...], tuple[str, ...]]
    """The GPUs that each capture names."""
    noise: Noise
    causes: tuple[str, ...] = ()
    """Possible causes of many changes at once, in words."""
    common: tuple[str, ...] = ()
    """The differences that `causes` finds for most ops at once: kernel, shape, dtype."""

    @property
    def devices(self) -> str | None:
        """A note that the two ran on different GPUs; None if they did not, or if it is unknown."""
        a, b = (", ".join(sorted(names)) for names in self.gpus)
        if not a or not b or a == b:
            return None
        return f"different GPUs: A ran on {a}, B on {b}"

    @property
    def replaced(self) -> dict[Key, list[Change]]:
        """The new and the removed changes, by their keys without shape and type."""
        indices = [at for at, name in enumerate(self.keys) if name not in SHAPES]
        grouped: dict[Key, list[Change]] = {}
        for change in self.changes:
            if change.status in (NEW, REMOVED):
                grouped.setdefault(tuple(change.key[at] for at in indices), []).append(change)
        return grouped


def compare(a: Side, b: Side) -> Comparison:
    """Compare two captures, or two sets of captures, summed up with the same options.

    They are compared per step if both have steps that were found in the same way, since they may
    then differ in length; else in total.
    """
    per_step, why_totals = _per_step(a, b)
    counted = [side.counted if per_step else None for side in (a, b)]
    sums = [
        steps.sums if steps else side.whole for side, steps in zip((a, b), counted, strict=True)
    ]
    filled = sums[0].filled & sums[1].filled
    keys = tuple(name for name in a.keys if name in filled)  # others would match nothing
    basis = _noise(a, b, per_step, why_totals)
    sides = [
        Measured(side, steps, each, keys, basis)
        for side, steps, each in zip((a, b), counted, sums, strict=True)
    ]
    renames = renamed_layers(keys, sides[0].calls, sides[1].calls)
    sides[0].rename(renames)
    return Comparison(
        keys=keys,
        per_step=per_step,
        why_totals=why_totals,
        held=(_held(a), _held(b)) if per_step else None,
        metrics=_metrics(sides),
        changes=_changes(sides, {b_key: a_key for a_key, b_key in renames.items()}),
        processor=processor((*a.gpus, *b.gpus)),
        gpus=(_named(a), _named(b)),
        noise=basis,
    )


def _named(side: Side) -> tuple[str, ...]:
    return tuple(name for name in side.gpus if name)


def _per_step(a: Side, b: Side) -> tuple[tuple[int, int] | None, str]:
    """Return both step counts if steps were found in the same way; else None, and why.

    Guessed steps must also hold nearly all time of both, and what changed.
    """
    alike = a.steps.kind == b.steps.kind != ""
    counts = a.step_count, b.step_count
    if not (alike and all(counts)):
        return None, _NO_STEPS
    if a.steps.guessed and a.chosen is None:
        held = _held(a), _held(b)
        if min(held) < HELD:
            return None, f"the guessed steps hold only {held_text(*held)}"
        outside = [
            side.whole.time_ns * (1 - share) for side, share in zip((a, b), held, strict=True)
        ]
        change = abs(outside[1] - outside[0])
        shorter_ns = min(a.whole.time_ns, b.whole.time_ns)  # of B and A, the answer is the same
        if counts[0] == counts[1] and change > SAME_BELOW * shorter_ns:
            return None, "what changed lies partly outside of the guessed steps"
    return counts, ""


def _held(side: Side) -> float:
    """Return the share of the time in the counted steps."""
    inside = side.counted.sums.time_ns if side.counted else 0
    return inside / side.whole.time_ns if side.whole.time_ns else 1.0


def _noise(a: Side, b: Side, per_step: tuple[int, int] | None, why_totals: str) -> Noise:
    """Choose steps or ranks as the samples; if neither will do, say why."""
    if per_step and min(per_step) > 1:
        return Noise(STEPS, per_step)
    ranks = (len(a.samples.ranks), len(b.samples.ranks))
    if min(ranks) > 1:
        return Noise(RANKS, ranks)
    if not per_step:
        why = why_totals if why_totals == _NO_STEPS else "steps are not compared"
        return Noise(None, why=why)
    which = "A and B have" if max(per_step) == 1 else "A has" if per_step[0] == 1 else "B has"
    return Noise(None, why=f"{which} one step only")


_UNITS = {"time": "ns", "busy": "ns", "idle": "ns", "step": "ns", "kernels": "", "flops": "flop",
          "bytes": "bytes", "dram": "bytes", "energy": "j", "clock": "hz",
          "tensor": "%"}  # fmt: skip
METRICS = tuple(_UNITS)
"""Metrics that `--fail-if` can limit."""


def _metrics(sides: Sequence[Measured]) -> dict[str, Metric]:
    a, b = sides
    return {
        name: Metric(
            name=name,
            unit=unit,
            a=a.metric(name),
            b=b.metric(name),
            comparable=abs(_known_share(name, a.sums) - _known_share(name, b.sums)) <= _SHARE,
            interval=_interval(name, a, b),
        )
        for name, unit in _UNITS.items()
    }


def _interval(name: str, a: Measured, b: Measured) -> Interval | None:
    estimates = a.metric_estimate(name), b.metric_estimate(name)
    if estimates[0] is None or estimates[1] is None:
        return None
    half, p = noise.welch(estimates[0], estimates[1], medians=name == "step")
    return Interval(float(half[0]), float(p[0]))


def _known_share(name: str, sums: Sums) -> float:
    """The share of rows with a known metric; for counters, the share of their time."""
    if name in COUNTED:
        return sums.counters.known_share(name, sums.time_ns) if sums.counters else 0.0
    return sums.known.get(name, sums.rows) / max(sums.rows, 1)


_SHARE = 0.1
"""The most by which shares may differ: a comparison looks for changes of a few ops."""


def _changes(sides: Sequence[Measured], a_keys: Mapping[Key, Key]) -> list[Change]:
    a, b = sides
    index = {key: number for number, key in enumerate({**a.rows, **b.rows})}
    times = [side.times(index).tolist() for side in sides]
    intervals = _intervals(a, b, index)
    changes = []
    for key, at in index.items():
        mine, other, a_ns, b_ns = a.rows.get(key), b.rows.get(key), times[0][at], times[1][at]
        interval = intervals[at] if intervals else None
        changes.append(
            Change(
                key=key,
                status=_status(mine, other, a_ns, b_ns, interval),
                a=mine,
                b=other,
                a_ns=a_ns,
                b_ns=b_ns,
                interval=interval,
                a_key=a_keys.get(key),
            )
        )
    return sorted(changes, key=lambda change: (-abs(change.delta_ns), str(change.key)))


def _intervals(a: Measured, b: Measured, place: Mapping[Key, int]) -> list[Interval] | None:
    if (unit := a.basis.unit) is None:
        return None
    before, after = a.estimates(unit, place), b.estimates(unit, place)
    half, p = noise.welch(before, after)
    p = noise.corrected(p, before.value + after.value)
    return [Interval(*entry) for entry in zip(half.tolist(), p.tolist(), strict=True)]


def _status(
    a: Sum | None, b: Sum | None, a_ns: float, b_ns: float, interval: Interval | None
) -> Status:
    if a is None or b is None:
        return NEW if a is None else REMOVED
    if abs(b_ns - a_ns) <= SAME_BELOW * a_ns:
        return SAME
    if interval is not None and not interval.significant:
        return UNCLEAR
    return SLOWER if b_ns > a_ns else FASTER
