"""For each collective: who came last, how long the others waited, how long data moved.

A rank is in a collective from its kernel's start. Until the last has come it waits (skew); from
then on data moves (transfer). What is below the residuals of two ranks is not reported.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pyprof.arrays import MISSING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from pyprof.analysis.ranks.clocks import Clock
    from pyprof.analysis.ranks.match import CollectiveMatrix, Group
    from pyprof.analysis.ranks.tables import Collectives
    from pyprof.arrays import IntArray


@dataclass(frozen=True, slots=True)
class Waits:
    """The collectives of a group in which at least two ranks are on one clock. Times in ns."""

    group: Group
    ranks: IntArray
    """The ranks on the common clock."""
    signature: IntArray
    """[collective]: its kind, from the first rank that has it."""
    bytes: IntArray
    """[collective]: algorithm bytes, the mean over ranks; MISSING if unknown for any."""
    even: NDArray[np.bool_]
    """[collective]: whether these bytes are the same on all ranks."""
    step: IntArray
    """[collective]: its step, from the first rank with it in a step; MISSING outside of steps."""
    last: IntArray
    """[collective]: the rank that came last; MISSING where several came last together."""
    wait_ns: IntArray
    """[rank, collective]: how long it waited; 0 below the residual, and where it was not there."""
    latest: NDArray[np.bool_]
    """[rank, collective]: whether it came last, or within the residual of the last."""
    there: NDArray[np.bool_]
    """[rank, collective]: whether its capture has it."""
    transfer_ns: IntArray
    """[collective]: MISSING where ranks are missing or the clocks are not good enough."""
    possible: NDArray[np.bool_]
    """[collective]: whether no rank left before the last one came; others have unusable times."""

    @property
    def others_ns(self) -> IntArray:
        """Return, per collective, what all ranks together waited."""
        return np.asarray(self.wait_ns.sum(axis=0))


def waits(
    columns: Collectives, matrices: Sequence[CollectiveMatrix], clocks: Mapping[int, Clock]
) -> tuple[Waits, ...]:
    """Find the waits of each group; groups without two ranks on one clock have none."""
    waits_of_groups = []
    for matrix in matrices:
        rows_of: dict[int, list[int]] = {}
        for row, rank in enumerate(matrix.group.ranks.tolist()):
            if rank in clocks:
                rows_of.setdefault(clocks[rank].against, []).append(row)
        # the largest set of ranks that are aligned with each other
        aligned = max(rows_of.values(), key=len, default=[])
        rows = matrix.rows[aligned]
        shared = (rows != MISSING).sum(axis=0) > 1
        if shared.any():
            ranks = matrix.group.ranks[aligned]
            clock = [clocks[rank] for rank in ranks.tolist()]
            waits_of_groups.append(_waits(columns, matrix.group, ranks, clock, rows[:, shared]))
    return tuple(waits_of_groups)


def _waits(
    columns: Collectives, group: Group, ranks: IntArray, clock: Sequence[Clock], rows: IntArray
) -> Waits:
    there = rows != MISSING
    start, end = (
        np.stack([one.align(times) for one, times in zip(clock, column[rows], strict=True)])
        for column in (columns.start_ns, columns.end_ns)
    )
    arrived = np.where(there, start, np.iinfo(np.int64).min)
    last = arrived.argmax(axis=0)
    at = arrived.max(axis=0)
    doubt = _doubt(clock, last)
    # No rank leaves before the last has come: if one does, these are not one collective, or one
    # in which only some wait, such as a broadcast.
    possible = ((at <= end + doubt) | ~there).all(axis=0)
    wait = np.where(there & possible, at - start, 0)
    latest = there & (at - start <= doubt)
    wait[wait <= doubt] = 0
    moved = np.median(end - at, axis=0).astype(np.int64)  # floats of times since 1970 would lose ns
    complete = group.complete and len(ranks) == len(group.ranks)
    transfer_known = complete & there.all(axis=0) & possible & (moved > np.median(doubt, axis=0))
    every = np.arange(rows.shape[1])
    lead = rows[there.argmax(axis=0), every]
    step = np.where(there, columns.step[rows], MISSING)
    signature = columns.signature[lead]
    bytes_given = columns.signatures.bytes[columns.signature[rows]]
    even = ((bytes_given == columns.signatures.bytes[signature]) | ~there).all(axis=0)
    bytes_known = ((bytes_given >= 0) | ~there).all(axis=0)
    mean = np.where(there, bytes_given, 0).sum(axis=0) // there.sum(axis=0)
    return Waits(
        group=group,
        ranks=ranks,
        signature=signature,
        bytes=np.where(bytes_known, mean, MISSING),
        even=even,
        step=step[(step >= 0).argmax(axis=0), every],  # a capture may lack the marks of steps
        last=np.where(possible & (latest.sum(axis=0) == 1), ranks[last], MISSING),
        wait_ns=wait,
        latest=latest,
        there=there,
        transfer_ns=np.where(transfer_known, moved, MISSING),
        possible=possible,
    )


def _doubt(clock: Sequence[Clock], last: IntArray) -> IntArray:
    """The largest difference between each rank and the last that counts as none, by collective."""
    residual = np.array([one.residual_ns for one in clock])
    number = np.array([one.number for one in clock])
    apart = residual[:, np.newaxis] + residual[last]
    return np.where(number[:, np.newaxis] == number[last], 0, apart)
