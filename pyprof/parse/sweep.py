"""The nested ranges of a capture and what their texts say: what the steps of parsing share."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pyprof.arrays import NONE
from pyprof.parse.ranges import Nest

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pyprof.arrays import Integers
    from pyprof.parse import paths, texts
    from pyprof.parse.paths import Path


class NestedTexts(NamedTuple):
    """The ranges that mean something, nested, in sweep order, and their texts."""

    nest: Nest
    texts: texts.Texts
    row: NDArray[np.int32]
    """Row of each range in the capture."""
    doubts: tuple[str, ...]
    """What is wrong with ranges, in sentences for the user."""


@dataclass(frozen=True, slots=True)
class Sweep:
    """The ranges that mean something, nested, in sweep order, and what their texts say."""

    nest: Nest
    texts: texts.Texts
    paths: paths.Paths
    backward: NDArray[np.bool_]
    """Per path: one of the backward pass."""
    again: NDArray[np.int8]
    """Per path: forward work that the backward pass runs again, as `Paths.again` says."""
    row: NDArray[np.int32]
    """Row of each range in the capture."""
    doubts: tuple[str, ...]
    """What is wrong with ranges, in sentences for the user."""


def without_ends(sweep: Sweep) -> Sweep:
    """Leave of a sweep what is asked for once it is known what lies in which range."""
    nest = sweep.nest
    none_asked = np.zeros(0, np.int64)
    return replace(sweep, nest=Nest(nest.thread, nest.start, none_asked, nest.parent, nest.order))


@dataclass(frozen=True, slots=True)
class DescribedSweep:
    """Ranges of which some paths are put into words: those that some row needs.

    Where they begin and end is no longer asked.
    """

    texts: texts.Texts
    paths: paths.Paths
    row: NDArray[np.int32]
    """Row of each range in the capture."""
    described: list[Path]
    """The last is that of what lies in no range."""
    place: NDArray[np.int32]
    """Per path: where it is described; NONE for those that no row needs."""

    def path(self, ranges: Integers) -> NDArray[np.int32]:
        """Give the described path of each of some ranges; NONE stays NONE."""
        place = self.place.take(self.paths.of_range)
        return np.append(place, np.int32(NONE)).take(ranges)
