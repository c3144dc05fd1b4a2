"""One of the captures that are compared, small enough to send; several make one side."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from pyprof.report import source, steps
from pyprof.report.comparison.matching import Matched, matched
from pyprof.report.overview import gpus
from pyprof.report.steps_option import bounds
from pyprof.report.timeline import timeline

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from pyprof.report.source import Source
    from pyprof.report.steps import Steps
    from pyprof.sets.engine import Engine


@dataclass(frozen=True, slots=True)
class Side:
    """Sums over all rows, or those of the chosen steps. Times in ns."""

    gpus: tuple[str | None, ...]
    keys: tuple[str, ...]
    """What rows are matched by, as far as both sides know it."""
    matched: Matched
    steps: Steps
    """Without rows."""
    chosen: tuple[int, int] | None
    """The chosen steps: the first, and the one after the last."""
    time_ns: int
    busy_ns: int | None
    """Added up over GPUs; None where the records hold no times. So is `idle_ns`."""
    idle_ns: int | None
    rows: int
    flops: float
    """As far as they are known. So are `bytes`."""
    bytes: float
    warnings: tuple[str, ...]

    @property
    def step_count(self) -> int:
        """Over how many steps the sums go; 0 where no steps are known."""
        return self.chosen[1] - self.chosen[0] if self.chosen else len(self.steps)


def side(of: Source, keys: tuple[str, ...], chosen: str | None = None) -> Side:
    """Sum up a capture, or the steps of it that `chosen` (`3:`) names.

    Raises click.BadParameter where it names none.
    """
    table = of.table
    found = steps.steps(table.records, of.capture)
    picked = bounds(found, chosen)
    rows = found.rows(picked)
    timed = timeline(table.records, of.capture, rows)
    devices = timed.devices if timed else ()
    summed = np.ones(table.records.rows, bool) if rows is None else rows
    return Side(
        gpus(of),
        keys,
        matched(table, keys, rows),
        replace(found, of_row=found.of_row[:0]),
        picked,
        int(table.duration_ns[summed].sum()),
        sum(device.busy_ns for device in devices) if devices else None,
        sum(device.idle_ns for device in devices) if devices else None,
        int(summed.sum()),
        _known(table.costs.flops[summed]),
        _known(table.costs.bytes[summed]),
        table.source.warnings,
    )


def _known(costs: NDArray[np.int64]) -> float:
    return float(costs[costs > 0].sum(dtype=float))


def of_all(
    sources: Sequence[str],
    keys: tuple[str, ...],
    chosen: str | None,
    engine: Engine,
    begin: Callable[[str], object] = str,
) -> Side:
    """Sum up one file, or all captures of a set. Raises as `side` and `source.load` do."""
    work = partial(side, keys=keys, chosen=chosen)
    return source.of_all(sources, work, merge, engine, begin=begin)


def merge(a: Side, b: Side) -> Side:
    """Sum up two sets of captures from what was found of each."""
    return Side(
        source.distinct(a.gpus, b.gpus),
        a.keys,
        a.matched.plus(b.matched),
        steps.merge(a.steps, b.steps),
        a.chosen or b.chosen,
        a.time_ns + b.time_ns,
        _sum(a.busy_ns, b.busy_ns),
        _sum(a.idle_ns, b.idle_ns),
        a.rows + b.rows,
        a.flops + b.flops,
        a.bytes + b.bytes,
        source.distinct(a.warnings, b.warnings),
    )


def _sum(a: int | None, b: int | None) -> int | None:
    """Add; of a sum of which a part is not known nothing is."""
    return None if a is None or b is None else a + b
