"""What a roofline shows: its points, its roofs, and how much of the GPU time they stand for."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from pyprof.errors import PyprofError
from pyprof.prof.processor import GPU, processor
from pyprof.report import source, steps_option
from pyprof.report.overview import gpus
from pyprof.report.page.roofline import Achieved, Point, Roof, achieved, points, roofs

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyprof.prof.table import Override
    from pyprof.report.source import Source
    from pyprof.sets.engine import Engine

_MOST_ROOFS = 4


@dataclass(frozen=True, slots=True)
class Chart:
    """One roofline; at least one point."""

    title: str
    points: list[Point]
    """The longest first."""
    roofs: list[Roof]
    """Those of most time first; none for a device of which nothing is known."""
    processor: str = GPU
    """Whose time it is."""

    @property
    def summary(self) -> str:
        """Say how much is drawn, and why there may be no roof."""
        share = sum(point.share for point in self.points)
        text = f"{len(self.points)} ops, {100 * share:.1f} % of {self.processor} time"
        if self.roofs:
            return text
        return (
            f"{text}; no peak of the device is known: --gpu, --peak-flops or,"
            " after pyprof peaks --measure, --measured gives one"
        )


@dataclass(frozen=True, slots=True)
class Roofline:
    """What a chart is made from, small enough to send; that of several captures makes one."""

    gpus: tuple[str | None, ...]
    asked: str | None
    """The device whose peaks stand for theirs."""
    achieved: Achieved
    warnings: tuple[str, ...]

    def chart(self, limit: int) -> Chart:
        """Give the ops that do arithmetic on memory, at most `limit`.

        Raises PyprofError where there is none: an op needs FLOPs and bytes, both known.
        """
        found = points(self.achieved, limit)
        if not found:
            raise PyprofError(
                "no op of this file has known FLOPs and bytes: pyprof prof says why in column why"
            )
        names = ", ".join(name for name in self.gpus if name) or "a GPU without a name"
        title = f"{names}, against {self.asked}" if self.asked else names
        return Chart(title, found, roofs(self.achieved, _MOST_ROOFS), processor(self.gpus))


def roofline(of: Source, chosen: str | None = None) -> Roofline:
    """Sum up a capture, or the steps of it that `chosen` (`3:`) names.

    Raises click.BadParameter where it names none.
    """
    table = of.table
    found = achieved(table, steps_option.rows(of, chosen))
    return Roofline(gpus(of), table.override.gpu, found, (*table.source.warnings, *table.doubts))


def of_all(
    sources: Sequence[str],
    chosen: str | None,
    override: Override,
    engine: Engine,
    begin: Callable[[str], object] = str,
) -> Roofline:
    """Sum up one file, or all captures of a set. Raises as `roofline` and `source.load` do."""
    work = partial(roofline, chosen=chosen)
    return source.of_all(sources, work, merge, engine, override, begin)


def merge(a: Roofline, b: Roofline) -> Roofline:
    """Sum up two sets of captures from what was found of each."""
    return Roofline(
        source.distinct(a.gpus, b.gpus),
        a.asked,
        a.achieved.plus(b.achieved),
        source.distinct(a.warnings, b.warnings),
    )
