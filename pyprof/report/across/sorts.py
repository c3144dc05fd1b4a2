"""Which collectives of a group are of one sort, so that a table has one row of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pyprof.report.across.columns import UNKNOWN, numbered

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyprof.arrays import Integers
    from pyprof.report.across.columns import Columns
    from pyprof.report.across.waiting import Waits


_MIXED = -2
_SIZES = 64
"""Of more sizes than these of one group, as of batches of any length, the rarer are one sort."""


@dataclass(frozen=True, slots=True)
class Sort:
    """What collectives have in common."""

    kind: str | None
    algorithm: str | None
    bytes: int | None
    """Algorithm bytes of a rank; of mixed sizes the mean; None where that is not told."""
    mixed: bool
    """Whether they, or a collective's ranks, differ in size."""

    @property
    def like(self) -> tuple[object, ...]:
        """What is equal for the same sort in another group."""
        return self.kind, self.algorithm, self.mixed, None if self.mixed else self.bytes


def by_sort(columns: Columns, one: Waits) -> Iterator[tuple[Sort, Integers]]:
    """Give the sorts of a group's collectives, and which of them are of each."""
    what = columns.signatures
    kind, algorithm = what.kind[one.signature], what.algorithm[one.signature]
    size = np.where(one.even, one.bytes, _MIXED)
    number = numbered(kind, algorithm, size)
    calls = np.bincount(number)
    if len(calls) > _SIZES:
        often = np.argsort(-calls, kind="stable")[:_SIZES]
        size = np.where(np.isin(number, often), size, _MIXED)
        number = numbered(kind, algorithm, size)
    order = np.argsort(number, kind="stable")
    for chosen in np.split(order, np.flatnonzero(np.diff(number[order])) + 1):
        first, moved = chosen[0], one.bytes[chosen]
        known = bool((moved != UNKNOWN).all())
        yield (
            Sort(
                _text(what.kinds, kind[first]),
                _text(what.algorithms, algorithm[first]),
                int(moved.sum()) // len(moved) if known else None,
                bool(size[first] == _MIXED),
            ),
            chosen,
        )


def _text(names: Sequence[str], code: int) -> str | None:
    return names[code] if code >= 0 else None
