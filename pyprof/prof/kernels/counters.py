"""What hardware counters measured for each row, from the source or from `--with`."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from pyprof import schema
from pyprof.records.records import DictionaryColumn, combinations

if TYPE_CHECKING:
    from pyprof.arrays import Floats, Int64Array

SAMPLES, NCU, ARGS, ROCPROF = "samples", "ncu", "args", "rocprofv3"
"""Sources whose clock is that of the capture: an isolated run joined to one is not."""


@dataclass(frozen=True)
class Measured:
    """Counters by row; NaN where one was not measured."""

    column: DictionaryColumn
    """Distinct texts of counters, as `schema.COUNTERS` has them."""

    @cached_property
    def _entries(self) -> DictionaryColumn:
        return self.column.map(schema.json_object)

    @property
    def any(self) -> bool:
        """Whether anything was measured."""
        return any(self._entries.values)

    @cached_property
    def source(self) -> DictionaryColumn:
        """The source of each row's counters; None if it is not stated."""
        sources = self._entries.map(lambda entry: entry.get("source"))
        return sources.map(lambda text: text if isinstance(text, str) else None)

    def values(self, name: str) -> Floats:
        """Values of a counter, one per row; NaN if it was not measured."""
        if name.removesuffix("_err") not in schema.COUNTERS:
            raise KeyError(name)
        return self._entries.numpy(lambda entry: _number(entry.get(name)), math.nan)

    @cached_property
    def tensor_cores(self) -> Floats:
        """1 where Tensor Cores ran, 0 if they did not, NaN where counters do not show it.

        Some GPUs count FMAs of pairs of halves with them: a warp's is one instruction, of at most
        32 threads.
        """
        insts, halves, share = (
            self.values(name) for name in ("tensor_insts", "half_fmas", "tensor_pct")
        )
        halves = np.nan_to_num(halves)
        by_insts = np.select(
            [insts == 0, insts > halves, insts == np.ceil(halves / 32)], [0.0, 1.0, 0.0], math.nan
        )
        by_share = np.select([share == 0, share >= _SURE_PCT], [0.0, 1.0], math.nan)
        return np.where(np.isnan(insts), by_share, by_insts)


_SURE_PCT = 1.0
"""From this activity of Tensor Cores on, FMAs of halves alone cannot explain it."""


def _number(value: object) -> float:
    """The value as a float; NaN if no counter can have it."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return math.nan
    return float(value) if 0 <= value < _MAX_VALUE else math.nan


_MAX_VALUE = 1e18
"""Larger values are damage."""


def rounded(values: Floats) -> Int64Array:
    """Round to integers, with -1 for NaN."""
    return np.rint(np.where(np.isfinite(values), values, -1)).astype(np.int64)


def with_counters(via: DictionaryColumn, measured: Measured) -> DictionaryColumn:
    """Append to how each row's op was found whether the row was measured or sampled."""
    if not measured.any:
        return via
    how = measured.source.map(lambda source: _VIA.get(source or ""))
    first, index = combinations(via.index, how.index)
    words = [filter(None, (via.at(row), how.at(row))) for row in first.tolist()]
    return DictionaryColumn(index, [", ".join(each) or None for each in words])


_VIA = {
    **dict.fromkeys((NCU, "joined", "repeated", ARGS, ROCPROF), "measured"),
    SAMPLES: "sampled",
}
