"""What changed from one capture to the other: in all, and op by op."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyprof.prof.processor import processor
from pyprof.report.diff.side import Key, Sum, known_in_both

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyprof.report.analysis.steps import Steps
    from pyprof.report.diff.side import Side, Sums

FASTER, SLOWER, SAME, NEW, GONE = "faster", "slower", "same", "new", "gone"

SAME_BELOW = 0.01
"""A relative difference up to this is none."""


@dataclass(frozen=True, slots=True)
class Metric:
    """One number of both captures, on the basis of the comparison; None where not known."""

    name: str
    unit: str
    """`ns`, `flop`, `bytes`, `j`, `hz`, `%` or empty for a count."""
    a: float | None
    b: float | None
    comparable: bool = True
    """False where one capture knows it of many more of its rows than the other."""

    @property
    def delta(self) -> float | None:
        """How much more b has; None where that cannot be told."""
        if self.a is None or self.b is None or not self.comparable:
            return None
        return self.b - self.a

    @property
    def relative(self) -> float | None:
        """How much more b has, as a fraction of a."""
        return None if self.delta is None or not self.a else self.delta / self.a


@dataclass(frozen=True, slots=True)
class Change:
    """One op of either capture. Times in ns and counts are on the basis of the comparison."""

    key: Key
    status: str
    a: Sum | None
    b: Sum | None
    a_ns: float
    b_ns: float

    @property
    def delta_ns(self) -> float:
        """How much longer b takes."""
        return self.b_ns - self.a_ns

    @property
    def relative(self) -> float | None:
        """How much longer b takes, as a fraction of a; None for what is new."""
        return self.delta_ns / self.a_ns if self.a_ns else None


@dataclass(frozen=True, slots=True)
class Comparison:
    """Both captures."""

    keys: tuple[str, ...]
    """What ops were matched by."""
    per_step: tuple[int, int] | None
    """Numbers of steps that everything is divided by; None: totals are compared."""
    metrics: Mapping[str, Metric]
    changes: list[Change]
    """The largest difference first."""
    processor: str
    """Whose time it is."""
    gpus: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())
    """The GPUs of each that its capture names."""

    @property
    def devices(self) -> str | None:
        """Say that the two ran on GPUs of other names; None where that is not known."""
        a, b = (", ".join(sorted(names)) for names in self.gpus)
        if not a or not b or a == b:
            return None
        return f"different GPUs: A ran on {a}, B on {b}"

    @property
    def differing(self) -> list[Change]:
        """The changes that are some."""
        return [change for change in self.changes if change.status != SAME]


def compare(a: Side, b: Side, same_below: float = SAME_BELOW) -> Comparison:
    """Compare two captures, or two sets of them, of which the same was asked.

    Per step, of what runs in steps, where both have steps of the same origin, for then they may
    differ in length; else in total. Relative differences up to `same_below` are none.
    """
    per_step = _per_step(a, b)
    divisors = per_step or (1, 1)
    mine, theirs = (side.inside if per_step and side.inside else side.whole for side in (a, b))
    keys = known_in_both(mine.matched, theirs.matched, a.keys)
    metrics = [
        _metrics(side.steps, sums, by)
        for side, sums, by in zip((a, b), (mine, theirs), divisors, strict=True)
    ]
    return Comparison(
        keys,
        per_step,
        {name: Metric(name, unit, value, metrics[1][name][1], _alike(name, mine, theirs))
         for name, (unit, value) in metrics[0].items()},
        _changes(mine.matched.by(keys), theirs.matched.by(keys), divisors, same_below),
        processor((*a.gpus, *b.gpus)),
        (_named(a), _named(b)),
    )  # fmt: skip


def _named(side: Side) -> tuple[str, ...]:
    return tuple(name for name in side.gpus if name)


def _per_step(a: Side, b: Side) -> tuple[int, int] | None:
    """Divide only by steps that mean the same: found in the same way in both."""
    alike = a.steps.kind == b.steps.kind != ""
    return (a.step_count, b.step_count) if alike and a.step_count and b.step_count else None


def _metrics(steps: Steps, sums: Sums, divisor: int) -> dict[str, tuple[str, float | None]]:
    return {
        "time": ("ns", sums.time_ns / divisor),
        "busy": ("ns", None if sums.busy_ns is None else sums.busy_ns / divisor),
        "idle": ("ns", None if sums.idle_ns is None else sums.idle_ns / divisor),
        "step": ("ns", steps.median_ns),
        "kernels": ("", sums.rows / divisor),
        # None where nothing is known, as of copies' FLOPs
        "flops": ("flop", sums.flops / divisor or None),
        "bytes": ("bytes", sums.bytes / divisor or None),
        **_measured(sums, divisor),
    }


def _measured(sums: Sums, divisor: int) -> dict[str, tuple[str, float | None]]:
    """Give what counters measured: amounts, and means over the time of the kernels measured."""
    total = sums.counters.total if sums.counters else None
    dram, energy = (total.dram_bytes, total.energy_j) if total else (None, None)
    clock = total.mean("clock") if total else None
    return {
        "dram": ("bytes", None if dram is None else dram / divisor),
        "energy": ("j", None if energy is None else energy / divisor),
        "clock": ("hz", None if clock is None else clock * 1e6),
        "tensor": ("%", total.mean("tensor") if total else None),
    }


def _alike(name: str, a: Sums, b: Sums) -> bool:
    """Tell whether both know a metric of about as large a part of their rows."""
    shares = [_known(name, sums) / max(sums.rows, 1) for sums in (a, b)]
    return abs(shares[0] - shares[1]) <= _SHARE


def _known(name: str, sums: Sums) -> int:
    """Give of how many rows a metric is known."""
    if name in MEASURED:
        return sums.counters.total.rows if sums.counters else 0
    return sums.known.get(name, sums.rows)


_SHARE = 0.1
"""Shares of rows may differ by so much: a change of a few ops is what a comparison looks for."""


MEASURED = ("dram", "energy", "clock", "tensor")
"""Metrics by counters."""

METRICS = ("time", "busy", "idle", "step", "kernels", "flops", "bytes", *MEASURED)
"""What can be limited."""


def _changes(
    a: Mapping[Key, Sum], b: Mapping[Key, Sum], divisors: tuple[int, int], same_below: float
) -> list[Change]:
    changes = []
    for key in {**a, **b}:
        mine, other = a.get(key), b.get(key)
        a_ns, b_ns = (
            side.time_ns / divisor if side else 0.0
            for side, divisor in zip((mine, other), divisors, strict=True)
        )
        status = _status(mine, other, a_ns, b_ns, same_below)
        changes.append(Change(key, status, mine, other, a_ns, b_ns))
    return sorted(changes, key=lambda change: (-abs(change.delta_ns), str(change.key)))


def _status(a: Sum | None, b: Sum | None, a_ns: float, b_ns: float, same_below: float) -> str:
    if a is None or b is None:
        return NEW if a is None else GONE
    if abs(b_ns - a_ns) <= same_below * a_ns:
        return SAME
    return SLOWER if b_ns > a_ns else FASTER
