"""The columns of a report: name, header, kind, width, meaning and values of each.

`-c`, `--help`, CSV headers, tables and the README's list follow from what stands here. Help lists
the columns without making any: what makes values loads Arrow, and is loaded when used.
"""
# ruff: noqa: PLW0108 - a function that is named without a lambda would be loaded at once

from __future__ import annotations

from typing import TYPE_CHECKING

from pyprof.prof.columns.column import FLOAT, INT, NUMBERS, TEXT, Column, lazy_module

if TYPE_CHECKING:
    from pyprof import arrays
    from pyprof.parse.ranges import range_stacks
    from pyprof.prof import step_rows
    from pyprof.prof.columns import column_values as values
    from pyprof.prof.columns import explained_columns
    from pyprof.prof.columns.column import Values
    from pyprof.prof.kernels import counter_rates as rates
    from pyprof.prof.kernels import kernel_families
else:
    arrays = lazy_module("pyprof.arrays")
    range_stacks = lazy_module("pyprof.parse.ranges.range_stacks")
    values = lazy_module("pyprof.prof.columns.column_values")
    explained_columns = lazy_module("pyprof.prof.columns.explained_columns")
    rates = lazy_module("pyprof.prof.kernels.counter_rates")
    kernel_families = lazy_module("pyprof.prof.kernels.kernel_families")
    step_rows = lazy_module("pyprof.prof.step_rows")

__all__ = ["COLUMNS", "DEFAULT", "FLOAT", "INT", "NUMBERS", "TEXT", "Column"]

DEFAULT = "idx,dir,sub,mod,op,kernel,params,sil"


def _stored(name: str) -> Values:
    """A column of the records as it is."""
    return lambda table: table.records.arrow(name)


def _measured(name: str) -> Values:
    """A hardware counter."""
    return lambda table: values.floats(table.measured.values(name))


_COLUMNS = (
    Column("idx", "Idx", INT, 7, "Row number, from 1, in the order of the file.",
           lambda table: values.row_numbers(table.records)),
    Column("seq", "SeqId", NUMBERS, 7, "PyTorch's sequence number.",
           lambda table: values.format_lists(table.records.arrow("seqId"))),
    Column("altseq", "AltSeqId", NUMBERS, 7, "Other sequence numbers of the kernel.",
           lambda table: values.format_lists(table.records.arrow("altSeqId"))),
    Column("tid", "TId", INT, 12, "Thread that launched it.", _stored("tid")),
    Column("layer", "Layer", TEXT, 10, "Layers around it, outermost first.",
           lambda table: values.format_distinct(
               table.own_or_forward("layer"), lambda names: ":".join(names) or None)),
    Column("trace", "Trace", TEXT, 25,
           "Call stack, outermost first, without the framework's frames.",
           lambda table: values.format_distinct(
               table.own_or_forward("trace"), lambda lines: ",".join(lines) or None)),
    Column("dir", "Direction", TEXT, 5, "Part of the step: fprop, bprop, optim, comm, copy.",
           lambda table: values.format_distinct(
               table.records.dictionary("dir"), lambda text: text or None),
           choices=("fprop", "bprop", "optim", "comm", "copy")),
    Column("sub", "Sub", INT, 3, "Position among the kernels of one sequence number.",
           _stored("subSeqId")),
    Column("mod", "Module", TEXT, 15, "Python module of the op that was called.",
           lambda table: values.format_distinct(
               table.own_or_forward("mod"), values.outermost_module)),
    Column("op", "Op", TEXT, 15,
           "The op that was called, a method with its class; `bias` for the bias of a linear.",
           lambda table: values.ops(table)),
    Column("kernel", "Kernel", TEXT, 0, "Short name of the kernel.",
           lambda table: values.format_distinct(
               table.records.dictionary("kShortName"), lambda name: name.replace(" ", "_"))),
    Column("params", "Params", TEXT, 0, "The arguments that its op's cost was computed from.",
           lambda table: values.params(table.costs)),
    Column("sil", "Sil(ns)", INT, 10, "Time on the GPU, ns.", _stored("kDuration"), unit="ns"),
    Column("tc", "TC", TEXT, 2,
           "Tensor Cores: 1 used, 0 not used, ? unknown from the name, - nothing for them to do.",
           lambda table: table.classified.map(lambda entry: entry.tc.value).dictionary_array(),
           choices=("1", "0", "?", "-")),
    Column("device", "Device", INT, 3, "Number of the GPU.", _stored("device")),
    Column("stream", "Stream", INT, 3, "CUDA stream.", _stored("stream")),
    Column("grid", "Grid", NUMBERS, 12, "Thread blocks, x,y,z.",
           lambda table: values.format_distinct(table.records.dictionary("grid"), values.commas)),
    Column("block", "Block", NUMBERS, 12, "Threads in a block, x,y,z.",
           lambda table: values.format_distinct(table.records.dictionary("block"), values.commas)),
    Column("flops", "FLOPs", INT, 12,
           "Its share of its op call's FLOPs; a fused multiply-add counts 2.",
           lambda table: arrays.or_null(table.costs.flops), unit="FLOP"),
    Column("bytes", "Bytes", INT, 12,
           "Its share of its op call's least DRAM traffic: each input and output once.",
           lambda table: arrays.or_null(table.costs.bytes), unit="byte"),
    Column("start", "Start(ns)", INT, 12, "Start on the GPU, ns on the capture's clock.",
           _stored("start"), unit="ns", exact=True),
    Column("end", "End(ns)", INT, 12, "End on the GPU, ns on the capture's clock.",
           _stored("end"), unit="ns", exact=True),
    Column("gap", "Gap(ns)", INT, 10,
           "Time that its process had left the device idle before it, ns; 0: other work ran.",
           lambda table: explained_columns.idle_before(table.records), unit="ns"),
    Column("queue", "Queue(ns)", INT, 10,
           "From the start of the launching API call to the start on the GPU, ns.",
           lambda table: explained_columns.queued(table.records), unit="ns"),
    Column("pid", "PId", INT, 8, "Process that launched it.", _stored("pid")),
    Column("rank", "Rank", INT, 4, "Rank of the process in a distributed job.", _stored("rank")),
    Column("window", "Window", INT, 3,
           "Window of the capture in which it was launched, from 0; empty if there is only one.",
           _stored("window")),
    Column("step", "Step", INT, 5,
           "Step in which it was launched, from 0; empty if no step is marked around it.",
           lambda table: step_rows.numbers(table)),
    Column("phase", "Phase", TEXT, 8,
           "Prefill, decode or mixed; in training forward, backward, optimizer, communication or"
           " copy.",
           lambda table: step_rows.phases(table).dictionary_array()),
    Column("family", "Family", TEXT, 12,
           "Kind of computation, from its op, else from its kernel: GEMM, attention, norm, copy...",
           lambda table: kernel_families.families(table).dictionary_array()),
    Column("kind", "Kind", TEXT, 6,
           "Kind of work: kernel, memcpy, memset, graph (a CUDA graph launch) or cpu.",
           _stored("kind"), choices=("kernel", "memcpy", "memset", "graph", "cpu")),
    Column("line", "Line", TEXT, 25,
           "Your source line: the innermost one outside installed libraries.",
           lambda table: values.format_distinct(
               table.own_or_forward("trace"), range_stacks.user_line)),
    Column("module", "ModulePath", TEXT, 25,
           "The innermost layer: for pyprof's own ranges, the module's full path.",
           lambda table: values.format_distinct(
               table.own_or_forward("layer"), lambda names: names[-1] if names else None)),
    Column("tflops", "TFLOP/s", FLOAT, 9, "FLOPs over time, 10^12 per second.",
           lambda table: values.floats(table.rates.flops_per_s / 1e12), unit="TFLOP/s"),
    Column("gbs", "GB/s", FLOAT, 9, "Bytes over time, 10^9 per second.",
           lambda table: values.floats(table.rates.bytes_per_s / 1e9), unit="GB/s"),
    Column("ai", "FLOP/B", FLOAT, 8, "Arithmetic intensity: FLOPs per byte.",
           lambda table: values.floats(table.rates.intensity), unit="FLOP/byte"),
    Column("bound", "Bound", TEXT, 8,
           "What limits it: compute, memory, or latency (too small to fill the device).",
           lambda table: table.bound.dictionary_array(), choices=("compute", "memory", "latency")),
    Column("eff", "Eff(%)", FLOAT, 7,
           "Percent of the roofline: the larger share of peak FLOP/s and peak bandwidth."
           " Not clipped.",
           lambda table: values.floats(table.roofline.share * 100), unit="%"),
    Column("peak", "Peak", TEXT, 30, "The peak that eff is relative to.",
           lambda table: explained_columns.peaks(table)),
    Column("why", "Why", TEXT, 30, "Why a cost is unknown, or how tc was decided.",
           lambda table: explained_columns.reasons(table)),
    Column("via", "Via", TEXT, 13,
           "How its op was found: launch, forward op; in CUDA graphs graph node, ...; and"
           " `measured`.",
           lambda table: values.via(table)),
    Column("opid", "OpId", INT, 8, "Number of its op call; the kernels of a call share its cost.",
           lambda table: values.integers(table.costs.call)),
    Column("regs", "Regs", INT, 4, "Registers per thread.", _stored("regs")),
    Column("smem", "SMem(B)", INT, 8, "Shared memory per block, bytes.", _stored("smem"),
           unit="byte"),
    # what the hardware did: how full it could be, and what counters measured
    Column("occ", "Occ(%)", FLOAT, 7,
           "Theoretical occupancy: warps that fit on an SM, percent of what it can hold.",
           lambda table: values.floats(values.or_else(
               table.occupancy.occupancy * 100, table.measured.values("theoretical_pct"))),
           unit="%"),
    Column("waves", "Waves", FLOAT, 7,
           "How often its grid fills the device: below 1 SMs are idle; 1.1 has a tail of 0.1.",
           lambda table: values.floats(values.or_else(
               table.occupancy.waves, table.measured.values("waves")))),
    Column("dram", "DRAM(B)", INT, 12, "Measured DRAM traffic, bytes read and written.",
           lambda table: values.rounded_integers(rates.dram_bytes(table)), unit="byte"),
    Column("dramerr", "DRAM±(%)", FLOAT, 8,
           "Standard error of sampled DRAM traffic, percent of it.",
           lambda table: values.standard_errors(table, "dram_pct", "dram_bytes"), unit="%"),
    Column("tensor", "Tensor(%)", FLOAT, 9,
           "Measured activity of the Tensor Cores, percent of their peak.",
           _measured("tensor_pct"), unit="%"),
    Column("tensorerr", "Tensor±(%)", FLOAT, 10,
           "Standard error of sampled Tensor Core activity, percent of it.",
           lambda table: values.standard_errors(table, "tensor_pct"), unit="%"),
    Column("tcmeas", "TCm", INT, 3,
           "Tensor Cores by counters: 1 used, 0 not used; compare tc, which is by kernel name.",
           lambda table: values.rounded_integers(rates.tensor_cores(table))),
    Column("occmeas", "OccM(%)", FLOAT, 7,
           "Measured (achieved) occupancy, percent of the warps that an SM can hold.",
           _measured("occupancy_pct"), unit="%"),
    Column("clock", "Clock(MHz)", FLOAT, 10,
           "Measured SM clock while it ran, MHz; ncu locks it to the base clock unless asked not"
           " to.",
           lambda table: values.floats(table.measured.values("clock_hz") / 1e6), unit="MHz"),
    Column("effclk", "EffClk(%)", FLOAT, 9,
           "As eff, with the peak FLOP/s of the clock that was measured while it ran.",
           lambda table: values.floats(rates.share_at_clock(table) * 100), unit="%"),
    Column("xflops", "ExecFLOPs", INT, 12,
           "Measured FLOPs, of all outside Tensor Cores; a fused multiply-add counts 2.",
           lambda table: values.rounded_integers(table.measured.values("flops")), unit="FLOP"),
    Column("excess", "Excess", FLOAT, 7,
           "Measured DRAM traffic over bytes, the least: 1 is ideal, less means a hit in cache.",
           lambda table: values.floats(rates.excess(table))),
    Column("l1hit", "L1Hit(%)", FLOAT, 8, "Measured hit rate of the L1 cache.",
           _measured("l1_hit_pct"), unit="%"),
    Column("l2hit", "L2Hit(%)", FLOAT, 8, "Measured hit rate of the L2 cache.",
           _measured("l2_hit_pct"), unit="%"),
    Column("power", "Power(W)", FLOAT, 8, "Measured power of the device while it ran, W.",
           _measured("power_w"), unit="W"),
    Column("energy", "Energy(mJ)", FLOAT, 10,
           "Measured energy, mJ: power times its time; rows that run at once share it evenly.",
           lambda table: values.floats(rates.energy_j(table) * 1e3), unit="mJ"),
    Column("counter", "Counter", TEXT, 8,
           "What measured it: ncu, joined, repeated (an equal kernel), args or samples.",
           lambda table: table.measured.source.dictionary_array()),
)  # fmt: skip
COLUMNS = {column.name: column for column in _COLUMNS}
