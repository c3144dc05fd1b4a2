"""The forward call of backward kernels in the original's files, which name only its number."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pyprof.records.records import DictionaryColumn, Records

if TYPE_CHECKING:
    from pyprof.records.records import Column

_FILLED = {
    "fwdMarker": "marker",
    "fwdSeqMarker": "seqMarker",
    "fwdMod": "mod",
    "fwdOp": "op",
    "fwdLayer": "layer",
    "fwdTrace": "trace",
}
"""By column: the column where the forward call's own row has it."""


def with_forward(records: Records) -> Records:
    """Fill in the forward call of each backward row, where the file does not hold it.

    It is the last row before it that has an op text and the backward row's sequence number.
    """
    if "start" in records.columns or "seqId" not in records.columns:
        return records  # written by this version of parse, which found forward calls itself
    rows = zip(
        *(records.arrow(name).to_pylist() for name in ("dir", "marker", "seqId", "altSeqId")),
        strict=True,
    )
    latest: dict[int, int] = {}
    partners = []
    for row, (direction, marker, current, others) in enumerate(rows):
        numbers = [*(current or ()), *(others or ())]
        if direction == "bprop" and not marker:
            partners.append(next((latest[n] for n in numbers if n in latest), -1))
            continue
        partners.append(-1)
        if marker and direction == "fprop":
            latest.update(dict.fromkeys(numbers, row))
    partner = np.array(partners, np.int64)
    columns: dict[str, Column] = dict(records.columns)
    for ours, theirs in _FILLED.items():
        source = records.dictionary(theirs)
        index = np.where(partner >= 0, source.index[partner], -1)
        columns[ours] = DictionaryColumn(index, source.values)
    return Records(records.rows, columns, records.devices, records.warnings)
