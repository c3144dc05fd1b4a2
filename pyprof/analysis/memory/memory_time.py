"""Memory beside time: what ops, lines and layers allocate, and how long they take on the GPU."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pyprof.analysis.summary.phases import with_steps
from pyprof.answers.memory_answer import TimedMemory
from pyprof.records.records import encode, time_by_value

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyprof.answers.memory_answer import HeldMemory
    from pyprof.inputs.source import Source

_COLUMN = {"op": "op", "line": "line", "layer": "module"}
"""The column of rows for each key that memory is grouped by."""


class LayerWork:
    """What the forward pass of each layer does in a step."""

    def __init__(self, source: Source) -> None:
        table = with_steps(source)
        forward = encode(table.dictionary_array("dir")).is_in("fprop")
        step = np.zeros(0, int) if table.steps is None else table.steps.of_row
        if (step >= 0).any():  # an evaluation beside the steps repeats the layers
            forward = forward & (step >= 0)
        self._layer, self._forward = encode(table.dictionary_array("module")), forward
        self._time = np.where(forward, table.duration_ns, 0).astype(np.float64)
        flops = table.costs.flops
        self._flops = np.where(forward, np.maximum(flops, 0), 0).astype(np.float64)
        self._unknown = forward & (flops < 0)
        self._steps = max(1, len(np.unique(step[step >= 0])))

    def forward(self, path: str) -> tuple[float | None, float | None]:
        """Return FLOPs and ns per step of a layer and those inside it; None if unknown."""
        names = (*(name or "" for name in self._layer.values), "")
        inside = np.array([name == path or name.startswith(f"{path}.") for name in names])
        rows = inside[self._layer.index] & self._forward
        if not rows.any():
            return None, None
        time_ns = float(self._time[rows].sum()) / self._steps
        flops = float(self._flops[rows].sum()) / self._steps
        return (None if (self._unknown & rows).any() and not flops else flops), time_ns


def join_memory_and_time(
    by: Mapping[str, Sequence[HeldMemory]], source: Source
) -> dict[str, tuple[TimedMemory, ...]]:
    """Join memory and time, by op, line and layer; what holds most comes first."""
    table = source.table
    joined = {}
    for key, column in _COLUMN.items():
        if key not in by:
            continue
        timed = time_by_value(encode(table.dictionary_array(column)), table.duration_ns)
        held = [
            TimedMemory(each.name, each.bytes, each.allocated_bytes, each.byte_ns,
                        *timed.pop(each.name, (0, 0)))
            for each in by[key]
        ]  # fmt: skip
        others = [TimedMemory(name, 0, 0, None, *spent) for name, spent in timed.items()]
        others.sort(key=lambda each: (-each.time_ns, each.name is None))
        joined[key] = (*held, *others)
    return joined
