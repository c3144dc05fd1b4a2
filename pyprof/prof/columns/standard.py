"""The columns of a report. One `@column` each: its name, header, meaning and values.

`-c`, `--help`, CSV headers, tables and the README's list follow from what is registered here.
Help lists the columns without making any: what makes values loads Arrow, and is loaded when used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from pyprof.prof.columns.column import (
    COLUMNS,
    FLOAT,
    INT,
    NUMBERS,
    TEXT,
    Column,
    column,
    lazy_module,
)

if TYPE_CHECKING:
    import pyarrow as pa

    from pyprof import arrays
    from pyprof.parse.ranges import range_stacks
    from pyprof.prof import step_rows
    from pyprof.prof.columns import column_values as values
    from pyprof.prof.columns import explained_columns
    from pyprof.prof.kernels import kernel_families
    from pyprof.prof.table import Table
else:
    arrays = lazy_module("pyprof.arrays")
    range_stacks = lazy_module("pyprof.parse.ranges.range_stacks")
    values = lazy_module("pyprof.prof.columns.column_values")
    explained_columns = lazy_module("pyprof.prof.columns.explained_columns")
    kernel_families = lazy_module("pyprof.prof.kernels.kernel_families")
    step_rows = lazy_module("pyprof.prof.step_rows")

__all__ = ["COLUMNS", "DEFAULT", "FLOAT", "INT", "NUMBERS", "TEXT", "Column"]

DEFAULT = "idx,dir,sub,mod,op,kernel,params,sil"


@column("idx", "Idx", INT, 7)
def _idx(table: Table) -> pa.Array:
    """Row number, from 1, in the order of the file."""
    return values.row_numbers(table.records)


@column("seq", "SeqId", NUMBERS, 7)
def _seq(table: Table) -> pa.Array:
    """PyTorch's sequence number."""
    return values.spelt_lists(table.records.arrow("seqId"))


@column("altseq", "AltSeqId", NUMBERS, 7)
def _altseq(table: Table) -> pa.Array:
    """Other sequence numbers of the kernel."""
    return values.spelt_lists(table.records.arrow("altSeqId"))


@column("tid", "TId", INT, 12)
def _tid(table: Table) -> pa.Array:
    """Thread that launched it."""
    return table.records.arrow("tid")


@column("layer", "Layer", TEXT, 10)
def _layer(table: Table) -> pa.Array:
    """Layers around it, outermost first."""
    return values.spelt(table.own_or_forward("layer"), lambda names: ":".join(names) or None)


@column("trace", "Trace", TEXT, 25)
def _trace(table: Table) -> pa.Array:
    """Call stack, outermost first, without the framework's frames."""
    return values.spelt(table.own_or_forward("trace"), lambda lines: ",".join(lines) or None)


@column("dir", "Direction", TEXT, 5)
def _dir(table: Table) -> pa.Array:
    """Part of the step: fprop, bprop, optim, comm, copy."""
    return values.spelt(table.records.dictionary("dir"), lambda text: text or None)


@column("sub", "Sub", INT, 3)
def _sub(table: Table) -> pa.Array:
    """Position among the kernels of one sequence number."""
    return table.records.arrow("subSeqId")


@column("mod", "Module", TEXT, 15)
def _mod(table: Table) -> pa.Array:
    """Python module of the op that was called."""
    return values.spelt(table.own_or_forward("mod"), values.outermost_module)


@column("op", "Op", TEXT, 15)
def _op(table: Table) -> pa.Array:
    """The op that was called, a method with its class; `bias` for the bias of a linear."""
    return values.ops(table)


@column("kernel", "Kernel", TEXT, 0)
def _kernel(table: Table) -> pa.Array:
    """Short name of the kernel."""
    return values.spelt(table.records.dictionary("kShortName"), lambda name: name.replace(" ", "_"))


@column("params", "Params", TEXT, 0)
def _params(table: Table) -> pa.Array:
    """The arguments that its op's cost was computed from."""
    return values.params(table.costs)


@column("sil", "Sil(ns)", INT, 10, "ns")
def _sil(table: Table) -> pa.Array:
    """Time on the GPU, ns."""
    return table.records.arrow("kDuration")


@column("tc", "TC", TEXT, 2)
def _tc(table: Table) -> pa.Array:
    """Tensor Cores: 1 used, 0 not used, ? unknown from the name, - nothing for them to do."""
    return values.tensor_cores(table)


@column("device", "Device", INT, 3)
def _device(table: Table) -> pa.Array:
    """Number of the GPU."""
    return table.records.arrow("device")


@column("stream", "Stream", INT, 3)
def _stream(table: Table) -> pa.Array:
    """CUDA stream."""
    return table.records.arrow("stream")


@column("grid", "Grid", NUMBERS, 12)
def _grid(table: Table) -> pa.Array:
    """Thread blocks, x,y,z."""
    return values.spelt(table.records.dictionary("grid"), values.commas)


@column("block", "Block", NUMBERS, 12)
def _block(table: Table) -> pa.Array:
    """Threads in a block, x,y,z."""
    return values.spelt(table.records.dictionary("block"), values.commas)


@column("flops", "FLOPs", INT, 12, "FLOP")
def _flops(table: Table) -> pa.Array:
    """Its share of its op call's FLOPs; a fused multiply-add counts 2."""
    return arrays.or_null(table.costs.flops)


@column("bytes", "Bytes", INT, 12, "byte")
def _bytes(table: Table) -> pa.Array:
    """Its share of its op call's least DRAM traffic: each input and output once."""
    return arrays.or_null(table.costs.bytes)


@column("start", "Start(ns)", INT, 12, "ns", exact=True)
def _start(table: Table) -> pa.Array:
    """Start on the GPU, ns on the capture's clock."""
    return table.records.arrow("start")


@column("end", "End(ns)", INT, 12, "ns", exact=True)
def _end(table: Table) -> pa.Array:
    """End on the GPU, ns on the capture's clock."""
    return table.records.arrow("end")


@column("gap", "Gap(ns)", INT, 10, "ns")
def _gap(table: Table) -> pa.Array:
    """Time that its process had left the device idle before it, ns; 0: other work ran."""
    return explained_columns.idle_before(table.records)


@column("queue", "Queue(ns)", INT, 10, "ns")
def _queue(table: Table) -> pa.Array:
    """From the start of the launching API call to the start on the GPU, ns."""
    return explained_columns.queued(table.records)


@column("pid", "PId", INT, 8)
def _pid(table: Table) -> pa.Array:
    """Process that launched it."""
    return table.records.arrow("pid")


@column("rank", "Rank", INT, 4)
def _rank(table: Table) -> pa.Array:
    """Rank of the process in a distributed job."""
    return table.records.arrow("rank")


@column("window", "Window", INT, 3)
def _window(table: Table) -> pa.Array:
    """Window of the capture in which it was launched, from 0; empty if there is only one."""
    return table.records.arrow("window")


@column("step", "Step", INT, 5)
def _step(table: Table) -> pa.Array:
    """Step in which it was launched, from 0; empty if no step is marked around it."""
    return step_rows.numbers(table)


@column("phase", "Phase", TEXT, 8)
def _phase(table: Table) -> pa.Array:
    """Prefill, decode or mixed; in training forward, backward, optimizer, communication or copy."""
    return step_rows.phases(table).numbered()


@column("family", "Family", TEXT, 12)
def _family(table: Table) -> pa.Array:
    """Kind of computation, from its op, else from its kernel: GEMM, attention, norm, copy..."""
    return kernel_families.families(table).numbered()


@column("kind", "Kind", TEXT, 6)
def _kind(table: Table) -> pa.Array:
    """Kind of work: kernel, memcpy, memset, graph (a CUDA graph launch) or cpu."""
    return table.records.arrow("kind")


@column("line", "Line", TEXT, 25)
def _line(table: Table) -> pa.Array:
    """Your source line: the innermost one outside installed libraries."""
    return values.spelt(table.own_or_forward("trace"), range_stacks.user_line)


@column("module", "ModulePath", TEXT, 25)
def _module(table: Table) -> pa.Array:
    """The innermost layer: for pyprof's own ranges, the module's full path."""
    return values.spelt(table.own_or_forward("layer"), lambda names: names[-1] if names else None)


@column("tflops", "TFLOP/s", FLOAT, 9, "TFLOP/s")
def _tflops(table: Table) -> pa.Array:
    """FLOPs over time, 10^12 per second."""
    return values.floats(table.rates.flops_per_s / 1e12)


@column("gbs", "GB/s", FLOAT, 9, "GB/s")
def _gbs(table: Table) -> pa.Array:
    """Bytes over time, 10^9 per second."""
    return values.floats(table.rates.bytes_per_s / 1e9)


@column("ai", "FLOP/B", FLOAT, 8, "FLOP/byte")
def _ai(table: Table) -> pa.Array:
    """Arithmetic intensity: FLOPs per byte."""
    return values.floats(table.rates.intensity)


@column("bound", "Bound", TEXT, 8)
def _bound(table: Table) -> pa.Array:
    """What limits it: compute, memory, or latency (too small to fill the device)."""
    return table.bound.numbered()


@column("eff", "Eff(%)", FLOAT, 7, "%")
def _eff(table: Table) -> pa.Array:
    """Percent of the roofline: the larger share of peak FLOP/s and peak bandwidth. Not clipped."""
    return values.floats(table.roofline.share * 100)


@column("peak", "Peak", TEXT, 30)
def _peak(table: Table) -> pa.Array:
    """The peak that eff is relative to."""
    return explained_columns.peaks(table)


@column("why", "Why", TEXT, 30)
def _why(table: Table) -> pa.Array:
    """Why a cost is unknown, or how tc was decided."""
    return explained_columns.reasons(table)


@column("via", "Via", TEXT, 13)
def _via(table: Table) -> pa.Array:
    """How its op was found: launch, forward op; in CUDA graphs graph node, ...; and `measured`."""
    return values.via(table)


@column("opid", "OpId", INT, 8)
def _opid(table: Table) -> pa.Array:
    """Number of its op call; the kernels of a call share its cost."""
    return values.integers(table.costs.call)


@column("regs", "Regs", INT, 4)
def _regs(table: Table) -> pa.Array:
    """Registers per thread."""
    return table.records.arrow("regs")


@column("smem", "SMem(B)", INT, 8, "byte")
def _smem(table: Table) -> pa.Array:
    """Shared memory per block, bytes."""
    return table.records.arrow("smem")


import_module("pyprof.prof.columns.counter_columns")  # its columns come last
