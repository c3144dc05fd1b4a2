"""Records of a capture in a set: each knows its rank."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from pyprof.parse import recordfile
from pyprof.parse.records import Records
from pyprof.sets.find import fetch

if TYPE_CHECKING:
    from pyprof.parse.records import Column
    from pyprof.sets.members import Member


def records_of(member: Member) -> Records:
    """Read a capture, or a file of records, and fill in `rank`.

    Raises CaptureError or RecordsError where it cannot be used. A row of a process that is none of
    the member's keeps the rank it has.
    """
    with fetch(member.url) as path:
        return ranked(recordfile.load(str(path)), member)


def ranked(records: Records, member: Member) -> Records:
    """Fill in `rank`, by process where the capture holds several."""
    columns = {**records.columns, "rank": _ranks(records, member)}
    return Records(records.rows, columns, records.devices, records.warnings)


def _ranks(records: Records, member: Member) -> Column:
    ranks = [rank for _, rank in member.ranks]
    if len(ranks) == 1:
        return pa.array(np.full(records.rows, ranks[0], np.int64))
    pid = records.numpy("pid")
    found = records.numpy("rank").copy()
    for process, rank in member.ranks:
        found[pid == process] = rank
    return pa.array(found, mask=found < 0)
