"""Columns of what the hardware did: how full it could be, and what counters measured."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyprof.prof.columns.column import FLOAT, INT, TEXT, column, lazy_module

if TYPE_CHECKING:
    import pyarrow as pa

    from pyprof.prof.columns import column_values as values
    from pyprof.prof.kernels import counter_rates as rates
    from pyprof.prof.table import Table
else:
    values = lazy_module("pyprof.prof.columns.column_values")
    rates = lazy_module("pyprof.prof.kernels.counter_rates")


@column("occ", "Occ(%)", FLOAT, 7, "%")
def _occ(table: Table) -> pa.Array:
    """Theoretical occupancy: warps that fit on an SM, percent of what it can hold."""
    return values.floats(
        values.or_else(table.occupancy.occupancy * 100, table.measured.values("theoretical_pct"))
    )


@column("waves", "Waves", FLOAT, 7)
def _waves(table: Table) -> pa.Array:
    """How often its grid fills the device: below 1 SMs are idle; 1.1 has a tail of 0.1."""
    return values.floats(values.or_else(table.occupancy.waves, table.measured.values("waves")))


@column("dram", "DRAM(B)", INT, 12, "byte")
def _dram(table: Table) -> pa.Array:
    """Measured DRAM traffic, bytes read and written."""
    return values.rounded_integers(rates.dram_bytes(table))


@column("dramerr", "DRAM±(%)", FLOAT, 8, "%")
def _dramerr(table: Table) -> pa.Array:
    """Standard error of sampled DRAM traffic, percent of it."""
    return values.standard_errors(table, "dram_pct", "dram_bytes")


@column("tensor", "Tensor(%)", FLOAT, 9, "%")
def _tensor(table: Table) -> pa.Array:
    """Measured activity of the Tensor Cores, percent of their peak."""
    return values.floats(table.measured.values("tensor_pct"))


@column("tensorerr", "Tensor±(%)", FLOAT, 10, "%")
def _tensorerr(table: Table) -> pa.Array:
    """Standard error of sampled Tensor Core activity, percent of it."""
    return values.standard_errors(table, "tensor_pct")


@column("tcmeas", "TCm", INT, 3)
def _tcmeas(table: Table) -> pa.Array:
    """Tensor Cores by counters: 1 used, 0 not used; compare tc, which is by kernel name."""
    return values.rounded_integers(rates.tensor_cores(table))


@column("occmeas", "OccM(%)", FLOAT, 7, "%")
def _occmeas(table: Table) -> pa.Array:
    """Measured (achieved) occupancy, percent of the warps that an SM can hold."""
    return values.floats(table.measured.values("occupancy_pct"))


@column("clock", "Clock(MHz)", FLOAT, 10, "MHz")
def _clock(table: Table) -> pa.Array:
    """Measured SM clock while it ran, MHz; ncu locks it to the base clock unless asked not to."""
    return values.floats(table.measured.values("clock_hz") / 1e6)


@column("effclk", "EffClk(%)", FLOAT, 9, "%")
def _effclk(table: Table) -> pa.Array:
    """As eff, with the peak FLOP/s of the clock that was measured while it ran."""
    return values.floats(rates.share_at_clock(table) * 100)


@column("xflops", "ExecFLOPs", INT, 12, "FLOP")
def _xflops(table: Table) -> pa.Array:
    """Measured FLOPs, of all outside Tensor Cores; a fused multiply-add counts 2."""
    return values.rounded_integers(table.measured.values("flops"))


@column("excess", "Excess", FLOAT, 7)
def _excess(table: Table) -> pa.Array:
    """Measured DRAM traffic over bytes, the least: 1 is ideal, less means a hit in cache."""
    return values.floats(rates.excess(table))


@column("l1hit", "L1Hit(%)", FLOAT, 8, "%")
def _l1hit(table: Table) -> pa.Array:
    """Measured hit rate of the L1 cache."""
    return values.floats(table.measured.values("l1_hit_pct"))


@column("l2hit", "L2Hit(%)", FLOAT, 8, "%")
def _l2hit(table: Table) -> pa.Array:
    """Measured hit rate of the L2 cache."""
    return values.floats(table.measured.values("l2_hit_pct"))


@column("power", "Power(W)", FLOAT, 8, "W")
def _power(table: Table) -> pa.Array:
    """Measured power of the device while it ran, W."""
    return values.floats(table.measured.values("power_w"))


@column("energy", "Energy(mJ)", FLOAT, 10, "mJ")
def _energy(table: Table) -> pa.Array:
    """Measured energy, mJ: power times its time; rows that run at once share it evenly."""
    return values.floats(rates.energy_j(table) * 1e3)


@column("counter", "Counter", TEXT, 8)
def _counter(table: Table) -> pa.Array:
    """By what it was measured: ncu, joined, repeated (an equal kernel), args or samples."""
    return values.measured_by(table)
