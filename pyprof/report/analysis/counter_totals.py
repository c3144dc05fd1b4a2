"""What counters measured, summed up by op and kernel: traffic, clocks, energy, contradictions."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyprof.gpu.kernel_names import short_name
from pyprof.prof import measured_rates
from pyprof.prof.columns import COLUMNS
from pyprof.prof.group import add_up

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

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
           "energy_ns", "clock_share", "clock_share_ns")  # fmt: skip
_SUMS = dict.fromkeys((*_TOTALS, *(f"{name}{part}" for name in _MEANS for part in ("", "_ns"))),
                      "sum")  # fmt: skip


@dataclass(frozen=True, slots=True)
class Sums:
    """Sums over rows that were measured; a part is None where no row has it."""

    values: Mapping[str, Any]

    @property
    def name(self) -> str:
        """The op, else the kernel."""
        return str(self.values.get("op") or self.values.get("kernel"))

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
        """The measured clock, as a share of that of the peak."""
        return _ratio(self.values["clock_share"], self.values["clock_share_ns"])


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
class Power:
    """The power of one device over the capture."""

    device: int
    energy_j: float
    mean_w: float
    most_w: float
    at_most: float
    """Share of the samples of a busy device within 2 % of the highest."""
    hottest_c: float | None = None


@dataclass(frozen=True, slots=True)
class CounterTotals:
    """What was measured, small enough to send; that of several captures adds up."""

    ops: pa.Table
    """By `_KEYS`."""
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
            (*self.disagreements, *other.disagreements),
            (*self.power, *other.power),
        )

    def top(self, limit: int | None = None) -> list[Sums]:
        """Give the sums of each op by kernel, the longest first."""
        order = [("ns", "descending"), *((name, "ascending") for name in _KEYS)]
        return [Sums(row) for row in self.ops.sort_by(order).slice(0, limit).to_pylist()]

    @property
    def total(self) -> Sums:
        """The sums of all that was measured."""
        return Sums({name: pc.sum(self.ops.column(name)).as_py() or 0 for name in _SUMS})

    @property
    def throttled(self) -> str | None:
        """Say that the clock was below that of the peak, and what held it; None where it was not.

        The clock of ncu's own runs, which it locks, says nothing.
        """
        share, clock = self.total.clock_share, self.total.mean("clock")
        if share is None or clock is None or share >= _AT_PEAK:
            return None
        text = f"the SM clock was {clock:,.0f} MHz, {100 * share:.0f} % of the peak's"
        return f"{text}; {self._cause}" if self._cause else text

    @property
    def _cause(self) -> str:
        hottest = max((p.hottest_c for p in self.power if p.hottest_c is not None), default=0.0)
        if hottest >= _HOT_C:
            return f"at {hottest:.0f} °C, which looks like thermal throttling"
        capped = [power for power in self.power if power.at_most >= _CAPPED]
        if capped:
            most = max(power.most_w for power in capped)
            return f"power stayed at {most:,.0f} W, which looks like a power cap"
        return ""


_AT_PEAK = 0.97
_HOT_C = 85.0
_CAPPED = 0.5
_MOST_DISAGREEMENTS = 20


def counter_totals(
    table: Table, capture: Capture | None, rows: Mask | None, step_ns: Floats | None
) -> CounterTotals | None:
    """Sum up what was measured of all rows, or those chosen; None where nothing was.

    `step_ns` is what each row adds to the time of the mean step.
    """
    power = tuple(_power(capture)) if capture is not None else ()
    if not table.measured.any and not power:
        return None
    chosen = np.ones(table.records.rows, bool) if rows is None else rows
    ops = _ops(table, chosen, step_ns)
    return CounterTotals(
        ops,
        _sources(table, chosen),
        int(table.duration_ns[chosen].sum()),
        tuple(disagreements(table, chosen)),
        power,
    )


def _ops(table: Table, chosen: Mask, step_ns: Floats | None) -> pa.Table:
    is_measured = np.array([source is not None for source in table.measured.source], bool)
    chosen = chosen & is_measured[table.measured.coded.index]
    ns = np.where(table.timed, table.duration_ns, 0).astype(float)
    dram = measured_rates.dram_bytes(table)
    least = np.where(table.costs.bytes > 0, table.costs.bytes, math.nan).astype(float)
    energy = measured_rates.energy_j(table)
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
    share = table.measured.values("clock_hz") / measured_rates.peak_clock_hz(table)
    here = measured_rates.in_this_run(table, "clock_hz") & ~_by_ncu(table)
    share = np.where(here, share, math.nan)
    columns |= {"clock_share": _sum(share * ns), "clock_share_ns": _sum(ns, share)}
    for name, column in _MEANS.items():
        values = _floats(COLUMNS[column].values(table))
        columns |= {name: _sum(values * ns), f"{name}_ns": _sum(ns, values)}
    keys = {name: COLUMNS[name].values(table) for name in _KEYS}
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
    index = table.measured.coded.index
    total: dict[str, int] = {}
    sums = np.bincount(index[chosen] + 1, table.duration_ns[chosen], len(table.measured.source))
    for source, ns in zip(table.measured.source[:-1], sums[1:].tolist(), strict=True):
        if source is not None and ns:
            total[source] = total.get(source, 0) + int(ns)
    return total


def disagreements(table: Table, chosen: Mask) -> Iterator[Disagreement]:
    """Give the kernels whose counters and names differ on Tensor Cores, the longest first."""
    wrong = np.flatnonzero(measured_rates.tensor_core_disagreements(table) & chosen)
    if not len(wrong):
        return
    name = table.records.coded("kLongName")
    ran = table.measured.tensor_cores
    sums: dict[tuple[str, bool], tuple[int, int]] = {}
    for row in wrong.tolist():
        key = short_name(name.values[name.index[row]]), bool(ran[row])
        rows, ns = sums.get(key, (0, 0))
        sums[key] = rows + 1, ns + int(table.duration_ns[row])
    ordered = sorted(sums.items(), key=lambda entry: (-entry[1][1], entry[0]))
    for (kernel, used), (rows, ns) in ordered[:_MOST_DISAGREEMENTS]:
        yield Disagreement(kernel, used, rows, ns)


# --- power --------------------------------------------------------------------------------------

_NEAR_MOST = 0.98
_IDLE = 0.5


def _power(capture: Capture) -> Iterator[Power]:
    """Integrate the power of each device that was sampled."""
    samples = capture.samples
    if not samples.num_rows:
        return
    metric = samples.column("metric").cast(pa.string())
    for device in pc.unique(samples.column("device")).to_pylist():
        own = pc.equal(samples.column("device"), device)
        time, watts = _series(samples.filter(pc.and_(own, pc.equal(metric, "power_w"))))
        if len(time) < _LEAST_SAMPLES:
            continue
        lengths = np.diff(time) / 1e9
        most = float(watts.max())
        busy = watts[watts >= _IDLE * most]
        _, heat = _series(samples.filter(pc.and_(own, pc.equal(metric, "temperature_c"))))
        energy = float((watts[1:] * lengths).sum())
        yield Power(
            int(device),
            energy,
            energy / float(lengths.sum()),
            most,
            float((busy >= _NEAR_MOST * most).mean()) if len(busy) else 0.0,
            float(heat.max()) if len(heat) else None,
        )


_LEAST_SAMPLES = 3


def _series(samples: pa.Table) -> Sequence[Any]:
    time = samples.column("time").to_numpy()
    order = np.argsort(time, kind="stable")
    return time[order], samples.column("value").to_numpy()[order]
