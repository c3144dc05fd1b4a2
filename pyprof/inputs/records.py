"""Records of a capture in a set: each knows its rank."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import pyarrow as pa

from pyprof.inputs.find import fetch
from pyprof.inputs.ranks import Member, members
from pyprof.parse import record_file
from pyprof.parse.records import Records

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyprof.inputs.engine import Engine
    from pyprof.parse.records import Column

Item: TypeAlias = "Member | str"
"""A capture of a set; or a single file, of whatever rank, or `-` for dict lines on stdin."""


def items(sources: Sequence[str], engine: Engine) -> Sequence[Item]:
    """Give what a user means by some files: one file is itself, all else is a set.

    Raises CaptureError where a set holds nothing, or a rank twice.
    """
    if len(sources) == 1 and (sources[0] == record_file.STDIN or Path(sources[0]).is_file()):
        return [sources[0]]
    return members(sources, engine)


def load(item: Item) -> Records:
    """Read records for costs and columns, which need no raw texts.

    Raises CaptureError or RecordsError where they cannot be used.
    """
    if isinstance(item, Member):
        return records_of(item, raw=False)
    return record_file.load(item, raw=False)


def records_of(member: Member, *, raw: bool = True) -> Records:
    """Read a capture, or a file of records, and fill in `rank`; `raw` is that of `parquet.read`.

    Raises CaptureError or RecordsError where it cannot be used. A row of a process that is none of
    the member's keeps the rank it has.
    """
    with fetch(member.url) as path:
        return ranked(record_file.load(str(path), raw=raw), member)


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
