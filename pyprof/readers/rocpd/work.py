"""The GPU work of a recording: kernel dispatches and memory copies."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyprof import schema
from pyprof.arrays import MISSING, ints, numbered
from pyprof.readers.rocpd import counters
from pyprof.readers.rocpd.recording import Rows

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyprof.arrays import Int64Array
    from pyprof.readers.rocpd.agents import Agents
    from pyprof.readers.rocpd.host import Host
    from pyprof.readers.rocpd.recording import Recording

_SIZES = tuple(f"{what}_size_{axis}" for what in ("workgroup", "grid") for axis in "xyz")
_REGISTERS = ("arch_vgpr_count", "accum_vgpr_count")
_LARGEST = (1 << 31) - 1
_DIRECTIONS = {
    "HOST_TO_DEVICE": "HtoD",
    "DEVICE_TO_HOST": "DtoH",
    "DEVICE_TO_DEVICE": "DtoD",
    "HOST_TO_HOST": "HtoH",
}


def kernels(
    recording: Recording,
    agents: Agents,
    host: Host,
    pid: Callable[[Int64Array], Int64Array],
) -> pa.Table:
    """Read the kernel dispatches, each once, in the schema's columns."""
    rows = recording.spans("kernel_dispatch", "kernel_id", "group_segment_size", *_SIZES)
    name, registers = _symbols(recording, ints(rows.column("kernel_id")))
    columns: dict[str, object] = {
        **_base(rows, schema.KERNEL, host, pid),
        "device": _or_null(agents.devices(ints(rows.column("agent_id")))),
        "name": name,
        "regs": _or_null(registers),
        "smem": rows.column("group_segment_size"),
        **_blocks(rows),
    }
    if (measured := counters.of_dispatches(recording, rows)) is not None:
        columns["counters"] = measured
    return schema.table(schema.ACTIVITIES, columns)


def copies(
    recording: Recording,
    agents: Agents,
    host: Host,
    pid: Callable[[Int64Array], Int64Array],
) -> pa.Table:
    """Read the memory copies, with their directions and bytes."""
    rows = recording.spans("memory_copy", "size", "name_id", "dst_agent_id", "src_agent_id")
    target, origin = (
        agents.devices(ints(rows.column(name))) for name in ("dst_agent_id", "src_agent_id")
    )
    original = recording.strings.names(ints(rows.column("name_id")), "")
    columns = {
        **_base(rows, schema.MEMCPY, host, pid),
        "device": _or_null(np.where(origin == MISSING, target, origin)),
        "name": _copy_names(original, target, origin),
        "original_name": original,
        "bytes": rows.column("size"),
    }
    return schema.table(schema.ACTIVITIES, columns)


def _base(
    rows: pa.Table, kind: int, host: Host, pid: Callable[[Int64Array], Int64Array]
) -> dict[str, object]:
    return {
        "kind": np.full(rows.num_rows, kind, np.int8),
        "start": rows.column("start"),
        "end": rows.column("end"),
        "pid": _or_null(pid(ints(rows.column("pid")))),
        "stream": _streams(rows),
        "corr": host.events.links(ints(rows.column("event_id"))),
    }


def _streams(rows: pa.Table) -> pa.ChunkedArray:
    """Return the stream of each row; its queue where streams were not recorded."""
    streams, queues = rows.column("stream_id"), rows.column("queue_id")
    stream_count, queue_count = (len(pc.unique(column)) for column in (streams, queues))
    return queues if stream_count <= 1 < queue_count else streams


def _symbols(recording: Recording, ids: Int64Array) -> tuple[pa.DictionaryArray, Int64Array]:
    """Return the name of each kernel, and its registers per work item; MISSING if unknown."""
    columns = {"id": int, "display_name": str, "kernel_name": str}
    rows = recording.read("kernel_symbol", {**columns, **dict.fromkeys(_REGISTERS, int)})
    names = [
        row["display_name"] or (row["kernel_name"] or "").removesuffix(".kd") or "unknown kernel"
        for row in rows.select([*columns]).to_pylist()
    ]
    place = Rows(ints(rows.column("id"))).rows(ids)
    index = np.where(place == MISSING, len(names), place).astype(np.int32)
    encoded = pa.array([*names, "unknown kernel"], pa.string()).dictionary_encode()
    name = pa.DictionaryArray.from_arrays(encoded.indices.take(pa.array(index)), encoded.dictionary)
    known = [ints(rows.column(each)) for each in _REGISTERS]
    total = np.where(known[0] == MISSING, MISSING, known[0] + np.maximum(known[1], 0))
    return name, np.append(total, MISSING)[place]


def _blocks(rows: pa.Table) -> dict[str, pa.Array]:
    """Return grids in blocks: the file counts work items."""
    sizes: dict[str, pa.Array] = {}
    for axis in "xyz":
        items, group = (ints(rows.column(f"{what}_size_{axis}")) for what in ("grid", "workgroup"))
        known = (items >= 0) & (group > 0) & (items <= _LARGEST) & (group <= _LARGEST)
        blocks = -(-items // np.where(known, group, 1))
        sizes[f"grid_{axis}"] = pa.array(blocks, mask=~known)
        sizes[f"block_{axis}"] = pa.array(group, mask=~known)
    return sizes


def _copy_names(
    original: pa.DictionaryArray, target: Int64Array, origin: Int64Array
) -> pa.DictionaryArray:
    """Name copies as for other tools, by the tool's name or, without one, by their ends."""
    stated = [_direction(name) for name in original.dictionary.to_pylist()]
    by_ends = np.where(origin == MISSING, 0, 2) + np.where(target == MISSING, 0, 1)
    code = original.indices.to_numpy() * len(_BY_ENDS) + by_ends
    distinct, place = numbered(code.astype(np.int64))
    names = []
    for each in distinct.tolist():
        direction = stated[each // len(_BY_ENDS)] or _BY_ENDS[each % len(_BY_ENDS)]
        names.append(f"[CUDA memcpy {direction}]")
    encoded = pa.array(names, pa.string()).dictionary_encode()
    return pa.DictionaryArray.from_arrays(encoded.indices.take(pa.array(place)), encoded.dictionary)


_BY_ENDS = ("HtoH", "HtoD", "DtoH", "DtoD")
"""By whether a GPU is the origin (2), and whether one is the target (1)."""


def _direction(name: str) -> str | None:
    return next((ours for theirs, ours in _DIRECTIONS.items() if theirs in name), None)


def _or_null(values: Int64Array) -> pa.Array:
    return pa.array(values, mask=values == MISSING)
