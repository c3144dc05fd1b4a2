"""The tables that cross a boundary: their columns, types and units.

A reader returns a `Capture` of Arrow tables with exactly these columns; `parse` needs nothing else
and knows no tool, and writes records with the columns of `RECORD`. Times are int64 nanoseconds on
one clock for the whole capture. Unknown is null, never 0.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import orjson
import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Mapping

KINDS = ("kernel", "memcpy", "memset", "graph", "cpu")
"""Kinds of activities; `activities.kind` is an index into this tuple."""

KERNEL, MEMCPY, MEMSET, GRAPH, CPU = range(len(KINDS))

NESTED, FREE = 0, 1
"""`ranges.style`: push/pop ranges nest on their thread; start/end ranges need not."""

_TEXT = pa.dictionary(pa.int32(), pa.string())

COLLECTIVE = ("name", "group", "description", "ranks", "size", "dtype", "in", "out")
"""Keys of a collective as a tool or a marker records it; each may be missing.

Its name; the name, description, ranks (text: long lists are shortened; for sends and receives some
tools list only those that take part) and size of its process group; and what this rank sends and
receives: the type and number of elements.
"""

COUNTERS = (
    *("source", "dram_bytes", "dram_pct", "tensor_insts", "tensor_pct", "half_fmas", "flops"),
    *("occupancy_pct", "theoretical_pct", "waves", "clock_hz", "l1_hit_pct", "l2_hit_pct"),
    *("power_w", "samples"),
)
"""Keys of a kernel's counters; each may be missing, or have a standard error, `..._err`.

`source` is how they were measured: `ncu`, `joined` (ncu in another run), `repeated` (the same, for
a similar kernel), `args` (in its event), `rocprofv3` or `samples`, whose values have standard
errors. `flops` excludes Tensor Cores; `half_fmas` are the threads' FMAs of pairs of halves, which
some GPUs count as Tensor Core instructions.
"""


def json_object(text: str | None) -> dict[str, Any]:
    """Parse a JSON object; empty if the text is anything else, or damaged."""
    try:
        parsed = orjson.loads(text or "{}")
    except orjson.JSONDecodeError:
        return {}
    return parsed if isinstance(parsed, dict) else {}


ACTIVITIES = pa.schema(
    {
        "kind": pa.int8(),  # index into KINDS
        "start": pa.int64(),  # ns
        "end": pa.int64(),  # ns
        "pid": pa.int64(),  # process that launched it
        "device": pa.int32(),
        "stream": pa.int64(),
        "corr": pa.int64(),  # links it to its API call within the process; null: none recorded
        "name": _TEXT,  # full name, mangled or not; "[CUDA memcpy HtoD]" for a copy
        "original_name": _TEXT,  # of a copy or fill, if the tool names it otherwise
        "grid_x": pa.int32(),
        "grid_y": pa.int32(),
        "grid_z": pa.int32(),
        "block_x": pa.int32(),
        "block_y": pa.int32(),
        "block_z": pa.int32(),
        "regs": pa.int32(),  # registers per thread
        "smem": pa.int64(),  # bytes of shared memory per block, static and dynamic
        "bytes": pa.int64(),  # moved by a memcpy or set by a memset
        "rank": pa.int32(),  # rank in a distributed job
        "collective": _TEXT,  # JSON with the keys of COLLECTIVE
        "counters": _TEXT,  # JSON with the keys of COUNTERS
        "graph_node": pa.int32(),  # row of `graph_nodes`; null: in no graph, or captured unseen
        "node_id": pa.int64(),  # id of its graph node; ascending in order of creation
    }
)
"""One row per activity on the GPU (or, in a capture without a GPU, per CPU op)."""

CALLS = pa.schema(
    {
        "start": pa.int64(),  # ns
        "end": pa.int64(),  # ns
        "thread": pa.int32(),  # row of `threads`
        "corr": pa.int64(),
        "name": _TEXT,  # cudaLaunchKernel, cuMemcpyHtoDAsync, ...
    }
)
"""One row per API call; a call that a tool recorded twice appears once."""

RANGES = pa.schema(
    {
        "start": pa.int64(),  # ns
        "end": pa.int64(),  # ns; null: still open when the capture ended
        "thread": pa.int32(),  # row of `threads`
        "style": pa.int8(),  # NESTED or FREE
        # The text in the parts of pyprof.marker.templates, which pyprof.marker decodes:
        "text": _TEXT,  # without its numbers
        "seq": pa.int64(),
        "op_id": pa.int64(),
        "inputs": pa.dictionary(pa.int32(), pa.binary()),
        "forward_thread": pa.int32(),  # row of `threads`, for a backward op, if recorded
        "domain": _TEXT,  # NVTX domain; null for the default one
    }
)
"""One row per annotated range: NVTX ranges, or the ops and annotations of torch.profiler."""

THREADS = pa.schema({"pid": pa.int64(), "tid": pa.int64()})
"""One row per thread; tables refer to a thread by its row here."""

DEVICES = pa.schema(
    {
        "device": pa.int32(),
        "name": pa.string(),
        "sm_count": pa.int32(),
        "clock_hz": pa.int64(),  # maximum SM clock
        "bandwidth": pa.int64(),  # bytes/s, theoretical
        "cc_major": pa.int32(),
        "cc_minor": pa.int32(),
        "memory_bytes": pa.int64(),
    }
)
"""One row per GPU that the capture describes."""

VIAS = ("launch", "forward op", "graph node", "graph capture", "eager twin", "user range")
"""How the op of GPU work was found.

By the call that launched it; for a backward pass, by its forward op; for graph replays by the node
that the tool names, by a trace of the graph's capture, or, inferred, by a similar run outside of
graphs; by the user's range around it.
"""

SAMPLES = pa.schema(
    {
        "device": pa.int32(),
        "time": pa.int64(),  # ns; a value is the mean of the time since the sample before
        "metric": _TEXT,  # as below
        "value": pa.float64(),
    }
)
"""One row per sample of a device's metric; in order of time for each device and metric.

Metrics: dram_pct, dram_read_pct, dram_write_pct, tensor_pct and sm_active_pct, which are shares of
the device's peak, clock_hz, power_w, temperature_c.
"""

GRAPH_NODES = pa.schema(
    {
        "thread": pa.int32(),  # row of `threads`
        "time": pa.int64(),  # ns
        "via": pa.int8(),  # index into VIAS
    }
)
"""One row per point (thread, time) where a graph node's op was captured, inside its ranges.

Nodes that were made from one another, as in instances and clones of a graph, share a row.
"""

CAPTURED_LAUNCHES = pa.schema(
    {
        "graph": pa.int32(),  # row of GraphCaptures.graphs
        "thread": pa.int32(),  # row of `threads`
        "time": pa.int64(),  # ns
        "kind": pa.int8(),  # index into KINDS
        "name": _TEXT,  # the kernel's, as far as the call records it
        "grid_x": pa.int32(),
        "grid_y": pa.int32(),
        "grid_z": pa.int32(),
        "block_x": pa.int32(),
        "block_y": pa.int32(),
        "block_z": pa.int32(),
        "smem": pa.int64(),
    }
)
"""One row per call that made a node of a graph, in the order of the calls."""

CAPTURED_GRAPHS = pa.schema({"recording": pa.int32()})
"""One row per graph that was captured, in the order of their captures."""

RECORDINGS = pa.schema(
    {
        "file": pa.string(),
        "batch_size": pa.int64(),
        "mode": pa.string(),  # FULL, PIECEWISE; null if unknown
        "first_thread": pa.int32(),  # its threads: from here to the next's; null: the capture's own
    }
)
"""One row per file in which graphs were captured."""


@dataclass(frozen=True, slots=True)
class GraphCaptures:
    """The captures of graphs whose nodes the tool does not record.

    Their ranges are separate from those of the capture: they are from another time, often another
    file. Only linking kernels to ops uses them.
    """

    launches: pa.Table
    graphs: pa.Table
    recordings: pa.Table
    ranges: pa.Table
    """As `Capture.ranges`, on threads of their own."""
    batch_sizes: tuple[int, ...] = ()
    """All batch sizes that were captured, including those without a readable recording."""


TABLES: Mapping[str, pa.Schema] = {
    "activities": ACTIVITIES,
    "calls": CALLS,
    "ranges": RANGES,
    "threads": THREADS,
    "devices": DEVICES,
    "graph_nodes": GRAPH_NODES,
    "samples": SAMPLES,
}


@dataclass(frozen=True, slots=True)
class Capture:
    """A profiler's recording, in terms common to all tools. Row order has no meaning."""

    tool: str
    """`nsys`, `nvprof`, `rocpd`, `kineto` or `ncu`."""
    version: str | None
    """The tool's version, if recorded."""
    activities: pa.Table = field(default_factory=ACTIVITIES.empty_table)
    calls: pa.Table = field(default_factory=CALLS.empty_table)
    ranges: pa.Table = field(default_factory=RANGES.empty_table)
    threads: pa.Table = field(default_factory=THREADS.empty_table)
    devices: pa.Table = field(default_factory=DEVICES.empty_table)
    warnings: tuple[str, ...] = field(default=())
    """Messages for the user about what this capture hides or distorts."""
    graph_captures: GraphCaptures | None = None
    graph_nodes: pa.Table = field(default_factory=GRAPH_NODES.empty_table)
    began_ns: int | None = None
    """Unix time at the clock's zero, ns; None if the clock counts from 1970, or it is unknown."""
    samples: pa.Table = field(default_factory=SAMPLES.empty_table)
    traced_ops: int = 0
    """CPU ops that only computed shapes, and so are not activities."""

    @property
    def is_truncated(self) -> bool:
        """Whether the rest of the file is missing, as its reader says."""
        return any("truncated" in text for text in self.warnings)


TRACED = (
    "CPU ops that gave shapes alone, as torch.compile traced or their tensors had no data "
    "(FakeTensorMode, meta device)"
)
"""`Capture.traced_ops` in words."""
TRUNCATED = (
    "the trace is truncated before any GPU work (a killed job?); capture again, and let the job "
    "finish"
)
"""The warning of a capture whose missing rest may hold all its GPU work."""


@dataclass(frozen=True, slots=True)
class Identity:
    """The rank or processes of a capture, as far as recorded."""

    rank: int | None = None
    """Rank in a distributed job, if the whole file is one rank's."""
    pids: tuple[int, ...] = ()
    """The processes with GPU work, by device; empty if the tool writes one file per process."""


def check(capture: Capture) -> None:
    """Raise TypeError if a table's columns differ from the schema: a reader's bug."""
    for name, schema in TABLES.items():
        columns = getattr(capture, name).schema
        if not columns.equals(schema):
            raise TypeError(f"{name}: expected\n{schema}\nfound\n{columns}")


def table(schema: pa.Schema, columns: Mapping[str, Any], rows: int | None = None) -> pa.Table:
    """Build a table of `schema` from some of its columns; those not given are null.

    `rows` is needed only when no column is given.
    """
    if unknown := set(columns) - set(schema.names):
        raise KeyError(f"not in the schema: {sorted(unknown)}")
    length = rows if rows is not None else len(next(iter(columns.values())))
    absent = [f for f in schema if f.name not in columns]
    nulls = pa.nulls(length, pa.struct(absent))  # the fields share its memory
    filled = {name: _cast(column, schema.field(name).type) for name, column in columns.items()}
    filled |= {f.name: nulls.field(f.name) for f in absent}
    return pa.table({name: filled[name] for name in schema.names}, schema=schema)


def _cast(column: Any, kind: pa.DataType) -> pa.Array | pa.ChunkedArray:  # noqa: ANN401 - any sequence
    coded = pa.types.is_dictionary(kind)
    if not isinstance(column, (pa.Array, pa.ChunkedArray)):
        column = pa.array(column, kind.value_type if coded else kind)
    if column.type == kind:
        return column
    if coded and not pa.types.is_dictionary(column.type):
        return column.cast(kind.value_type).dictionary_encode()
    return column.cast(kind)


_INTS = pa.list_(pa.int64())
_TEXTS = pa.list_(pa.string())

OLD_RECORD = pa.schema(
    {
        "kShortName": pa.string(),  # never empty
        "kDuration": pa.int64(),  # ns
        "layer": _TEXTS,  # outermost first, as are all lists here
        "trace": _TEXTS,  # file:line, the framework's frames left out
        "reprMarkers": _TEXTS,
        "marker": _TEXTS,  # raw op texts
        "seqMarker": _TEXTS,  # raw texts of PyTorch's own ranges
        "seqId": _INTS,
        "subSeqId": pa.int64(),
        "altSeqId": _INTS,
        "dir": pa.string(),  # fprop, bprop, optim, comm, copy, or empty if unknown
        "mod": _TEXTS,
        "op": _TEXTS,
        "tid": pa.int64(),
        "device": pa.int64(),
        "stream": pa.int64(),
        "grid": _INTS,
        "block": _INTS,
        "kLongName": pa.string(),
    }
)
"""The 19 keys of the original's net.dict, in its order; always present."""

RECORD = pa.schema(
    [
        *OLD_RECORD,
        pa.field("kind", pa.string()),  # one of KINDS
        pa.field("start", pa.int64()),  # ns
        pa.field("end", pa.int64()),  # ns
        pa.field("launch", _INTS),  # start and end of the API call, ns
        pa.field("pid", pa.int64()),
        pa.field("corrId", pa.int64()),
        pa.field("rank", pa.int64()),
        pa.field("window", pa.int64()),  # from 0, by process; of captures that hold several
        pa.field("opId", pa.int64()),  # the op call that launched it
        pa.field("callIds", _INTS),  # one per text of marker, then of seqMarker; ascending = inward
        pa.field("sizes", pa.list_(_INTS)),  # per input tensor
        pa.field("dtypes", _TEXTS),  # per input tensor; empty text where not known
        pa.field("bytes", pa.int64()),
        pa.field("regs", pa.int64()),
        pa.field("smem", pa.int64()),
        pa.field("gpu", pa.string()),
        pa.field("collective", pa.string()),  # JSON of COLLECTIVE
        pa.field("counters", pa.string()),  # JSON of COUNTERS
        pa.field("recomputed", pa.int64()),  # 1: forward work that the backward pass does again
        pa.field("via", pa.string()),  # one of VIAS: how its op was found; null: it was not
        pa.field("replay", pa.int64()),  # launch of a graph that it is part of, from 0
        pa.field("resultSize", _INTS),  # of its op call's result, where calls inside show it
        pa.field("originalName", pa.string()),  # of a copy or fill in a trace of torch.profiler
        pa.field("servingStep", pa.string()),  # the range of vLLM's or SGLang's step around it
        pa.field("step", pa.int64()),  # from 0, by process; where ranges mark steps
        pa.field("stepRange", pa.string()),  # the range that marks it
        # For a backward kernel, what is known of its forward call:
        pa.field("fwdMarker", _TEXTS),
        pa.field("fwdSeqMarker", _TEXTS),  # without their numbers
        pa.field("fwdMod", _TEXTS),
        pa.field("fwdOp", _TEXTS),
        pa.field("fwdLayer", _TEXTS),
        pa.field("fwdTrace", _TEXTS),
    ]
)
"""One row per activity, in GPU-start order. New keys are absent where they are not known."""

PARQUET = pa.schema(
    [
        *RECORD,
        pa.field("seqTemplate", _TEXTS),  # seqMarker without its numbers, which takes long to find
    ]
)
"""The columns of records as Parquet: those of `RECORD`, and one derived from them."""
