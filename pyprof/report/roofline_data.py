"""What a roofline shows: its points, its roofs, and how much of the GPU time they stand for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyprof.errors import PyprofError
from pyprof.report.overview import gpus
from pyprof.report.page.roofline import Point, Roof, points, roofs

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from pyprof.report.source import Source

_MOST_ROOFS = 4


@dataclass(frozen=True, slots=True)
class Chart:
    """One roofline; at least one point."""

    title: str
    points: list[Point]
    """The longest first."""
    roofs: list[Roof]
    """Those of most time first; none for a device of which nothing is known."""

    @property
    def summary(self) -> str:
        """Say how much is drawn, and why there may be no roof."""
        share = sum(point.share for point in self.points)
        text = f"{len(self.points)} ops, {100 * share:.1f} % of GPU time"
        if self.roofs:
            return text
        return (
            f"{text}; no peak of the device is known: --gpu, --peak-flops or,"
            " after pyprof peaks --measure, --measured gives one"
        )


def chart(source: Source, rows: NDArray[np.bool_] | None, limit: int) -> Chart:
    """Collect the ops of a capture that do arithmetic on memory, at most `limit`.

    Raises PyprofError where there is none: an op needs FLOPs and bytes, both known.
    """
    found = points(source.table, rows, limit)
    if not found:
        raise PyprofError(
            "no op of this file has known FLOPs and bytes: pyprof prof says why in column why"
        )
    names = ", ".join(name for name in gpus(source) if name) or "a GPU without a name"
    asked = source.table.override.gpu
    title = f"{names}, against {asked}" if asked else names
    return Chart(title, found, roofs(source.table, rows, _MOST_ROOFS))
