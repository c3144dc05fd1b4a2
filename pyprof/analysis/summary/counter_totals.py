"""What counters measured, summed up by op: traffic, clocks, energy, contradictions."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyprof.analysis.summary.device_power import Power, cause, device_power
from pyprof.gpu.kernel_names import short_name
from pyprof.prof.columns.standard import COLUMNS
from pyprof.prof.kernels import counter_rates
from pyprof.records.merging import add_up

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pyprof.arrays import Floats, Mask
    from pyprof.prof.table import Table
    from pyprof.schema import Capture

_KEYS = ("op", "dir", "kernel")
_MEANS = {
    # name: the column of a row that it is the mean of, weighted by time
    "tensor": "tensor",
    "occ": "occ",
    "occmeas": "occmeas",
    "l2hit": "l2hit",
    "clock": "clock",
}
_TOTALS = ("rows", "ns", "dram", "dram_ns", "least", "dram_of_least", "energy", "energy_step",
           "energy_ns", "clock_share", "clock_of_share", "clock_share_ns")  # fmt: skip
_SUMS = dict.fromkeys((*_TOTALS, *(f"{name}{part}" for name in _MEANS for part in ("", "_ns"))),
                      "sum")  # fmt: skip


@dataclass(frozen=True, slots=True)
class Sums:
    """Sums over rows that were measured; a part is None where no row has it."""

    values: Mapping[str, Any]

    @property
    def op(self) -> str | None:
        """The op; None where it is not known."""
        return self.values.get("op")

    @property
    def kernel(self) -> str | None:
        """The kernel, where the op is not known."""
        return self.values.get("kernel")

    @property
    def name(self) -> str:
        """The op, else the kernel."""
        return str(self.op or self.kernel)

    @property
    def direction(self) -> str:
        """Part of the step; empty where not known."""
        return str(self.values.get("dir") or "")

    @property
    def rows(self) -> int:
        """Kernels that were measured."""
        return int(self.values["rows"])

    @property
    def time_ns(self) -> int:
        """Their time."""
        return int(self.values["ns"])

    def mean(self, name: str) -> float | None:
        """Give a mean over the time of the rows that have it."""
        return _ratio(self.values[name], self.values[f"{name}_ns"])

    @property
    def dram_bytes(self) -> float | None:
        """Measured DRAM traffic."""
        return float(self.values["dram"]) if self.values["dram_ns"] else None

    @property
    def dram_bytes_per_s(self) -> float | None:
        """The same over the time of the rows that have it."""
        rate = _ratio(self.values["dram"], self.values["dram_ns"])
        return None if rate is None else rate * 1e9

    @property
    def excess(self) -> float | None:
        """Measured over least traffic, of rows of which both are known."""
        return _ratio(self.values["dram_of_least"], self.values["least"])

    @property
    def energy_j(self) -> float | None:
        """Energy while they ran."""
        return float(self.values["energy"]) if self.values["energy_ns"] else None

    @property
    def energy_step_j(self) -> float | None:
        """Energy in the mean step; None where no steps are known."""
        return float(self.values["energy_step"]) or None if self.values["energy_ns"] else None

    @property
    def clock_share(self) -> float | None:
        """The clock that was measured in this run, as a share of that of the peak."""
        return _ratio(self.values["clock_share"], self.values["clock_share_ns"])

    @property
    def clock_of_share(self) -> float | None:
        """That clock, MHz."""
        return _ratio(self.values["clock_of_share"], self.values["clock_share_ns"])


def _ratio(amount: float | None, of: float | None) -> float | None:
    return amount / of if amount is not None and of else None


@dataclass(frozen=True, slots=True)
class Disagreement:
    """Kernels whose counters contradict what their name says of Tensor Cores."""

    kernel: str
    ran: bool
    """Whether Tensor Cores did."""
    rows: int
    time_ns: int

    @property
    def text(self) -> str:
        """Say so in a sentence."""
        ran = "used Tensor Cores" if self.ran else "used no Tensor Cores"
        says = "that it does not" if self.ran else "that it does"
        return f"{self.kernel} {ran}, by counters, in {self.rows:,} calls; its name says {says}"


@dataclass(frozen=True, slots=True)
class CounterTotals:
    """What was measured, small enough to send; that of several captures adds up."""

    ops: pa.Table
    """By op and direction; without an op by kernel."""
    sources: Mapping[str, int]
    """Time by what measured it, ns."""
    whole_ns: int
    """Of all rows, measured or not."""
    disagreements: tuple[Disagreement, ...] = ()
    power: tuple[Power, ...] = ()

    def plus(self, other: CounterTotals) -> CounterTotals:
        """Add what was measured of other rows."""
        return CounterTotals(
            add_up(pa.concat_tables([self.ops, other.ops]), _KEYS, _SUMS),
            dict(Counter(self.sources) + Counter(other.sources)),
            self.whole_ns + other.whole_ns,
            _each_once((*self.disagreements, *other.disagreements)),
            (*self.power, *other.power),
        )

    def top(self, limit: int | None = None) -> list[Sums]:
        """Give the sums of each op, the longest first."""
        order = [("ns", "descending"), *((name, "ascending") for name in _KEYS)]
        return [Sums(row) for row in self.ops.sort_by(order).slice(0, limit).to_pylist()]

    @property
    def total(self) -> Sums:
        """The sums of all that was measured."""
        return Sums({name: pc.sum(self.ops.column(name)).as_py() or 0 for name in _SUMS})

    def known_share(self, name: str) -> float:
        """Give the share of the time of all rows of which a sum is known."""
        return float(self.total.values[f"{name}_ns"]) / max(self.whole_ns, 1)

    def energy_token_j(self, steps: int | None, tokens: int | None) -> float | None:
        """Energy for each of the tokens of some steps; None where they are not known."""
        a_step = self.total.energy_step_j
        return a_step * steps / tokens if a_step is not None and steps and tokens else None

    @property
    def throttled(self) -> str | None:
        """Say that the clock was below that of the peak, and what held it; None where it was not.

        The clock of ncu's own runs, which it locks, says nothing.
        """
        share, clock = self.total.clock_share, self.total.clock_of_share
        if share is None or clock is None or share >= _AT_PEAK:
            return None
        text = f"the SM clock was {clock:,.0f} MHz, {100 * share:.0f} % of the peak's"
        return "; ".join(part for part in (text, cause(self.power)) if part)


def merge_counters(
    a: CounterTotals | None, b: CounterTotals | None, a_ns: int, b_ns: int
) -> CounterTotals | None:
    """Add what was measured of two captures, whose rows took so long, measured or not."""
    if a is not None and b is not None:
        return a.plus(b)
    measured = a if a is not None else b
    return None if measured is None else replace(measured, whole_ns=a_ns + b_ns)


_AT_PEAK = 0.97


def _each_once(entries: Iterable[Disagreement]) -> tuple[Disagreement, ...]:
    """Make entries of the same kernel one, the longest first."""
    sums: dict[tuple[str, bool], tuple[int, int]] = {}
    for entry in entries:
        rows, ns = sums.get((entry.kernel, entry.ran), (0, 0))
        sums[entry.kernel, entry.ran] = rows + entry.rows, ns + entry.time_ns
    ordered = sorted(sums.items(), key=lambda entry: (-entry[1][1], entry[0]))
    return tuple(Disagreement(*names, *numbers) for names, numbers in ordered)


def counter_totals(
    table: Table, capture: Capture | None, rows: Mask | None, step_ns: Floats | None
) -> CounterTotals | None:
    """Sum up what was measured of all rows, or those chosen; None where nothing was.

    `step_ns` is what each row adds to the time of the mean step.
    """
    power = tuple(device_power(capture, table.records, rows)) if capture is not None else ()
    if not table.measured.any and not power:
        return None
    chosen = np.ones(table.records.rows, bool) if rows is None else rows
    ops = _ops(table, chosen, step_ns)
    return CounterTotals(
        ops,
        _sources(table, chosen),
        int(table.duration_ns[chosen].sum()),
        disagreements(table, chosen),
        power,
    )


def _ops(table: Table, chosen: Mask, step_ns: Floats | None) -> pa.Table:
    is_measured = np.array([source is not None for source in table.measured.source], bool)
    chosen = chosen & is_measured[table.measured.column.index]
    ns = np.where(table.timed, table.duration_ns, 0).astype(float)
    dram = counter_rates.dram_bytes(table)
    least = np.where(table.costs.bytes > 0, table.costs.bytes, math.nan).astype(float)
    energy = counter_rates.energy_j(table)
    columns: dict[str, Any] = {
        "rows": np.ones(len(ns), np.int64),
        "ns": table.duration_ns,
        "dram": _sum(dram),
        "dram_ns": _sum(ns, dram),
        "least": _sum(least, dram),
        "dram_of_least": _sum(dram, least),
        "energy": _sum(energy),
        "energy_step": _sum(energy * _per_step(ns, step_ns)),
        "energy_ns": _sum(ns, energy),
    }
    share = table.measured.values("clock_hz") / counter_rates.peak_clock_hz(table)
    here = counter_rates.in_this_run(table, "clock_hz") & ~_by_ncu(table)
    share = np.where(here, share, math.nan)
    clock_mhz = table.measured.values("clock_hz") / 1e6
    columns |= {"clock_share": _sum(share * ns), "clock_share_ns": _sum(ns, share),
                "clock_of_share": _sum(clock_mhz * ns, share)}  # fmt: skip
    for name, column in _MEANS.items():
        values = _floats(COLUMNS[column].values(table))
        columns |= {name: _sum(values * ns), f"{name}_ns": _sum(ns, values)}
    keys = {name: COLUMNS[name].values(table) for name in _KEYS}
    keys["kernel"] = pc.if_else(pc.is_null(keys["op"]), keys["kernel"], None)
    data = pa.table({**keys, **{name: columns[name] for name in _SUMS}})
    return add_up(data.filter(pa.array(chosen)), _KEYS, _SUMS)


def _per_step(ns: Floats, step_ns: Floats | None) -> Floats:
    """Give the share of each row's time that counts for the mean step."""
    return (0.0 if step_ns is None else step_ns) / np.maximum(ns, 1)


def _by_ncu(table: Table) -> Mask:
    return table.measured.from_sources("ncu")


def _floats(column: pa.Array) -> Floats:
    values: Floats = column.cast(pa.float64()).fill_null(math.nan).to_numpy(zero_copy_only=False)
    return values


def _sum(values: Floats, where: Floats | None = None) -> Floats:
    """Let what is not known add nothing; count only rows where something else is known, too."""
    is_finite = np.isfinite(values) if where is None else np.isfinite(values) & np.isfinite(where)
    return np.where(is_finite, values, 0.0)


def _sources(table: Table, chosen: Mask) -> dict[str, int]:
    index = table.measured.column.index
    total: dict[str, int] = {}
    sums = np.bincount(index[chosen] + 1, table.duration_ns[chosen], len(table.measured.source))
    for source, ns in zip(table.measured.source[:-1], sums[1:].tolist(), strict=True):
        if source is not None and ns:
            total[source] = total.get(source, 0) + int(ns)
    return total


def disagreements(table: Table, chosen: Mask) -> tuple[Disagreement, ...]:
    """Give the kernels whose counters and names differ on Tensor Cores, the longest first."""
    wrong = np.flatnonzero(counter_rates.tensor_core_disagreements(table) & chosen)
    if not len(wrong):
        return ()
    name = table.records.dictionary("kLongName")
    ran = counter_rates.tensor_cores(table)[wrong].astype(np.int64)
    number = name.index[wrong] * 2 + ran
    kinds, place = np.unique(number, return_inverse=True)
    rows, ns = np.bincount(place), np.bincount(place, table.duration_ns[wrong])
    return _each_once(
        Disagreement(short_name(name.values[kind // 2]), bool(kind % 2), calls, int(time_ns))
        for kind, calls, time_ns in zip(kinds.tolist(), rows.tolist(), ns.tolist(), strict=True)
    )
