"""The GPUs of a recording: their numbers, names, compute units and clocks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import orjson
import pyarrow as pa

from pyprof import schema
from pyprof.arrays import MISSING, ints
from pyprof.readers.rocpd.recording import Rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyprof.arrays import Int64Array
    from pyprof.readers.rocpd.recording import Recording

_MEGA = 1_000_000
_NAMES = ("product_name", "user_name", "model_name", "name")
"""Columns with a name of a device, the best first: the last is its architecture, as gfx942."""


class Agent(NamedTuple):
    """A processor or GPU; None if not recorded."""

    is_gpu: bool
    device: int | None
    """The number of a GPU among those of its node, as HIP counts them."""
    row: dict[str, Any]
    """As in `schema.DEVICES`."""


class Agents:
    """The agents of a recording, by their ids."""

    def __init__(self, recording: Recording) -> None:
        texts = dict.fromkeys((*_NAMES, "type", "extdata"), str)
        numbers = dict.fromkeys(("id", "type_index"), int)
        table = recording.read("agent", {**numbers, **texts})
        rows = table.to_pylist()
        self._index = Rows(ints(table.column("id")))
        gpus = sorted((row["id"] or 0) for row in rows if row["type"] == "GPU")
        self.agents = [_agent(row, gpus) for row in rows]

    def devices(self, ids: Int64Array) -> Int64Array:
        """Return the number of each agent's GPU; MISSING for processors and unknown agents."""
        numbers = [MISSING if each.device is None else each.device for each in self.agents]
        return np.array([*numbers, MISSING])[self._index.rows(ids)]


def _agent(row: dict[str, Any], gpus: Sequence[int]) -> Agent:
    if row["type"] != "GPU":
        return Agent(is_gpu=False, device=None, row={})
    device = row["type_index"]
    if device is None or device < 0:
        device = gpus.index(row["id"] or 0)
    stated = _document(row["extdata"])
    clock_mhz = _positive(stated, "max_engine_clk_fcompute")
    return Agent(
        is_gpu=True,
        device=device,
        row={
            "device": device,
            "name": next((row[name] for name in _NAMES if row[name]), None),
            "sm_count": _positive(stated, "cu_count"),
            "clock_hz": None if clock_mhz is None else clock_mhz * _MEGA,
        },
    )


def _document(text: str | None) -> dict[str, Any]:
    try:
        document = orjson.loads(text or "{}")
    except orjson.JSONDecodeError:
        return {}
    return document if isinstance(document, dict) else {}


_MAX_NUMBER = 1 << 30


def _positive(stated: dict[str, Any], key: str) -> int | None:
    value = stated.get(key)
    return value if type(value) is int and 0 < value < _MAX_NUMBER else None


def table(several: Sequence[Agents]) -> pa.Table:
    """Return the GPUs of all recordings; where a number is used twice, only what both agree on."""
    rows: dict[int, dict[str, Any]] = {}
    for agents in several:
        for _, device, row in agents.agents:
            if device is None:
                continue
            other = rows.setdefault(device, row)
            rows[device] = {key: row[key] if row[key] == other[key] else None for key in row}
    listed = [rows[device] for device in sorted(rows)]
    return schema.table(
        schema.DEVICES,
        {
            name: pa.array([row[name] for row in listed], schema.DEVICES.field(name).type)
            for name in ("device", "name", "sm_count", "clock_hz")
        },
    )
