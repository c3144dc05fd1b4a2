"""Idle time of one cause, and the rows next to its gaps."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pyprof.arrays import Ints
    from pyprof.report.advice.case import Case


def idle_for(case: Case, cause: str) -> tuple[Ints, Ints, NDArray[np.float64]]:
    """Give the row before and the row after each gap of a cause, and its time for that cause."""
    before, after, time = [], [], []
    for device in case.devices:
        gaps = device.gaps
        ns = case.idle(device, cause).inside(gaps.start, gaps.end)
        some = ns > 0
        before.append(_ended(case, device.pid, device.device, gaps.start[some]))
        after.append(gaps.row[some])
        time.append(ns[some].astype(float))
    nothing = np.zeros(0, np.int64)
    return (
        np.concatenate([nothing, *before]),
        np.concatenate([nothing, *after]),
        np.concatenate([nothing.astype(float), *time]),
    )


def _ended(case: Case, pid: int, device: int, instant: Ints) -> Ints:
    """Find the last row of a device that had ended by each instant."""
    records = case.table.records
    rows = np.flatnonzero((records.numpy("pid") == pid) & (records.numpy("device") == device))
    end = records.numpy("end")[rows]
    rows = rows[np.argsort(end, kind="stable")]
    place = np.searchsorted(np.sort(end), instant, side="right") - 1
    return rows[np.maximum(place, 0)]
