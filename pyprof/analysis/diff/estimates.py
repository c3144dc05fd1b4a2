"""The numbers of one side of a comparison, per step or in total, with their samples."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from pyprof.analysis.diff import noise
from pyprof.analysis.diff.noise import RANKS, STEPS, Estimates
from pyprof.arrays import ints
from pyprof.records.records import combinations

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyprof.analysis.diff.noise import Unit
    from pyprof.analysis.diff.side import CountedSteps, Key, Side, Sums
    from pyprof.arrays import Floats, Int64Array, IntArray


COUNTED = ("dram", "energy", "clock", "tensor")
"""Metrics that hardware counters measure."""
_USES = ("busy", "idle", "exposed")
"""Metrics of what each GPU did."""


class Measured:
    """One side, on the basis of the comparison."""

    def __init__(
        self,
        side: Side,
        steps: CountedSteps | None,
        sums: Sums,
        keys: tuple[str, ...],
        unit: Unit | None,
    ) -> None:
        self.side, self.sums, self.keys, self.unit = side, sums, keys, unit
        self.steps = steps
        """None if totals are compared."""
        self.rows = sums.by(keys)
        self._by_key: dict[Unit, tuple[list[Key], IntArray, Int64Array, Floats]] = {}
        self._renames: Mapping[Key, Key] = {}

    @property
    def calls(self) -> dict[Key, float]:
        """The op calls of each key, on the basis of the comparison."""
        count = self.steps.count if self.steps else 1
        return {key: sums.calls / count for key, sums in self.rows.items()}

    def rename(self, renames: Mapping[Key, Key]) -> None:
        """Replace some keys by those of the other capture."""
        self._renames = renames
        self.rows = {renames.get(key, key): sums for key, sums in self.rows.items()}

    def _table(self, unit: Unit) -> tuple[pa.Table, str, str]:
        """The table of samples, and the names of its sample and time columns."""
        if unit == STEPS and self.steps is not None:
            return self.steps.in_all_captures(self.steps.samples.by_key), "step", "ns"
        ranks = self.side.samples.ranks
        number = np.repeat(np.arange(len(ranks)), [each.num_rows for each in ranks])
        table = pa.concat_tables(ranks).append_column("rank", pa.array(number))
        return table, "rank", "step_ns" if self.steps else "ns"

    def times(self, place: Mapping[Key, int]) -> Floats:
        """Return the time of each key, by its index; the mean per step if steps are compared."""
        if self.steps is None:
            times = np.zeros(len(place))
            for key, sums in self.rows.items():
                times[place[key]] = sums.time_ns
            return times
        index, _, values = self._samples(STEPS, place)
        return np.bincount(index, values, len(place)) / self.steps.count

    def estimates(self, unit: Unit, place: Mapping[Key, int]) -> Estimates:
        """Estimate the time of each key by the samples."""
        index, number, values = self._samples(unit, place)
        count = self.side.step_count if unit == STEPS else len(self.side.samples.ranks)
        return self._estimate(index, number, values, (len(place), count))

    def _estimate(
        self, index: Int64Array, number: Int64Array, values: Floats, shape: tuple[int, int],
        *, of_time: bool = True,
    ) -> Estimates:  # fmt: skip
        resolution_ns = self.side.samples.resolution_ns if of_time else 0
        if self.unit == RANKS:
            return noise.totals(index, values, shape, resolution_ns)
        return noise.estimates(index, number, values, shape, resolution_ns)

    def _samples(
        self, unit: Unit, place: Mapping[Key, int]
    ) -> tuple[Int64Array, Int64Array, Floats]:
        if unit not in self._by_key:
            table, sample, name = self._table(unit)
            self._by_key[unit] = _by_key(table, self.keys, sample, name)
        keys, of_key, number, values = self._by_key[unit]
        indices = [place.get(self._renames.get(key, key), -1) for key in keys]
        index = np.array(indices, np.int64)[of_key]
        compared = index >= 0  # keys that occur outside of steps only are not compared
        return index[compared], number[compared], values[compared]

    @property
    def durations(self) -> Floats:
        """The length of each counted step, ns."""
        first, last = self.side.counted.bounds if self.side.counted else (0, 0)
        return self.side.steps.duration_ns[first:last].astype(float)

    def metric(self, name: str) -> float | None:
        """Return a metric; None if unknown, such as FLOPs if there are only copies."""
        sums, steps = self.sums, self.steps
        if name == "step":
            dismissed = self.side.steps.guessed and steps is None
            return float(np.median(self.durations)) if self.side.counted and not dismissed else None
        if name in COUNTED:
            return self._counter_metric(name)
        if steps is None:
            totals = {"time": sums.time_ns, "busy": sums.busy_ns, "idle": sums.idle_ns,
                      "exposed": sums.exposed_ns, "kernels": sums.rows, "flops": sums.flops or None,
                      "bytes": sums.bytes or None}  # fmt: skip
            return totals[name]
        if name in _USES:
            return {"busy": steps.busy_step_ns, "idle": steps.idle_step_ns,
                    "exposed": steps.exposed_step_ns}[name]  # fmt: skip
        mean = float(_values(steps, name).mean())
        return mean if name in ("time", "kernels") else mean or None

    def _counter_metric(self, name: str) -> float | None:
        """What counters measured: an amount, or a mean over the time of the kernels."""
        total = self.sums.counters.total if self.sums.counters else None
        if total is None:
            return None
        if name == "dram":
            return self.steps.dram_step_bytes if self.steps else total.dram_bytes
        if name == "energy":
            return self.steps.energy_step_j if self.steps else total.energy_j
        return total.clock_hz if name == "clock" else total.means[name]

    def metric_estimate(self, name: str) -> Estimates | None:
        """Estimate a metric from the samples; None if they do not have it."""
        if name in (*COUNTED, *_USES):
            return None  # counters and idle time are not read step by step
        if self.unit == STEPS and self.steps is not None:
            values = self.durations if name == "step" else _values(self.steps, name)
        elif self.unit == RANKS and name == "time":
            table, sample, column = self._table(RANKS)
            rank, ns = (table.column(each).to_numpy() for each in (sample, column))
            values = np.bincount(rank, ns, len(self.side.samples.ranks)).astype(float)
        else:
            return None
        number, nothing = np.arange(len(values)), np.zeros(len(values), np.int64)
        of_time = name in ("time", "step")
        estimate = self._estimate(nothing, number, values, (1, len(values)), of_time=of_time)
        median = np.asarray(np.median(values, keepdims=True))
        return replace(estimate, value=median) if name == "step" else estimate


def _values(steps: CountedSteps, name: str) -> Floats:
    """Each counted step's value of a metric."""
    samples = steps.samples.by_key if name == "time" else steps.samples.steps
    table = steps.in_all_captures(samples)
    column = table.column({"time": "ns", "kernels": "rows"}.get(name, name))
    number = table.column("step").to_numpy()
    return np.bincount(number, column.to_numpy(), steps.count).astype(float)


def _by_key(
    table: pa.Table, names: Sequence[str], sample: str, name: str
) -> tuple[list[Key], IntArray, Int64Array, Floats]:
    """Sum up by key and sample: the keys, and the key, the sample and the sum of each entry."""
    columns = [table.column(each).combine_chunks() for each in names]
    codes = (ints(column.dictionary_encode().indices) for column in columns)
    first, of_key = combinations(np.zeros(table.num_rows, np.int32), *codes)
    rows = table.select(names).take(pa.array(first)).to_pylist()
    keys: list[Key] = [tuple(row[each] for each in names) for row in rows] if names else [()]
    number = table.column(sample).to_numpy().astype(np.int64)
    first, group = combinations(of_key, number)
    values = np.bincount(group, table.column(name).to_numpy(), len(first)).astype(float)
    return keys, of_key[first], number[first], values
