"""Hardware counters of each dispatch (`rocprofv3 --pmc`), in the names of `schema.COUNTERS`.

A counter may have a row for each part of the chip: their sum is a count's, their mean a share's.
Names are those of rocprofv3's list of counters (`rocprofv3-avail list --pmc`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from pyprof.arrays import MISSING, ints
from pyprof.readers.rocpd.recording import Rows

if TYPE_CHECKING:
    from pyprof.arrays import Floats, Int64Array
    from pyprof.readers.rocpd.recording import Recording

_KIB = 1024  # the unit of FETCH_SIZE and WRITE_SIZE
_MAX_HZ = 1e10
"""A higher clock comes from cycles that were added up over parts of the chip."""
_NAMES = (
    *("FETCH_SIZE", "WRITE_SIZE", "MfmaUtil", "OccupancyPercent", "L2CacheHit", "SQ_INSTS_MFMA"),
    *("GRBM_GUI_ACTIVE", "TCC_HIT_sum", "TCC_MISS_sum"),
)

SERIAL = (
    "counters were measured, for which rocprofv3 runs one kernel at a time: overlap, gaps and idle "
    "time are not the program's; for these capture without --pmc"
)
"""The warning for a capture with counters."""


class _Values(NamedTuple):
    """A counter by dispatch; NaN where it was not measured."""

    total: Floats
    mean: Floats


def of_dispatches(recording: Recording, rows: pa.Table) -> pa.Array | None:
    """Return what was measured of each dispatch, as JSON; None if nothing was."""
    values = _values(recording, ints(rows.column("event_id")))
    if not values:
        return None
    start, end = (ints(rows.column(name)) for name in ("start", "end"))
    took_s = np.where((start >= 0) & (end > start), (end - start) / 1e9, np.nan)
    nothing = _Values(np.full(len(took_s), np.nan), np.full(len(took_s), np.nan))
    each = {name: values.get(name, nothing) for name in _NAMES}
    hits, misses = each["TCC_HIT_sum"].total, each["TCC_MISS_sum"].total
    looked_up = np.where(hits + misses > 0, hits + misses, np.nan)
    share = each["L2CacheHit"].mean
    clock_hz = each["GRBM_GUI_ACTIVE"].mean / took_s
    columns = {
        "dram_bytes": _KIB * (each["FETCH_SIZE"].total + each["WRITE_SIZE"].total),
        "tensor_pct": each["MfmaUtil"].mean,
        "tensor_insts": each["SQ_INSTS_MFMA"].total,
        "occupancy_pct": each["OccupancyPercent"].mean,
        "l2_hit_pct": np.where(np.isnan(share), 100 * hits / looked_up, share),
        "clock_hz": np.where(clock_hz < _MAX_HZ, clock_hz, np.nan),
    }.items()
    texts = []
    for row in range(rows.num_rows):
        known = {name: float(column[row]) for name, column in columns if column[row] >= 0}
        texts.append(orjson.dumps({"source": "rocprofv3", **known}).decode() if known else None)
    return pa.array(texts, pa.string())


def _values(recording: Recording, of_dispatch: Int64Array) -> dict[str, _Values]:
    """Return the known counters that were measured, by name."""
    listed = recording.read("pmc", {"id": int, "name": str})
    known = pc.is_in(listed.column("name"), pa.array(_NAMES))
    listed = listed.filter(known)
    if not listed.num_rows:
        return {}
    events = recording.read("pmc_event", {"event_id": int, "pmc_id": int, "value": float})
    counter = Rows(ints(listed.column("id"))).rows(ints(events.column("pmc_id")))
    dispatch = Rows(of_dispatch).rows(ints(events.column("event_id")))
    value = events.column("value").to_numpy()
    used = (counter != MISSING) & (dispatch != MISSING) & np.isfinite(value) & (value >= 0)
    values: dict[str, _Values] = {}
    for index, name in enumerate(listed.column("name").to_pylist()):
        rows = np.flatnonzero(used & (counter == index))
        if len(rows):
            count = np.bincount(dispatch[rows], minlength=len(of_dispatch))
            summed = np.bincount(dispatch[rows], value[rows], len(of_dispatch))
            total: Floats = np.where(count > 0, summed.astype(np.float64), np.nan)
            values[name] = _Values(total, total / np.maximum(count, 1))
    return values
