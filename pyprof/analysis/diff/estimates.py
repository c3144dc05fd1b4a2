"""One side of a comparison on its basis, per step or in total, with the samples of its numbers."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from pyprof.analysis.diff import noise
from pyprof.analysis.diff.noise import RANKS, STEPS, Estimates, Noise
from pyprof.arrays import ints
from pyprof.records.records import combinations

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyprof.analysis.diff.side import Key, Side, Sums
    from pyprof.arrays import Floats, Int64Array, IntArray


COUNTED = ("dram", "energy", "clock", "tensor")
"""Metrics that hardware counters measure."""


class Measured:
    """One side, on the basis of the comparison."""

    def __init__(
        self, side: Side, sums: Sums, keys: tuple[str, ...], basis: Noise, *, stepped: bool
    ) -> None:
        self.side, self.sums, self.stepped, self.basis = side, sums, stepped, basis
        self.keys = keys
        self.rows = sums.matched.by(keys)
        self.first = side.counted[0] if side.counted else 0
        self._by_step = self._inside(side.samples.by_step)
        self._of_steps = self._inside(side.samples.steps)
        self._by_key: dict[str, tuple[list[Key], IntArray, Int64Array, Floats]] = {}
        self._renames: Mapping[Key, Key] = {}

    @property
    def calls(self) -> dict[Key, float]:
        """The op calls of each key, on the basis of the comparison."""
        count = self.side.step_count if self.stepped else 1
        return {key: sums.calls / count for key, sums in self.rows.items()}

    def rename(self, renames: Mapping[Key, Key]) -> None:
        """Replace some keys by those of the other capture."""
        self._renames = renames
        self.rows = {renames.get(key, key): sums for key, sums in self.rows.items()}

    def _inside(self, sums: pa.Table) -> pa.Table:
        """Keep the samples of the steps that all captures of the side count."""
        number = sums.column("step").to_numpy()
        inside = (number >= self.first) & (number < self.first + self.side.step_count)
        return sums if inside.all() else sums.filter(inside)

    @property
    def _sampled(self) -> tuple[pa.Table, str, str, int]:
        """The table of samples, the names of its sample and time columns, and the sample count."""
        if self.basis.unit == RANKS:
            name = "step_ns" if self.stepped else "ns"
            return self.side.samples.by_rank, "rank", name, self.side.samples.ranks
        return self._by_step, "step", "ns", self.side.step_count

    def times(self, place: Mapping[Key, int]) -> Floats:
        """Return the time of each key, by its index; the mean per step if steps are compared."""
        if not self.stepped:
            times = np.zeros(len(place))
            for key, sums in self.rows.items():
                times[place[key]] = sums.time_ns
            return times
        index, _, values = self._samples(self._by_step, "step", "ns", place)
        return np.bincount(index, values, len(place)) / self.side.step_count

    def estimates(self, place: Mapping[Key, int]) -> Estimates:
        """Estimate the time of each key by the samples."""
        table, sample, name, count = self._sampled
        index, number, values = self._samples(table, sample, name, place)
        return self._estimated(index, number, values, (len(place), count))

    def _estimated(
        self, index: Int64Array, number: Int64Array, values: Floats, shape: tuple[int, int],
        *, of_time: bool = True,
    ) -> Estimates:  # fmt: skip
        resolution_ns = self.side.samples.resolution_ns if of_time else 0
        if self.basis.unit == RANKS:
            return noise.totals(index, values, shape, resolution_ns)
        return noise.estimates(index, number, values, shape, resolution_ns)

    def _samples(
        self, table: pa.Table, sample: str, name: str, place: Mapping[Key, int]
    ) -> tuple[Int64Array, Int64Array, Floats]:
        if sample not in self._by_key:
            self._by_key[sample] = _by_key(table, self.keys, sample, name)
        keys, of_key, number, values = self._by_key[sample]
        indices = [place.get(self._renames.get(key, key), -1) for key in keys]
        index = np.array(indices, np.int64)[of_key]
        compared = index >= 0  # keys that occur outside of steps only are not compared
        first = self.first if sample == "step" else 0
        return index[compared], number[compared] - first, values[compared]

    @property
    def durations(self) -> Floats:
        """The length of each counted step, ns."""
        first, last = self.side.counted or (0, 0)
        return self.side.steps.duration_ns[first:last].astype(float)

    def metric(self, name: str) -> float | None:
        """Return a metric; None if unknown, such as FLOPs if there are only copies."""
        if name == "step":
            dismissed = self.side.steps.guessed and not self.stepped
            return float(np.median(self.durations)) if self.side.counted and not dismissed else None
        if name in COUNTED:
            return self._counted(name)
        return self._per_step(name) if self.stepped else self._in_total(name)

    def _counted(self, name: str) -> float | None:
        """What counters measured: an amount, or a mean over the time of the kernels."""
        total = self.sums.counters.total if self.sums.counters else None
        if total is None:
            return None
        if name in ("dram", "energy"):
            amount = total.dram_bytes if name == "dram" else total.energy_j
            steps = self.side.step_count if self.stepped else 1
            return None if amount is None or not steps else amount / steps
        mean = total.mean(name)
        return mean * 1e6 if name == "clock" and mean is not None else mean

    def _in_total(self, name: str) -> float | None:
        sums = self.sums
        totals = {"time": sums.time_ns, "busy": sums.busy_ns, "idle": sums.idle_ns,
                  "kernels": sums.rows, "flops": sums.flops or None,
                  "bytes": sums.bytes or None}  # fmt: skip
        return totals[name]

    def _per_step(self, name: str) -> float | None:
        if name in ("busy", "idle"):
            return self.side.busy_step_ns if name == "busy" else self.side.idle_step_ns
        mean = float(self._values(name).mean())
        return mean if name in ("time", "kernels") else mean or None

    def _values(self, name: str) -> Floats:
        """Each counted step's value of a metric."""
        table = self._by_step if name == "time" else self._of_steps
        column = table.column({"time": "ns", "kernels": "rows"}.get(name, name))
        number = table.column("step").to_numpy() - self.first
        return np.bincount(number, column.to_numpy(), self.side.step_count).astype(float)

    def metric_estimate(self, name: str) -> Estimates | None:
        """Estimate a metric from the samples; None if they do not have it."""
        if name in COUNTED:
            return None  # counters are not read step by step
        if self.basis.unit == STEPS and name not in ("busy", "idle"):
            values = self.durations if name == "step" else self._values(name)
            estimate = self._of_one(values, of_time=name in ("time", "step"))
            median = np.asarray(np.median(values, keepdims=True))
            return replace(estimate, value=median) if name == "step" else estimate
        if self.basis.unit == RANKS and name == "time":
            table, _, column, count = self._sampled
            rank = table.column("rank").to_numpy()
            times = np.bincount(rank, table.column(column).to_numpy(), count)
            return self._of_one(times.astype(float), of_time=True)
        return None

    def _of_one(self, values: Floats, *, of_time: bool) -> Estimates:
        number, nothing = np.arange(len(values)), np.zeros(len(values), np.int64)
        return self._estimated(nothing, number, values, (1, len(values)), of_time=of_time)


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
