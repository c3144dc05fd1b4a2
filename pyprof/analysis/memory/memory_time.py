"""Memory beside time: what ops, lines and layers allocate, and how long they take on the GPU."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pyprof.analysis.summary.phases import with_steps
from pyprof.arrays import MISSING
from pyprof.prof.columns.standard import COLUMNS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pyarrow as pa

    from pyprof.analysis.memory.held_memory import HeldMemory
    from pyprof.arrays import Floats, Int64Array, Mask
    from pyprof.inputs.source import Source

_COLUMN = {"op": "op", "line": "line", "layer": "module"}
"""The column of rows for each key that memory is grouped by."""


@dataclass(frozen=True, slots=True)
class TimedMemory:
    """Memory and time of an op, a line or a layer."""

    name: str | None
    """null if it is unknown."""
    bytes: int
    """What it holds at the peak."""
    allocated_bytes: int
    """What it allocated in the whole recording."""
    byte_ns: float | None
    """Bytes times ns held; null if no times are known."""
    time_ns: int
    """Its time in the trace, on the GPU or, without one, on the CPU."""
    rows: int
    """Its kernels and copies in the trace."""


class LayerWork:
    """What the forward pass of each layer does in a step."""

    def __init__(self, source: Source) -> None:
        table = with_steps(source)
        layer = _texts(COLUMNS["module"].held(table))
        forward = _texts(COLUMNS["dir"].held(table)).are("fprop")
        step = np.zeros(0, int) if table.steps is None else table.steps.of_row
        if (step >= 0).any():  # an evaluation beside the steps repeats the layers
            forward = forward & (step >= 0)
        self._layer, self._names, self._forward = layer.codes, layer.names, forward
        self._time = np.where(forward, table.duration_ns, 0).astype(np.float64)
        flops = table.costs.flops
        self._flops = np.where(forward, np.maximum(flops, 0), 0).astype(np.float64)
        self._unknown = forward & (flops < 0)
        self._steps = max(1, len(np.unique(step[step >= 0])))

    def forward(self, path: str) -> tuple[float | None, float | None]:
        """Return FLOPs and ns per step of a layer and those inside it; None if unknown."""
        inside = np.array(
            [name == path or name.startswith(f"{path}.") for name in (*self._names, "")], bool
        )
        rows = inside[self._layer] & self._forward
        if not rows.any():
            return None, None
        time_ns = float(self._time[rows].sum()) / self._steps
        flops = float(self._flops[rows].sum()) / self._steps
        return (None if (self._unknown & rows).any() and not flops else flops), time_ns


@dataclass(frozen=True, slots=True)
class _Texts:
    codes: Int64Array
    names: tuple[str, ...]

    def are(self, name: str) -> Mask:
        """Mask of the rows that have a name."""
        return np.array([each == name for each in (*self.names, None)], bool)[self.codes]


def _texts(values: pa.Array) -> _Texts:
    coded = values if hasattr(values, "indices") else values.dictionary_encode()
    codes = np.asarray(coded.indices.fill_null(MISSING)).astype(np.int64)
    names = [MISSING if name is None else name for name in coded.dictionary.to_pylist()]
    missing = np.array([name == MISSING for name in names] + [True], bool)
    return _Texts(np.where(missing[codes], MISSING, codes), tuple(map(str, names)))


def beside(
    by: Mapping[str, Sequence[HeldMemory]], source: Source
) -> dict[str, tuple[TimedMemory, ...]]:
    """Join memory and time, by op, line and layer; what holds most first."""
    table = source.table
    return {
        key: _joined(by[key], _texts(COLUMNS[column].held(table)), table.duration_ns.astype(float))
        for key, column in _COLUMN.items()
        if key in by
    }


def _joined(
    groups: Sequence[HeldMemory], texts: _Texts, time_ns: Floats
) -> tuple[TimedMemory, ...]:
    index = np.where(texts.codes == MISSING, len(texts.names), texts.codes)
    times = np.bincount(index, time_ns, len(texts.names) + 1)
    counts = np.bincount(index, minlength=len(texts.names) + 1)
    timed: dict[str | None, tuple[int, int]] = {}
    for name, time, count in zip(
        (*texts.names, None), times.tolist(), counts.tolist(), strict=True
    ):
        before = timed.get(name, (0, 0))
        timed[name] = (before[0] + round(time), before[1] + count)
    held = [
        TimedMemory(each.name, each.bytes, each.allocated_bytes, each.byte_ns,
                    *timed.pop(each.name, (0, 0)))
        for each in groups
    ]  # fmt: skip
    others = [TimedMemory(name, 0, 0, None, *spent) for name, spent in timed.items() if spent[1]]
    return (*held, *sorted(others, key=lambda each: -each.time_ns))
