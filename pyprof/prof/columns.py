"""The columns of a report. One `@column` each: its name, header, meaning and values.

`-c`, `--help`, CSV headers, tables and the README's list follow from what is registered here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyprof.parse import frames
from pyprof.parse.records import Coded
from pyprof.prof import why
from pyprof.prof.families import family
from pyprof.prof.portions import UNKNOWN

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from pyprof.prof.table import Table

Values: TypeAlias = Callable[["Table"], pa.Array]

INT, FLOAT, TEXT = "int", "float", "text"

DEFAULT = "idx,dir,sub,mod,op,kernel,params,sil"


@dataclass(frozen=True, slots=True)
class Column:
    """One column: what users type, what they see above it, and where its values come from."""

    name: str
    header: str
    kind: str
    width: int
    """Least width in a fixed-width table; 0: whatever room is left."""
    values: Values
    """Gives one Arrow value a row, null where it is not known."""
    help: str
    unit: str = ""
    """"" for texts, and for numbers that count or name something."""


COLUMNS: dict[str, Column] = {}


def column(
    name: str, header: str, kind: str, width: int, unit: str = ""
) -> Callable[[Values], Values]:
    """Register a column; its docstring is its help."""

    def register(values: Values) -> Values:
        if name in COLUMNS:
            raise ValueError(f"column {name!r} is there already")
        text = " ".join((values.__doc__ or "").split())
        COLUMNS[name] = Column(name, header, kind, width, values, text, unit)
        return values

    return register


# --- the original's twenty ----------------------------------------------------------------------


@column("idx", "Idx", INT, 7)
def _idx(table: Table) -> pa.Array:
    """Row number, from 1, in the order of the file."""
    return pa.array(np.arange(1, table.records.rows + 1))


@column("seq", "SeqId", TEXT, 7)
def _seq(table: Table) -> pa.Array:
    """PyTorch's sequence number."""
    return _numbers(table.records.arrow("seqId"))


@column("altseq", "AltSeqId", TEXT, 7)
def _altseq(table: Table) -> pa.Array:
    """Other sequence numbers of the kernel."""
    return _numbers(table.records.arrow("altSeqId"))


@column("tid", "TId", INT, 12)
def _tid(table: Table) -> pa.Array:
    """Thread that launched it."""
    return table.records.arrow("tid")


@column("layer", "Layer", TEXT, 10)
def _layer(table: Table) -> pa.Array:
    """Layers around it, outermost first."""
    return _spelt(table.own_or_forward("layer"), lambda names: ":".join(names) or None)


@column("trace", "Trace", TEXT, 25)
def _trace(table: Table) -> pa.Array:
    """Call stack, outermost first, without the framework's frames."""
    return _spelt(table.own_or_forward("trace"), lambda lines: ",".join(lines) or None)


@column("dir", "Direction", TEXT, 5)
def _dir(table: Table) -> pa.Array:
    """Part of the step: fprop, bprop, optim, comm, copy."""
    return _spelt(table.records.coded("dir"), lambda text: text or None)


@column("sub", "Sub", INT, 3)
def _sub(table: Table) -> pa.Array:
    """Place among the kernels of one sequence number."""
    return table.records.arrow("subSeqId")


@column("mod", "Module", TEXT, 15)
def _mod(table: Table) -> pa.Array:
    """Python module of the op that was called."""
    return _spelt(table.own_or_forward("mod"), lambda names: names[0] if names else None)


@column("op", "Op", TEXT, 15)
def _op(table: Table) -> pa.Array:
    """The op that was called; `bias` for the bias of a linear."""
    ops = table.own_or_forward("op")
    names = _spelt(ops, lambda names: names[0] if names else None)
    linear = pc.fill_null(pc.equal(names, "linear"), False)  # noqa: FBT003 - Arrow's spelling
    return pc.if_else(pc.and_(linear, pa.array(_is_bias(table))), "bias", names)


_BIAS_FAMILIES = {"pointwise", "reduction"}


def _is_bias(table: Table) -> NDArray[np.bool_]:
    """Tell which rows work for an element-wise op or a sum, inside whatever was called."""
    costs = table.costs
    bias = np.array([family(work) in _BIAS_FAMILIES for work in costs.work], bool)
    return bias[costs.work_of]


@column("kernel", "Kernel", TEXT, 0)
def _kernel(table: Table) -> pa.Array:
    """Short name of the kernel."""
    return _spelt(table.records.coded("kShortName"), lambda name: name.replace(" ", "_"))


@column("params", "Params", TEXT, 0)
def _params(table: Table) -> pa.Array:
    """What its op's cost was computed from."""
    costs = table.costs
    spelt = ["".join(f"{key}={_compact(value)}," for key, value in params.items()) or None
             for params in costs.params]  # fmt: skip
    return Coded(costs.params_of, spelt).to_arrow(pa.string())


@column("sil", "Sil(ns)", INT, 10, "ns")
def _sil(table: Table) -> pa.Array:
    """Time on the GPU, ns."""
    return table.records.arrow("kDuration")


@column("tc", "TC", TEXT, 2)
def _tc(table: Table) -> pa.Array:
    """Tensor Cores: 1 used, 0 not used, ? the name cannot tell, - nothing for them to do."""
    number, judged = table.judged
    return Coded(number, [entry.tc.value for entry in judged]).to_arrow(pa.string())


@column("device", "Device", INT, 3)
def _device(table: Table) -> pa.Array:
    """Number of the GPU."""
    return table.records.arrow("device")


@column("stream", "Stream", INT, 3)
def _stream(table: Table) -> pa.Array:
    """CUDA stream."""
    return table.records.arrow("stream")


@column("grid", "Grid", TEXT, 12)
def _grid(table: Table) -> pa.Array:
    """Thread blocks, x,y,z."""
    return _spelt(table.records.coded("grid"), _commas)


@column("block", "Block", TEXT, 12)
def _block(table: Table) -> pa.Array:
    """Threads in a block, x,y,z."""
    return _spelt(table.records.coded("block"), _commas)


@column("flops", "FLOPs", INT, 12, "FLOP")
def _flops(table: Table) -> pa.Array:
    """Its share of the FLOPs of its op call; a fused multiply-add is 2."""
    return _known(table.costs.flops)


@column("bytes", "Bytes", INT, 12, "byte")
def _bytes(table: Table) -> pa.Array:
    """Its share of the least DRAM traffic of its op call: inputs once, outputs once."""
    return _known(table.costs.bytes)


# --- new ones -----------------------------------------------------------------------------------


@column("start", "Start(ns)", INT, 12, "ns")
def _start(table: Table) -> pa.Array:
    """When the GPU began it, ns on the capture's clock."""
    return table.records.arrow("start")


@column("end", "End(ns)", INT, 12, "ns")
def _end(table: Table) -> pa.Array:
    """When the GPU ended it, ns on the capture's clock."""
    return table.records.arrow("end")


@column("gap", "Gap(ns)", INT, 10, "ns")
def _gap(table: Table) -> pa.Array:
    """How long its process had left its device idle when it began, ns; 0: other work ran."""
    return why.idle_before(table.records)


@column("queue", "Queue(ns)", INT, 10, "ns")
def _queue(table: Table) -> pa.Array:
    """From the start of the launching API call to the start on the GPU, ns."""
    return why.queued(table.records)


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
    """Window of the capture that it was launched in, from 0; empty where there is only one."""
    return table.records.arrow("window")


@column("kind", "Kind", TEXT, 6)
def _kind(table: Table) -> pa.Array:
    """What it is: kernel, memcpy, memset, graph (a CUDA graph launch) or cpu."""
    return table.records.arrow("kind")


@column("line", "Line", TEXT, 25)
def _line(table: Table) -> pa.Array:
    """The user's source line: the innermost that is in no installed library."""
    return _spelt(table.own_or_forward("trace"), lambda lines: frames.user_line(tuple(lines)))


@column("module", "ModulePath", TEXT, 25)
def _module(table: Table) -> pa.Array:
    """The innermost layer: for pyprof's own ranges, the module's full path."""
    return _spelt(table.own_or_forward("layer"), lambda names: names[-1] if names else None)


@column("tflops", "TFLOP/s", FLOAT, 9, "TFLOP/s")
def _tflops(table: Table) -> pa.Array:
    """FLOPs over time, 10^12 a second."""
    return _floats(table.roofline.flops_per_s / 1e12)


@column("gbs", "GB/s", FLOAT, 9, "GB/s")
def _gbs(table: Table) -> pa.Array:
    """Bytes over time, 10^9 a second."""
    return _floats(table.roofline.bytes_per_s / 1e9)


@column("ai", "FLOP/B", FLOAT, 8, "FLOP/byte")
def _ai(table: Table) -> pa.Array:
    """Arithmetic intensity: FLOPs over bytes."""
    return _floats(table.roofline.intensity)


@column("bound", "Bound", TEXT, 8)
def _bound(table: Table) -> pa.Array:
    """What limits it: compute, memory, or latency (too small to fill the device)."""
    return table.bound.to_arrow(pa.string())


@column("eff", "Eff(%)", FLOAT, 7, "%")
def _eff(table: Table) -> pa.Array:
    """Share of the roofline, %: the nearer of its peak FLOP/s and peak bandwidth. Not clipped."""
    return _floats(table.roofline.share * 100)


@column("peak", "Peak", TEXT, 30)
def _peak(table: Table) -> pa.Array:
    """The peak that eff is measured against."""
    return why.peaks(table)


@column("why", "Why", TEXT, 30)
def _why(table: Table) -> pa.Array:
    """Why a cost is not known, or how tc was decided."""
    return why.reasons(table)


@column("opid", "OpId", INT, 8)
def _opid(table: Table) -> pa.Array:
    """Number of the op call that it works for: its kernels share the call's cost."""
    return pa.array(table.costs.call)


@column("regs", "Regs", INT, 4)
def _regs(table: Table) -> pa.Array:
    """Registers per thread."""
    return table.records.arrow("regs")


@column("smem", "SMem(B)", INT, 8, "byte")
def _smem(table: Table) -> pa.Array:
    """Shared memory per block, bytes."""
    return table.records.arrow("smem")


# --- making values ------------------------------------------------------------------------------


def _spelt(coded: Coded, spell: Callable[..., str | None]) -> pa.Array:
    """Spell each distinct value once; a null stays null."""
    spelt = [spell(value) if value is not None else None for value in coded.values]
    return Coded(coded.index, spelt).to_arrow(pa.string())


def _numbers(lists: pa.Array) -> pa.Array:
    """Spell lists of numbers with commas; null for none."""
    flat = lists.values.cast(pa.string())
    spelt = pc.binary_join(pa.ListArray.from_arrays(lists.offsets, flat, mask=lists.is_null()), ",")
    return pc.if_else(pc.equal(spelt, ""), None, spelt)


def _commas(numbers: Sequence[int]) -> str | None:
    return ",".join(map(str, numbers)) or None


def _compact(value: object) -> str:
    return str(value).replace(" ", "")


def _known(values: NDArray[np.int64]) -> pa.Array:
    return pa.array(values, mask=values == UNKNOWN)


def _floats(values: NDArray[np.float64]) -> pa.Array:
    return pa.array(values, mask=~np.isfinite(values))


def choose(names: str) -> Sequence[Column]:
    """Give the columns that a comma-separated list names; raise KeyError for an unknown one."""
    return [COLUMNS[name.strip()] for name in names.split(",")]
