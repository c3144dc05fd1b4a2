"""What counters measured, summed up by op: traffic, clocks, energy, contradictions."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyprof.analysis.summary.device_power import Power, cause, device_power
from pyprof.answers.summary_answer import Measured, MeasuredOp
from pyprof.arrays import ratio_if_known
from pyprof.gpu.kernel_names import short_name
from pyprof.prof.columns.standard import COLUMNS
from pyprof.prof.kernels import counter_rates
from pyprof.quantities import counted
from pyprof.records.merging import add_up
from pyprof.records.records import time_by_value

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyprof.arrays import Floats, Mask
    from pyprof.prof.table import Table
    from pyprof.records.records import RowTime
    from pyprof.schema import Capture

_KEYS = ("op", "dir", "kernel")
_MEANS = ("tensor", "occ", "occmeas", "l2hit", "clock")
"""Columns whose mean over rows, weighted by time, is shown."""


@dataclass(frozen=True, slots=True)
class CounterTotals:
    """Sums of what was measured, small enough to send; those of several captures add up."""

    ops: pa.Table
    """By op and direction; without an op by kernel."""
    sources: Mapping[str, int]
    """Time by what measured it, ns."""
    disagreements: Mapping[tuple[str, bool], RowTime]
    """Kernels whose counters contradict their name: the name, and whether Tensor Cores ran."""
    power: tuple[Power, ...]

    @property
    def sums(self) -> Mapping[str, Any]:
        """The columns of `ops`, for all that was measured."""
        names = self.ops.drop_columns([*_KEYS]).column_names
        return {name: pc.sum(self.ops.column(name)).as_py() or 0 for name in names}

    @property
    def total(self) -> MeasuredOp:
        """All that was measured, as if it were one op without a name."""
        return _measured_op({**dict.fromkeys(_KEYS), **self.sums})

    def known_share(self, name: str, whole_ns: int) -> float:
        """The share of the time of all rows for which the sum `name` is known."""
        return float(self.sums[f"{name}_ns"]) / max(whole_ns, 1)

    @property
    def contradictions(self) -> tuple[str, ...]:
        """A sentence for each kernel of `disagreements`, the longest first."""
        ordered = sorted(self.disagreements.items(), key=lambda entry: (-entry[1].ns, entry[0]))
        return tuple(
            f"{kernel} used {'' if ran else 'no '}Tensor Cores, by counters, in"
            f" {counted(calls.rows, 'call')}; its name says that it does{' not' if ran else ''}"
            for (kernel, ran), calls in ordered
        )

    @property
    def throttled(self) -> str | None:
        """Say that the clock was below the peak's, and what limited it; None if it was not.

        Runs under ncu do not count, since ncu locks the clock.
        """
        sums = self.sums
        # the clock in MHz, and as a share of the clock that the peak holds at
        share = ratio_if_known(sums["clock_share"], sums["clock_share_ns"])
        clock = ratio_if_known(sums["clock_of_share"], sums["clock_share_ns"])
        if share is None or clock is None or share >= _AT_PEAK:
            return None
        text = f"the SM clock was {clock:,.0f} MHz, {100 * share:.0f} % of the peak's"
        return "; ".join(part for part in (text, cause(self.power)) if part)


_AT_PEAK = 0.97
"""From this share of the peak's clock on, the clock is not worth mentioning."""


def counter_totals(
    table: Table, capture: Capture | None, rows: Mask | None, step_ns: Floats | None
) -> CounterTotals | None:
    """Sum up the measurements of all rows, or those chosen; None if nothing was measured.

    `step_ns` is what each row adds to the time of the mean step.
    """
    power = tuple(device_power(capture, table.records, rows)) if capture is not None else ()
    if not table.measured.any and not power:
        return None
    chosen = np.ones(table.records.rows, bool) if rows is None else rows
    by_source = time_by_value(table.measured.source, table.duration_ns, chosen)
    sources = {source: time.ns for source, time in by_source.items() if source and time.ns}
    return CounterTotals(_ops(table, chosen, step_ns), sources, disagreements(table, chosen), power)


def _ops(table: Table, chosen: Mask, step_ns: Floats | None) -> pa.Table:
    chosen = chosen & table.measured.source.matches(lambda source: source is not None)
    ns = np.where(table.timed, table.duration_ns, 0).astype(float)
    dram = counter_rates.dram_bytes(table)
    least = np.where(table.costs.bytes > 0, table.costs.bytes, math.nan).astype(float)
    energy = counter_rates.energy_j(table)
    columns: dict[str, Any] = {
        "rows": np.ones(len(ns), np.int64),
        "ns": table.duration_ns,
        "least": _sum(least, dram),
        "dram_of_least": _sum(dram, least),
        "energy_step": _sum(energy * ((0.0 if step_ns is None else step_ns) / np.maximum(ns, 1))),
    }
    share = table.measured.values("clock_hz") / counter_rates.peak_clock_hz(table)
    here = counter_rates.in_this_run(table, "clock_hz") & ~table.measured.source.is_in("ncu")
    share = np.where(here, share, math.nan)
    columns["clock_of_share"] = _sum(table.measured.values("clock_hz") / 1e6 * ns, share)
    amounts = {"dram": dram, "energy": energy, "clock_share": share * ns}
    for name in _MEANS:
        column = COLUMNS[name].values(table).cast(pa.float64()).fill_null(math.nan)
        amounts[name] = column.to_numpy(zero_copy_only=False) * ns
    for name, amount in amounts.items():
        columns |= {name: _sum(amount), f"{name}_ns": _sum(ns, amount)}
    keys = {name: COLUMNS[name].values(table) for name in _KEYS}
    keys["kernel"] = pc.if_else(pc.is_null(keys["op"]), keys["kernel"], None)
    data = pa.table({**keys, **columns}).filter(pa.array(chosen))
    return add_up(data, _KEYS, dict.fromkeys(columns, "sum"))


def _sum(values: Floats, where: Floats | None = None) -> Floats:
    """Replace unknown values by 0, and those of rows where `where` is unknown."""
    is_finite = np.isfinite(values) if where is None else np.isfinite(values) & np.isfinite(where)
    return np.where(is_finite, values, 0.0)


def disagreements(table: Table, chosen: Mask) -> Mapping[tuple[str, bool], RowTime]:
    """Sum up the kernels whose counters and names differ on Tensor Cores."""
    wrong = counter_rates.tensor_core_disagreements(table) & chosen
    name = table.records.dictionary("kLongName").map(short_name)
    ran = counter_rates.tensor_cores(table) == 1
    return {
        (kernel, did): time
        for did in (False, True)
        for kernel, time in time_by_value(name, table.duration_ns, wrong & (ran == did)).items()
    }


def measured(
    totals: CounterTotals, whole_ns: int, steps: int | None, tokens: int | None
) -> Measured:
    """Convert the totals for the answer.

    `whole_ns` is the time of all rows, measured or not. The mean step is the mean of `steps`
    steps, which together worked on `tokens`.
    """
    total, step_j = totals.total, totals.sums["energy_step"] or None
    order = [("ns", "descending"), *((name, "ascending") for name in _KEYS)]
    return Measured(
        sources_ns=totals.sources,
        kernel_count=total.kernel_count,
        dram_bytes=total.dram_bytes,
        energy_j=total.energy_j,
        energy_known_share=totals.known_share("energy", whole_ns),
        energy_step_j=step_j,
        energy_token_j=step_j * steps / tokens if step_j is not None and steps and tokens else None,
        excess=total.excess,
        tensor_share=total.tensor_share,
        clock_hz=total.clock_hz,
        throttled=totals.throttled,
        contradictions=totals.contradictions,
        power=tuple(one.drawn for one in totals.power),
        ops=tuple(map(_measured_op, totals.ops.sort_by(order).to_pylist())),
    )


def _measured_op(sums: Mapping[str, Any]) -> MeasuredOp:
    """Convert the sums of an op; what no row has is unknown."""
    means = {name: ratio_if_known(sums[name], sums[f"{name}_ns"]) for name in _MEANS}
    return MeasuredOp(
        op=sums["op"],
        dir=sums["dir"],
        kernel=sums["kernel"],
        kernel_count=sums["rows"],
        time_ns=sums["ns"],
        dram_bytes=float(sums["dram"]) if sums["dram_ns"] else None,
        dram_bytes_per_s=_scaled(ratio_if_known(sums["dram"], sums["dram_ns"]), 1e9),
        excess=ratio_if_known(sums["dram_of_least"], sums["least"]),
        l2_hit_share=_scaled(means["l2hit"], 0.01),
        tensor_share=_scaled(means["tensor"], 0.01),
        theoretical_occupancy_share=_scaled(means["occ"], 0.01),
        occupancy_share=_scaled(means["occmeas"], 0.01),
        clock_hz=_scaled(means["clock"], 1e6),
        energy_j=float(sums["energy"]) if sums["energy_ns"] else None,
        means=means,
    )


def _scaled(value: float | None, factor: float) -> float | None:
    return None if value is None else value * factor
