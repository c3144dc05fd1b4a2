"""Which rows belong to one op call, by the ids of the ranges around them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pyprof.parse.records import distinct
from pyprof.prof.situations import OWN, Work

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pyprof.parse.records import Records

    Ints = NDArray[np.int64]


def number(records: Records, works: list[Work], work_of: Ints, computes: NDArray[np.bool_]) -> Ints:
    """Number the op calls; rows of one call share its number.

    `computes` are the rows that may do their op's arithmetic.
    """
    if around(records) is None:
        return _runs(np.stack([work_of, records.numpy("rank")]), computes)
    ids = chosen(records, works, work_of)
    call = np.where(ids < 0, -1 - np.arange(len(ids)), ids)
    used, call = distinct(call)
    # Rows of one call in different surroundings work for the same: it is costed once.
    known: dict[object, int] = {}
    same = [known.setdefault((w.call, w.direction, w.dtype, w.output), len(known)) for w in works]
    return distinct(np.array(same, np.int64)[work_of] * len(used) + call)[1]


def chosen(records: Records, works: list[Work], work_of: Ints) -> Ints:
    """Give the id of the call that each row works for; -1 for a row that is a call of its own."""
    position = np.array([work.position for work in works], np.int64)[work_of]
    found = np.full(len(position), -1)
    if (ids := around(records)) is not None:
        offsets, members = ids
        within = (position != OWN) & (position < np.diff(offsets))
        found[within] = members[offsets[:-1][within] + position[within]]
    return found


def around(records: Records) -> tuple[Ints, Ints] | None:
    """Give offsets and ids of the calls around each row, ascending inward; None if not told."""
    column = records.arrow("callIds")
    if column.null_count == len(column):
        return None
    return column.offsets.to_numpy().astype(np.int64), column.values.to_numpy()


def _runs(of: Ints, computes: NDArray[np.bool_]) -> Ints:
    """Guess the op calls of the original's files, which do not tell them.

    Each kernel that may do arithmetic is a call of its own, as it was there; helpers belong to
    the call before them, if that is of the same op and rank: `of`, shape (2, rows).
    """
    begins = computes | np.diff(of, prepend=-2).any(axis=0)
    return np.cumsum(begins) - 1
