"""The GPUs of a recording: their numbers, names, compute units and clocks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from pyprof import schema
from pyprof.arrays import MISSING, ints
from pyprof.readers.rocpd.recording import Rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyprof.arrays import Int64Array, Mask
    from pyprof.readers.rocpd.recording import Recording

_MEGA = 1_000_000
_NAMES = ("product_name", "user_name", "model_name", "name")
"""Columns with a name of a device, the best first: the last is its architecture, as gfx942."""


class Agents:
    """The agents of a recording, by their ids."""

    def __init__(self, recording: Recording) -> None:
        texts = dict.fromkeys((*_NAMES, "type", "extdata"), str)
        numbers = dict.fromkeys(("id", "type_index"), int)
        table = recording.read("agent", {**numbers, **texts})
        rows = table.to_pylist()
        self._index = Rows(ints(table.column("id")))
        gpus = sorted((row["id"] or 0) for row in rows if row["type"] == "GPU")
        self.gpus = [_gpu(row, gpus) if row["type"] == "GPU" else None for row in rows]
        """The columns of `schema.DEVICES` by agent; None for processors."""

    def devices(self, ids: Int64Array) -> Int64Array:
        """Return the number of each agent's GPU; MISSING for processors and unknown agents."""
        numbers = [MISSING if gpu is None else gpu["device"] for gpu in self.gpus]
        return np.array([*numbers, MISSING])[self._index.rows(ids)]

    def are_listed(self, ids: Int64Array) -> Mask:
        """Mark the ids of agents that the recording describes."""
        return np.asarray(self._index.rows(ids) != MISSING)


def _gpu(row: dict[str, Any], gpus: Sequence[int]) -> dict[str, Any]:
    """Describe a GPU by its number among those of its node, as HIP counts them."""
    device = row["type_index"]
    stated = schema.json_object(row["extdata"])
    clock_mhz = _positive(stated, "max_engine_clk_fcompute")
    return {
        "device": gpus.index(row["id"] or 0) if device is None or device < 0 else device,
        "name": next((row[name] for name in _NAMES if row[name]), None),
        "sm_count": _positive(stated, "cu_count"),
        "clock_hz": None if clock_mhz is None else clock_mhz * _MEGA,
    }


def _positive(stated: dict[str, Any], key: str) -> int | None:
    value = stated.get(key)
    return value if type(value) is int and 0 < value < 1 << 30 else None  # more was damaged


def table(several: Sequence[Agents]) -> pa.Table:
    """Return the GPUs of all recordings; where a number is used twice, only what both agree on."""
    rows: dict[int, dict[str, Any]] = {}
    for agents in several:
        for row in filter(None, agents.gpus):
            other = rows.setdefault(row["device"], row)
            same = {key: row[key] if row[key] == other[key] else None for key in row}
            rows[row["device"]] = same
    return pa.Table.from_pylist([rows[device] for device in sorted(rows)], schema.DEVICES)
