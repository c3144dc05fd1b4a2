"""Exports of Nsight Systems, version by version."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.capture_files.model import (
    CUPTI,
    SECRETS,
    Node,
    Range,
    Rows,
    Strings,
    Table,
    Value,
    Work,
    global_id,
    number_work,
    write_tables,
)


@dataclass(frozen=True)
class Layout:
    """How one version of nsys lays out its export."""

    meta: str | None = "META_DATA_EXPORT"
    version: str = "2024.6.2.225"
    gpus: str | None = "TARGET_INFO_GPU"
    kernel: tuple[str, ...] = ("greenContextId", "mangledName", "graphNodeId")
    """Columns of the kernel table that not every version has."""
    registered: bool = False
    """Texts are registered strings: `text` is NULL, `textId` set."""
    suffix: str = ""
    """Of the versioned tables' names: `_V2`."""
    twice: bool = False
    """API rows are written twice (eventClass 67)."""
    global_pid: bool = True
    lazy: bool = True
    """Tables without rows do not exist."""
    nodes: str = "CUDA_GRAPH_NODE_EVENTS"
    """The table of times at which nodes of graphs were made."""
    originals: bool = True
    """It has the node that each was cloned from."""
    more: Mapping[str, Rows] = field(default_factory=dict)
    """Tables of other tools (DLProf)."""


NSYS_2024 = Layout()
LAYOUTS = {
    "2020.3": Layout(meta=None, gpus="TARGET_INFO_CUDA_GPU", kernel=("graphNodeId",)),
    "2021.2": Layout(meta=None, kernel=("graphNodeId", "sharedMemoryLimitConfig")),
    "2022.4": Layout("EXPORT_META_DATA", "2022.4.2.1", kernel=("mangledName",)),
    "2024.6": NSYS_2024,
    "2026.2": Layout(version="2026.2.1.1", gpus=None, kernel=("greenContextId", "qmd", "clusterX")),
    "dlprof": Layout(
        meta=None,
        kernel=("kernel_name", "long_kernel_name"),
        more={"SystemInfo": [{"name": "user", "value": SECRETS[1]}]},
    ),
    "registered strings": Layout(registered=True),
    "_V2 tables": Layout(suffix="_V2"),
    "duplicate API rows": Layout(twice=True),
    "no globalPid": Layout(global_pid=False),
    "all tables exist": Layout(lazy=False),
}


_BASE = ("start", "end", "deviceId", "contextId", "streamId", "correlationId", "globalPid")
_KERNEL = (
    *("demangledName", "shortName", "registersPerThread", "gridX", "gridY", "gridZ"),
    *("blockX", "blockY", "blockZ", "staticSharedMemory", "dynamicSharedMemory", "gridId"),
)
_RUNTIME = ("start", "end", "eventClass", "globalTid", "correlationId", "nameId", "returnValue")
_NVTX = (
    *("start", "end", "eventType", "rangeId", "category", "color", "text", "globalTid"),
    *("endGlobalTid", "textId", "domainId", "jsonText", "jsonTextId", "binaryData"),
)
_GPU = {
    "TARGET_INFO_GPU": (
        *("id", "name", "totalMemory", "memoryBandwidth", "clockRate", "smCount", "cuDevice"),
        *("computeMajor", "computeMinor"),
    ),
    "TARGET_INFO_CUDA_GPU": (
        *("id", "name", "globalMemorySize", "globalMemoryBandwidth", "coreClockRate"),
        *("numMultiprocessors", "pid", "computeCapabilityMajor", "computeCapabilityMinor"),
    ),
}
_GPU_VALUES = (80 << 30, 2_039_000_000_000, 1_410_000_000, 108, 0, 8, 0)


def nsys_db(
    path: Path,
    work: Iterable[Work] = (),
    ranges: Iterable[Range] = (),
    layout: Layout = NSYS_2024,
    nodes: Iterable[Node] = (),
) -> Path:
    strings = Strings()
    numbered = number_work(work)
    pid = ("globalPid",) if layout.global_pid else ()
    base = (*_BASE[:4], *(c for c in layout.kernel if c.startswith("green")), *_BASE[4:6], *pid)
    tables: dict[str, Table] = {
        "KERNEL": (
            (*base, *_KERNEL, *(c for c in layout.kernel if not c.startswith("green"))),
            [kernel_columns(n, w, strings) for n, w in numbered if w.kind == "kernel"],
        ),
        "MEMCPY": ((*base, "bytes", "copyKind", "graphNodeId"), _others(numbered, "memcpy")),
        "MEMSET": ((*base, "value", "bytes", "graphNodeId"), _others(numbered, "memset")),
        "GRAPH_TRACE": ((*base, "graphId", "graphExecId"), _others(numbered, "graph")),
        "RUNTIME": (_RUNTIME, _calls(numbered, strings, twice=layout.twice)),
    }
    tables = {f"{CUPTI}{name}{layout.suffix}": table for name, table in tables.items()}
    events = [_range(entry, strings, registered=layout.registered) for entry in ranges]
    tables[f"NVTX_EVENTS{layout.suffix}"] = (_NVTX, events)
    tables[layout.nodes] = _nodes(nodes, strings, originals=layout.originals)
    tables = {name: table for name, table in tables.items() if table[1] or not layout.lazy}
    tables["StringIds"] = (("id", "value"), [{"id": i, "value": t} for t, i in strings.ids.items()])
    tables |= {name: (tuple(rows[0]), rows) for name, rows in layout.more.items()}
    return write_tables(path, tables | _about(layout))


def _about(layout: Layout) -> dict[str, Table]:
    tables: dict[str, Table] = {
        "TARGET_INFO_SYSTEM_ENV": (
            ("name", "value"),
            [{"name": f"entry {n}", "value": secret} for n, secret in enumerate(SECRETS)],
        ),
        "META_DATA_CAPTURE": (("name", "value"), [{"name": "HOST", "value": SECRETS[0]}]),
    }
    if layout.meta:
        about = {"EXPORT_PRODUCT_VERSION": layout.version, "EXPORT_USER": SECRETS[1]}
        rows: Rows = [{"name": name, "value": value} for name, value in about.items()]
        tables[layout.meta] = (("name", "value"), rows)
    if layout.gpus:
        columns = _GPU[layout.gpus]
        values = (0, "NVIDIA A100-SXM4-80GB", *_GPU_VALUES)
        row: dict[str, Value] = dict(zip(columns, values, strict=True))
        tables[layout.gpus] = (columns, [row])
    return tables


def base_columns(number: int, work: Work) -> dict[str, Value]:
    return {
        "start": work.at[0],
        "end": work.at[1],
        "deviceId": work.device,
        "contextId": 1,
        "streamId": work.stream,
        "correlationId": number,
        "globalPid": global_id(work.pid),
        "graphNodeId": work.node,
    }


def kernel_columns(number: int, work: Work, strings: Strings) -> dict[str, Value]:
    axes = {f"grid{a}": size for a, size in zip("XYZ", work.grid, strict=True)}
    axes |= {f"block{a}": size for a, size in zip("XYZ", work.block, strict=True)}
    return {
        **base_columns(number, work),
        "demangledName": strings(work.name),
        "shortName": strings("a short name"),
        "mangledName": strings("_Z1x"),
        "registersPerThread": work.regs,
        "staticSharedMemory": work.smem // 4,
        "dynamicSharedMemory": work.smem - work.smem // 4,
        **axes,
    }


def _others(numbered: Iterable[tuple[int, Work]], kind: str) -> Rows:
    return [
        {
            **base_columns(number, work),
            "bytes": work.bytes,
            "copyKind": work.copy_kind,
            "value": 0,
            "graphId": 3,
            "graphExecId": 4,
        }
        for number, work in numbered
        if work.kind == kind
    ]


def _calls(numbered: Iterable[tuple[int, Work]], strings: Strings, *, twice: bool) -> Rows:
    rows: Rows = []
    for number, work in numbered:
        if work.call is None:
            continue
        row: dict[str, Value] = {
            "start": work.call[0],
            "end": work.call[1],
            "eventClass": 1 if work.driver else 0,
            "globalTid": global_id(work.pid, work.tid),
            "correlationId": number,
            "nameId": strings(work.api),
            "returnValue": 0,
        }
        rows.append(row)
        if twice:
            rows.append({**row, "eventClass": 67, "nameId": strings(work.api.partition("_v")[0])})
    return rows


def _nodes(nodes: Iterable[Node], strings: Strings, *, originals: bool) -> Table:
    columns = ("start", "end", "eventClass", "globalTid", "nameId", "graphNodeId")
    rows: Rows = [
        {
            "start": node.at,
            "end": node.at,
            "eventClass": 1,
            "globalTid": global_id(node.pid, node.tid),
            "nameId": strings(node.name),
            "graphNodeId": node.id,
            "originalGraphNodeId": node.of,
        }
        for node in nodes
    ]
    return (*columns, *["originalGraphNodeId"] * originals), rows


def _range(entry: Range, strings: Strings, *, registered: bool) -> dict[str, Value]:
    end_tid = global_id(entry.pid, entry.end_tid) if entry.end_tid is not None else None
    return {
        "start": entry.at[0],
        "end": entry.at[1],
        "eventType": entry.style,
        "text": None if registered else entry.text,
        "textId": strings(entry.text) if registered else None,
        "globalTid": global_id(entry.pid, entry.tid),
        "endGlobalTid": end_tid,
        "domainId": entry.domain,
        "jsonText": None if registered else entry.payload,
        "jsonTextId": strings(entry.payload) if registered and entry.payload else None,
        "binaryData": entry.data,
    }
