"""rocpd: the SQLite database of AMD's rocprofv3 (ROCm 6.4 and later), schemas 3 and 4.

The only package that knows its schema. The file also holds the host's name, the environment and the
command line, which are never read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyprof import schema
from pyprof.arrays import MISSING, ints, or_null, set_column
from pyprof.readers import cupti
from pyprof.readers.rocpd import agents, counters, host
from pyprof.readers.rocpd.recording import Processes, Rows, recordings, suffixes
from pyprof.readers.sqlite.tables import Database
from pyprof.readers.validate import in_order

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyprof.arrays import Int64Array, Mask
    from pyprof.readers.rocpd.agents import Agents
    from pyprof.readers.rocpd.host import Host
    from pyprof.readers.rocpd.recording import Recording


FORMAT = "a rocpd database of rocprofv3 (.db)"
DATABASE = True

TELLS_RANK = False


def sniff(path: Path, head: bytes) -> bool:
    """Recognise a rocpd file by its tables of GPU work."""
    del head
    return bool(suffixes(Database(path).tables()))


def read(path: Path) -> schema.Capture:
    """Read the kernels, copies, API calls and ranges of a rocpd file."""
    db = Database(path)
    numbers = Processes()
    several, gpus, parts = [], [], []
    for number, recording in enumerate(recordings(db)):
        known = agents.Agents(recording)
        side = host.read(recording, numbers.by_id(number, recording))
        parts += [kernels(recording, known, side), copies(recording, known, side)]
        gpus.append(known)
        several.append(side)
    activities = in_order(cupti.concat(parts))
    joined = _join_hosts(several)
    return schema.Capture(
        tool="rocpd",
        version=_version(db),
        activities=activities,
        devices=agents.table(gpus),
        warnings=(*numbers.warnings(), *_warnings(activities, joined)),
        **joined,
    )


def identity(path: Path) -> schema.Identity:
    """Return the processes with GPU work, in the order of the devices that they use first."""
    used = []
    numbers = Processes()
    for number, recording in enumerate(recordings(Database(path))):
        known, pid = agents.Agents(recording), numbers.by_id(number, recording)
        for table, agent in (("kernel_dispatch", "agent_id"), ("memory_copy", "dst_agent_id")):
            spans = recording.spans(table, agent)  # of which each pair is needed only once
            rows = spans.group_by(["pid", agent], use_threads=False).aggregate([])
            process = pid(ints(rows.column("pid")))
            known_process = process != MISSING
            devices = known.devices(ints(rows.column(agent)))
            used.append((process[known_process], devices[known_process]))
    return cupti.by_first_device(used)


def _join_hosts(several: list[Host]) -> dict[str, pa.Table]:
    """Concatenate the host's tables of all recordings; each continues the numbers of threads."""
    offset = 0
    parts: dict[str, list[pa.Table]] = {"calls": [], "ranges": [], "threads": []}
    for side in several:
        for name in ("calls", "ranges"):
            table: pa.Table = getattr(side, name)
            thread = pa.array(ints(table.column("thread")) + offset)
            parts[name].append(set_column(table, "thread", thread))
        parts["threads"].append(side.threads)
        offset += side.threads.num_rows
    return {name: cupti.concat(tables) for name, tables in parts.items()}


def _version(db: Database) -> str | None:
    for suffix in suffixes(db.tables()):
        rows = db.read(f"rocpd_metadata{suffix}", {"tag": str, "value": str}).to_pylist()
        for row in rows:
            if row["tag"] == "schema_version":
                return f"schema {row['value']}"
    return None


def _warnings(activities: pa.Table, joined: dict[str, pa.Table]) -> Iterator[str]:
    if not joined["ranges"].num_rows:
        yield (
            "the capture has no ROCTx ranges, so kernels cannot be tied to ops; call pyprof.init() "
            f"in the script and capture with {_COMMAND}"
        )
    measured = activities.column("counters")
    if measured.null_count < len(measured):
        yield counters.SERIAL
    if activities.num_rows and not joined["calls"].num_rows:
        yield (
            "no launch is in the capture, for the calls of HIP were not recorded; capture with "
            f"{_COMMAND}"
        )


_COMMAND = "rocprofv3 --kernel-trace --memory-copy-trace --hip-runtime-trace --marker-trace"


_SIZES = tuple(f"{what}_size_{axis}" for what in ("workgroup", "grid") for axis in "xyz")
_REGISTERS = ("arch_vgpr_count", "accum_vgpr_count")
_LARGEST = (1 << 31) - 1
"""Larger sizes are damage, and fit no int32."""
_DIRECTIONS = {
    "HOST_TO_DEVICE": "HtoD",
    "DEVICE_TO_HOST": "DtoH",
    "DEVICE_TO_DEVICE": "DtoD",
    "HOST_TO_HOST": "HtoH",
}


def kernels(recording: Recording, known: Agents, side: Host) -> pa.Table:
    """Read the kernel dispatches, each once, in the schema's columns."""
    rows = recording.spans("kernel_dispatch", "kernel_id", "group_segment_size", *_SIZES)
    name, registers = _symbols(recording, ints(rows.column("kernel_id")))
    columns: dict[str, object] = {
        **_base_columns(rows, schema.KERNEL, side),
        "device": or_null(known.devices(ints(rows.column("agent_id")))),
        "name": name,
        "regs": or_null(registers),
        "smem": rows.column("group_segment_size"),
        **_blocks(rows),
    }
    if (measured := counters.of_dispatches(recording, rows)) is not None:
        columns["counters"] = measured
    return schema.table(schema.ACTIVITIES, columns)


def copies(recording: Recording, known: Agents, side: Host) -> pa.Table:
    """Read the memory copies, with their directions and bytes."""
    rows = recording.spans("memory_copy", "size", "name_id", "dst_agent_id", "src_agent_id")
    target, origin = (
        known.devices(ints(rows.column(name))) for name in ("dst_agent_id", "src_agent_id")
    )
    listed = (known.are_listed(ints(rows.column(f"{end}_agent_id"))) for end in ("dst", "src"))
    original = recording.strings.names(ints(rows.column("name_id")), "")
    columns = {
        **_base_columns(rows, schema.MEMCPY, side),
        "device": or_null(np.where(origin == MISSING, target, origin)),
        "name": _copy_names(original, target, origin, np.logical_and(*listed)),
        "original_name": original,
        "bytes": rows.column("size"),
    }
    return schema.table(schema.ACTIVITIES, columns)


def _base_columns(rows: pa.Table, kind: int, side: Host) -> dict[str, object]:
    streams, queues = rows.column("stream_id"), rows.column("queue_id")
    stream_count, queue_count = (len(pc.unique(column)) for column in (streams, queues))
    streams = queues if stream_count <= 1 < queue_count else streams
    return {
        "kind": np.full(rows.num_rows, kind, np.int8),
        "start": rows.column("start"),
        "end": rows.column("end"),
        "pid": or_null(side.pid(ints(rows.column("pid")))),
        "stream": streams,
        "corr": side.events.links(ints(rows.column("event_id"))),
    }


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
    name = encoded.take(pa.array(index))
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
    original: pa.DictionaryArray, target: Int64Array, origin: Int64Array, ends_known: Mask
) -> pa.DictionaryArray:
    """Name copies as for other tools, by the tool's name or, without one, by their ends."""
    stated = [
        next((ours for theirs, ours in _DIRECTIONS.items() if theirs in name), None)
        for name in original.dictionary.to_pylist()
    ]
    by_ends = np.where(origin == MISSING, 0, 2) + np.where(target == MISSING, 0, 1)
    code = original.indices.to_numpy() * len(_BY_ENDS) + np.where(
        ends_known, by_ends, len(_BY_ENDS) - 1
    )
    distinct, index = np.unique(code.astype(np.int64), return_inverse=True)
    names = []
    for each in distinct.tolist():
        direction = stated[each // len(_BY_ENDS)] or _BY_ENDS[each % len(_BY_ENDS)]
        names.append(f"[CUDA memcpy {direction}]" if direction else "[CUDA memcpy]")
    return pa.array(names, pa.string()).dictionary_encode().take(pa.array(index))


_BY_ENDS = ("HtoH", "HtoD", "DtoH", "DtoD", "")
"""By whether a GPU is the origin (2), and whether one is the target (1); last, if unknown."""
