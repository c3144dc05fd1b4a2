"""What changed from one capture to the other: in all, and op by op."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pyprof.report.comparison.matching import Key, Sum, known_in_both, sums
from pyprof.report.steps import Steps, steps
from pyprof.report.steps_option import bounds
from pyprof.report.timeline import Timeline, timeline

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from pyprof.report.source import Source

FASTER, SLOWER, SAME, NEW, GONE = "faster", "slower", "same", "new", "gone"


@dataclass(frozen=True, slots=True)
class Metric:
    """One number of both captures, on the basis of the comparison; None where not known."""

    name: str
    unit: str
    """`ns`, `flop`, `bytes` or empty for a count."""
    a: float | None
    b: float | None

    @property
    def delta(self) -> float | None:
        """How much more b has."""
        return None if self.a is None or self.b is None else self.b - self.a

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


def compare(
    a: Source, b: Source, names: Sequence[str], chosen: str | None = None, same_below: float = 0.01
) -> Comparison:
    """Compare two captures; `chosen` are steps (`3:`) of both.

    Per step, of what runs in steps, where both have steps of the same origin, for then they may
    differ in length; else in total. A relative difference up to `same_below` is none.
    """
    found = [steps(source.table.records, source.capture) for source in (a, b)]
    alike = found[0].kind == found[1].kind != ""
    sides = [
        _Side.of(source, of_it, bounds(of_it, chosen) or ((0, len(of_it)) if alike else None))
        for source, of_it in zip((a, b), found, strict=True)
    ]
    per_step = (sides[0].step_count, sides[1].step_count) if alike else None
    divisors = per_step or (1, 1)
    keys = known_in_both(a.table, b.table, names)
    mine, theirs = (sums(side.source.table, keys, side.rows) for side in sides)
    metrics = [_metrics(side, by) for side, by in zip(sides, divisors, strict=True)]
    return Comparison(
        keys,
        per_step,
        {name: Metric(name, unit, value, metrics[1][name][1])
         for name, (unit, value) in metrics[0].items()},
        _changes(mine, theirs, divisors, same_below),
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Side:
    source: Source
    steps: Steps
    rows: NDArray[np.bool_] | None
    step_count: int
    timeline: Timeline | None

    @staticmethod
    def of(source: Source, found: Steps, picked: tuple[int, int] | None) -> _Side:
        rows = found.rows(picked)
        timed = timeline(source.table.records, source.capture, rows)
        return _Side(source, found, rows, picked[1] - picked[0] if picked else 0, timed)


def _metrics(side: _Side, divisor: int) -> dict[str, tuple[str, float | None]]:
    table = side.source.table
    rows = np.ones(table.records.rows, bool) if side.rows is None else side.rows
    devices = side.timeline.devices if side.timeline else ()
    busy = sum(device.busy_ns for device in devices) / divisor if devices else None
    idle = sum(device.idle_ns for device in devices) / divisor if devices else None
    return {
        "time": ("ns", float(table.duration_ns[rows].sum()) / divisor),
        "busy": ("ns", busy),
        "idle": ("ns", idle),
        "step": ("ns", side.steps.median_ns),
        "kernels": ("", int(rows.sum()) / divisor),
        "flops": ("flop", _known(table.costs.flops[rows], divisor)),
        "bytes": ("bytes", _known(table.costs.bytes[rows], divisor)),
    }


METRICS = ("time", "busy", "idle", "step", "kernels", "flops", "bytes")
"""What can be limited."""


def _known(costs: NDArray[np.int64], divisor: int) -> float | None:
    """Sum what is known of a cost; None where that is nothing, as for copies' FLOPs."""
    return float(costs[costs > 0].sum(dtype=float)) / divisor or None


def _changes(
    a: Mapping[Key, Sum], b: Mapping[Key, Sum], divisors: tuple[int, int], same_below: float
) -> list[Change]:
    found = []
    for key in {**a, **b}:
        mine, other = a.get(key), b.get(key)
        a_ns, b_ns = (
            side.time_ns / divisor if side else 0.0
            for side, divisor in zip((mine, other), divisors, strict=True)
        )
        status = _status(mine, other, a_ns, b_ns, same_below)
        found.append(Change(key, status, mine, other, a_ns, b_ns))
    return sorted(found, key=lambda change: (-abs(change.delta_ns), str(change.key)))


def _status(a: Sum | None, b: Sum | None, a_ns: float, b_ns: float, same_below: float) -> str:
    if a is None or b is None:
        return NEW if a is None else GONE
    if abs(b_ns - a_ns) <= same_below * a_ns:
        return SAME
    return SLOWER if b_ns > a_ns else FASTER
