"""The rows that stand for a group of rows: those of it that take most time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from pyprof.arrays import Int64Array, IntArray

Key: TypeAlias = "tuple[str | None, ...]"

MAX_ROWS = 3
"""Rows of a group."""
_MAX_GROUPS = 32
"""Groups of a capture, those that take most time."""


@dataclass(frozen=True, slots=True)
class LongestRows:
    """The longest rows of groups, small enough to send."""

    rows: Mapping[Key, tuple[tuple[int, int], ...]]
    """Time, ns, and `idx` of each, by what the group has in common; the longest first."""
    row_count: int
    """Of all rows of the capture: those of the next one are numbered on behind them."""

    def merged(self, other: LongestRows) -> LongestRows:
        """Those of both captures."""
        rows = dict(self.rows)
        for key, theirs in other.rows.items():
            renumbered = ((ns, idx + self.row_count) for ns, idx in theirs)
            rows[key] = _first((*rows.get(key, ()), *renumbered))
        return LongestRows(rows, self.row_count + other.row_count)

    def row_ids(self, key: Key) -> tuple[int, ...]:
        """The `idx` of a group's rows; empty for a short group."""
        return tuple(idx for _, idx in self.rows.get(key, ()))


def _first(rows: Iterable[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    return tuple(sorted(rows, key=lambda row: (-row[0], row[1]))[:MAX_ROWS])


def longest_rows(
    group: IntArray,
    ns: Int64Array,
    keys: Sequence[Key],
    group_ns: Int64Array,
    rows: NDArray[np.int64] | None,
    row_count: int,
) -> LongestRows:
    """Find the longest rows of each group that takes much time.

    `group` and `ns` are of the chosen `rows` (None: all of the capture's `row_count`); a group is
    an index into `keys`, and takes `group_ns`.
    """
    rows_by_key = {}
    for number in np.argsort(-group_ns, kind="stable")[:_MAX_GROUPS].tolist():
        inside = np.flatnonzero(group == number)
        count = min(MAX_ROWS, len(inside))
        longest = inside[np.argpartition(-ns[inside], count - 1)[:count]]
        idx = (longest if rows is None else rows[longest]) + 1
        rows_by_key[keys[number]] = _first(zip(ns[longest].tolist(), idx.tolist(), strict=True))
    return LongestRows(rows_by_key, row_count)
