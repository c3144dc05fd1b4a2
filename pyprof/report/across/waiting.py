"""Of each collective: who came last, how long the others waited for it, how long data moved.

A rank is in a collective from its kernel's start. Until the last has come it waits (skew); from
then on data moves (transfer). What is below the residuals of two clocks is not told.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pyprof.report.across.match import ABSENT, Group

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from pyprof.report.across.clocks import Clock
    from pyprof.report.across.columns import Columns

    Ints = NDArray[np.int64]

NOBODY = -1
UNKNOWN = -1


@dataclass(frozen=True, slots=True)
class Waits:
    """The collectives of a group in which at least two ranks are on one clock. Times in ns."""

    group: Group
    ranks: Ints
    """Those that are on the clock."""
    rows: Ints
    """[collective]: its row in the table of collectives, of the first rank that has it."""
    step: Ints
    """[collective]: of that rank."""
    last: Ints
    """[collective]: the rank that came last; NOBODY where several came last together."""
    wait_ns: Ints
    """[rank, collective]: how long it waited; 0 below the residual, and where it was not there."""
    latest: NDArray[np.bool_]
    """[rank, collective]: whether it came last, or within the residual of the last."""
    there: NDArray[np.bool_]
    """[rank, collective]: whether its capture has it."""
    transfer_ns: Ints
    """[collective]: UNKNOWN where ranks are missing or the clocks are not good enough."""
    impossible: int
    """Collectives that somebody left before the last had come; nothing is told of them."""

    @property
    def others_ns(self) -> Ints:
        """Give, per collective, what all ranks together waited."""
        return np.asarray(self.wait_ns.sum(axis=0))


def waits(
    columns: Columns, groups: Sequence[Group], clocks: Mapping[int, Clock]
) -> tuple[Waits, ...]:
    """Take the collectives of every group apart; a group of which one rank is aligned has none."""
    found = (_waits(columns, group, clocks) for group in groups)
    return tuple(one for one in found if one is not None)


def _waits(columns: Columns, group: Group, clocks: Mapping[int, Clock]) -> Waits | None:
    aligned = [row for row, rank in enumerate(group.ranks.tolist()) if rank in clocks]
    there = group.rows[aligned] != ABSENT
    shared = there.sum(axis=0) > 1
    if not shared.any():
        return None
    ranks, rows, there = group.ranks[aligned], group.rows[aligned][:, shared], there[:, shared]
    clock = [clocks[int(rank)] for rank in ranks]
    start, end = (
        np.stack([one.align(times) for one, times in zip(clock, column[rows], strict=True)])
        for column in (columns.start_ns, columns.end_ns)
    )
    residual = sum(sorted(one.residual_ns for one in clock)[-2:])  # of a difference between two
    arrived = np.where(there, start, np.iinfo(np.int64).min)
    order = np.sort(arrived, axis=0)
    latest, second = order[-1], order[-2]
    # Nobody leaves before the last has come: where somebody does, these are not one collective,
    # or one that only some wait in, as a broadcast.
    first_left = np.where(there, end, np.iinfo(np.int64).max).min(axis=0)
    possible = latest <= first_left + residual
    last = np.where(possible & (latest - second > residual), ranks[arrived.argmax(axis=0)], NOBODY)
    wait = np.where(there & possible, latest - start, 0)
    wait[wait <= residual] = 0
    whole = there.all(axis=0) & possible & (len(ranks) == len(group.ranks)) & group.complete
    moved = np.median(end - latest, axis=0).astype(np.int64)  # of times since 1970, floats lose ns
    transfer = np.where(whole & (moved > residual), moved, UNKNOWN)
    lead = rows[there.argmax(axis=0), np.arange(rows.shape[1])]
    return Waits(
        group,
        ranks,
        lead,
        columns.step[lead],
        last,
        wait,
        there & (latest - start <= residual),
        there,
        transfer,
        int((~possible).sum()),
    )
