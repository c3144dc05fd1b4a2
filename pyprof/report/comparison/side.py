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
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from pyprof.report.source import Source
    from pyprof.report.steps import Steps
    from pyprof.sets.engine import Engine


_COSTS = ("flops", "bytes")


@dataclass(frozen=True, slots=True)
class Sums:
    """Sums over some rows. Times in ns."""

    matched: Matched
    time_ns: int
    busy_ns: int | None
    """Added up over GPUs; None where the records hold no times. So is `idle_ns`."""
    idle_ns: int | None
    rows: int
    flops: float
    """As far as they are known. So are `bytes`."""
    bytes: float
    known: Mapping[str, int]
    """Of how many rows they are."""

    @staticmethod
    def of(source: Source, keys: Sequence[str], rows: NDArray[np.bool_] | None) -> Sums:
        """Add up all rows, or those chosen."""
        table = source.table
        timed = timeline(table.records, source.capture, rows)
        devices = timed.devices if timed else ()
        summed = np.ones(table.records.rows, bool) if rows is None else rows
        costs = {name: getattr(table.costs, name)[summed] for name in _COSTS}
        return Sums(
            matched(table, keys, rows),
            int(table.duration_ns[summed].sum()),
            sum(device.busy_ns for device in devices) if devices else None,
            sum(device.idle_ns for device in devices) if devices else None,
            int(summed.sum()),
            **{name: float(cost[cost > 0].sum(dtype=float)) for name, cost in costs.items()},
            known={name: int((cost >= 0).sum()) for name, cost in costs.items()},
        )

    def plus(self, other: Sums) -> Sums:
        """Add the rows of another capture."""
        return Sums(
            self.matched.plus(other.matched),
            self.time_ns + other.time_ns,
            _sum(self.busy_ns, other.busy_ns),
            _sum(self.idle_ns, other.idle_ns),
            self.rows + other.rows,
            self.flops + other.flops,
            self.bytes + other.bytes,
            {name: self.known[name] + other.known[name] for name in _COSTS},
        )


@dataclass(frozen=True, slots=True)
class Side:
    """What is compared, in total and by steps."""

    gpus: tuple[str | None, ...]
    keys: tuple[str, ...]
    """What rows are matched by, as far as both sides know it."""
    steps: Steps
    """Without rows."""
    chosen: tuple[int, int] | None
    """The chosen steps: the first, and the one after the last."""
    whole: Sums
    """Over all rows; of chosen steps, over theirs."""
    inside: Sums | None
    """Over the rows of the steps; None where no steps are known."""
    warnings: tuple[str, ...]

    @property
    def step_count(self) -> int:
        """Over how many steps the sums go; 0 where no steps are known."""
        return self.chosen[1] - self.chosen[0] if self.chosen else len(self.steps)


def side(of: Source, keys: tuple[str, ...], chosen: str | None = None) -> Side:
    """Sum up a capture, or the steps of it that `chosen` (`3:`) names.

    Raises click.BadParameter where it names none.
    """
    found = steps.steps(of.table.records, of.capture)
    picked = bounds(found, chosen)
    stepped = Sums.of(of, keys, found.rows(picked or (0, len(found)))) if len(found) else None
    return Side(
        gpus(of),
        keys,
        replace(found, of_row=found.of_row[:0]),
        picked,
        stepped if picked and stepped else Sums.of(of, keys, None),
        stepped,
        of.table.source.warnings,
    )


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
    """Sum up two sets of captures from what was found of each.

    As in `steps.merge`, steps of another kind, an evaluation beside the training say, do not count.
    """
    alike = a.steps.kind == b.steps.kind
    return Side(
        source.distinct(a.gpus, b.gpus),
        a.keys,
        steps.merge(a.steps, b.steps),
        a.chosen or b.chosen,
        a.whole.plus(b.whole),
        a.inside.plus(b.inside) if alike and a.inside and b.inside else a.inside or b.inside,
        source.distinct(a.warnings, b.warnings),
    )


def _sum(a: int | None, b: int | None) -> int | None:
    """Add; of a sum of which a part is not known nothing is."""
    return None if a is None or b is None else a + b
