"""What an nsys export states about itself and its GPUs: version, devices, metrics, warnings.

Environment variables, host and user names are in these files too; they are never read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyprof import schema
from pyprof.arrays import ints
from pyprof.readers.device_metrics import meaning, samples
from pyprof.readers.spans import LONGEST_NS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyprof.readers.device_metrics import Meaning
    from pyprof.readers.sqlite.tables import Database


_META = ("META_DATA_EXPORT", "EXPORT_META_DATA")  # from 2024.2 on; 2022.1 to 2023.4
_SESSION = "TARGET_INFO_SESSION_START_TIME"  # from 2022.1 on
_GPUS = ("TARGET_INFO_GPU", "TARGET_INFO_CUDA_GPU")  # from 2021.2 on; 2020.3
_CUDA_DEVICES = "TARGET_INFO_CUDA_DEVICE"
_GPU_COLUMNS = {
    # our name: nsys's names, newest first
    "device": ("cuDevice", "id"),
    "sm_count": ("smCount", "numMultiprocessors"),
    "clock_hz": ("clockRate", "coreClockRate"),
    "bandwidth": ("memoryBandwidth", "globalMemoryBandwidth"),
    "cc_major": ("computeMajor", "computeCapabilityMajor"),
    "cc_minor": ("computeMinor", "computeCapabilityMinor"),
    "memory_bytes": ("totalMemory", "globalMemorySize"),
}
_LOSS = (
    r"(?i)\b(?:lost|dropped|overflow\w*|discarded|exceeded|incomplete)\b"
    r"|not all (?:CUDA|NVTX) .*(?:collected|recorded)"
)
"""What nsys's messages about lost data have in common."""
_NS_PER_MS = 1e6


def version(db: Database) -> str | None:
    """Return the version of nsys that exported the file, if stated (2022.1 and later)."""
    for table in _META:
        if table in db.tables():
            rows = db.read(table, {"name": str, "value": str})
            said = dict(zip(*(column.to_pylist() for column in rows.columns), strict=True))
            if "EXPORT_PRODUCT_VERSION" in said:
                return str(said["EXPORT_PRODUCT_VERSION"])
    return None


def began_ns(db: Database) -> int | None:
    """Return when the session began, ns since 1970, if stated; its clock then showed 0."""
    if _SESSION not in db.tables():
        return None
    began = ints(db.read(_SESSION, {"utcEpochNs": int}).column("utcEpochNs"))
    return int(began[0]) if len(began) and began[0] > 0 else None


def devices(db: Database) -> pa.Table:
    """Read the GPUs by CUDA's numbers; null for anything not stated.

    `TARGET_INFO_GPU` lists the system's GPUs: display adapters and integrated ones, too, which may
    all have the number 0. `TARGET_INFO_CUDA_DEVICE` (from 2025.1 on) maps each process's CUDA
    devices to them; without it, the rows with a compute capability are CUDA's.
    """
    gpus = _gpus(db)
    capable = {gpu["device"] for gpu in gpus if gpu["cc_major"]}
    gpus = [gpu for gpu in gpus if gpu["cc_major"] or gpu["device"] not in capable]
    mapped = _map_devices(db, {gpu["id"]: gpu for gpu in gpus})
    rows = [*mapped.values(), *(gpu for gpu in gpus if gpu["device"] not in mapped)]
    return pa.Table.from_pylist(rows, schema.DEVICES)


def _gpus(db: Database) -> list[dict[str, Any]]:
    """Read the rows of `DEVICES`, each with the `id` by which other tables refer to the GPU."""
    table = next((name for name in _GPUS if name in db.tables()), _GPUS[0])
    columns = {name: int for names in _GPU_COLUMNS.values() for name in names}
    gpus = []
    for index, row in enumerate(db.read(table, {"id": int, "name": str, **columns}).to_pylist()):
        stated = {
            ours: next((row[name] for name in names if row[name] is not None), None)
            for ours, names in _GPU_COLUMNS.items()
        }
        gpu = {name: value for name, value in stated.items() if name in _MAY_BE_ZERO}
        gpu |= {
            name: value if value and value > 0 else None
            for name, value in stated.items()
            if name not in gpu
        }
        gpu["device"] = index if gpu["device"] is None else gpu["device"]
        gpus.append({**gpu, "id": row["id"], "name": row["name"]})
    return gpus


def _map_devices(db: Database, gpus: Mapping[int, dict[str, Any]]) -> dict[int, dict[str, Any]]:
    """Map CUDA's number of a device to its row; what processes disagree on is null.

    A process may see only some of a GPU's SMs (MIG, MPS): recent exports state how many.
    """
    mapped: dict[int, dict[str, Any]] = {}
    rows = db.read(_CUDA_DEVICES, {"gpuId": int, "cudaId": int, "numMultiprocessors": int})
    for gpu, number, sm_count in zip(*_lists(rows), strict=True):
        if gpu not in gpus or number is None:
            continue
        device = {**gpus[gpu], "device": number, "id": None}
        if sm_count is not None and sm_count > 0:
            device["sm_count"] = sm_count
        other = mapped.get(number, device)
        mapped[number] = {key: device[key] if device[key] == other[key] else None for key in device}
    return mapped


def cuda_numbers(db: Database) -> dict[int, int]:
    """Map nsys's own numbers of GPUs to CUDA's, which kernels have."""
    numbers: dict[int, int] = {}
    for table, *columns in ((_GPUS[0], "id", "cuDevice"), (_CUDA_DEVICES, "gpuId", "cudaId")):
        rows = db.read(table, dict.fromkeys(columns, int)).drop_null()
        numbers |= zip(*_lists(rows), strict=True)
    return numbers


_MAY_BE_ZERO = ("device", "cc_minor")
"""Columns in which 0 is a value; elsewhere it stands for unknown."""


def warnings(db: Database, activities: pa.Table, events: pa.Table) -> Iterator[str]:
    """Return warnings for the user about what this capture lacks."""
    kinds = ints(activities.column("kind"), 0)
    if (graphs := kinds == schema.GRAPH).any():
        yield _graph_warning(activities, graphs)
    if not events.num_rows:
        yield (
            "the capture has no NVTX ranges, so kernels cannot be tied to ops; "
            "call pyprof.init() in the script and capture with nsys profile -t cuda,nvtx"
        )
    if shared := _shared_gpus(db, activities):
        yield shared
    if faults := _page_faults(db):
        yield faults
    messages = db.read("DIAGNOSTIC_EVENT", {"text": str}).column("text").to_pylist()
    for text in dict.fromkeys(messages):
        if pc.match_substring_regex(text, _LOSS).as_py():
            yield f"message from nsys: {' '.join(text.split())}"


def _shared_gpus(db: Database, activities: pa.Table) -> str | None:
    """Return a warning about GPUs that several processes may have used; None if there are none.

    Each process numbers the devices that it sees. Only `TARGET_INFO_CUDA_DEVICE` tells which GPU
    is meant; without it, equal numbers may be one GPU.
    """
    users = activities.select(["pid", "device"])
    used = users.group_by(users.column_names, use_threads=False).aggregate([])
    rows = db.read(_CUDA_DEVICES, {"pid": int, "cudaId": int, "gpuId": int}).drop_null()
    gpu_of = {(pid, number): gpu for pid, number, gpu in zip(*_lists(rows), strict=True)}
    processes: dict[tuple[int, int | None], set[int]] = {}
    for pid, device in zip(*_lists(used.drop_null()), strict=True):
        processes.setdefault((device, gpu_of.get((pid, device))), set()).add(pid)
    shared = {device for (device, _), pids in processes.items() if len(pids) > 1}
    if not shared:
        return None
    return (
        f"several processes used GPU {', '.join(map(str, sorted(shared)))}: busy and idle times "
        "are those of a process, not of the GPU, unless each saw another GPU under that number "
        "(CUDA_VISIBLE_DEVICES)"
    )


def _lists(rows: pa.Table) -> list[list[Any]]:
    return [column.to_pylist() for column in rows.columns]


_GPU_FAULTS, _CPU_FAULTS = "CUDA_UM_GPU_PAGE_FAULT_EVENTS", "CUDA_UM_CPU_PAGE_FAULT_EVENTS"
"""Tables of page faults of unified memory. A row is several faults on GPUs, one on CPUs."""


def _page_faults(db: Database) -> str | None:
    """Return a warning about the page faults of unified memory; None if none was recorded."""
    counts = ints(db.read(_GPU_FAULTS, {"numberOfPageFaults": int}).column(0), 1)
    on_gpu = int(counts[(counts > 0) & (counts < _MAX_FAULTS)].sum())
    on_cpu = db.read(_CPU_FAULTS, {"start": int}).num_rows
    if not on_gpu + on_cpu:
        return None
    return (
        f"unified memory: {on_gpu:,} page faults of GPUs and {on_cpu:,} of CPUs; kernels wait for "
        "the pages, which are moved as copies, and their own times include that"
    )


_MAX_FAULTS = 1 << 32
"""Maximum for one row; more is damage."""


def _graph_warning(activities: pa.Table, graphs: np.ndarray) -> str:
    starts, ends = (ints(activities.column(name), 0) for name in ("start", "end"))
    lasted = np.clip(ends - starts, 0, LONGEST_NS)  # impossible times are reported elsewhere
    hidden_ms = int(lasted[graphs].sum()) / _NS_PER_MS
    shown_ms = int(lasted[~graphs].sum()) / _NS_PER_MS
    return (
        f"CUDA graph launches ({int(graphs.sum())}) contain {hidden_ms:,.2f} ms of GPU time "
        f"whose kernels are not in the capture ({shown_ms:,.2f} ms is outside them); to see them, "
        "capture again with nsys profile --cuda-graph-trace=node"
    )


# --- sampled metrics ------------------------------------------------------------------------------
_VALUES, _NAMES = "GPU_METRICS", "TARGET_INFO_GPU_METRICS"
_GPU = 0xFF
"""The bits of a type's id that are the GPU's number."""
_NO_ID = -1


def metrics(db: Database) -> pa.Table:
    """Read the samples of known metrics (`--gpu-metrics-devices`); an empty table if none."""
    if not {_VALUES, _NAMES} <= db.tables():
        return schema.SAMPLES.empty_table()
    meanings = _meanings(db)
    ids = sorted({metric for _, metric in meanings})
    if not ids:
        return schema.SAMPLES.empty_table()
    time = "timestamp" if "timestamp" in db.columns(_VALUES) else "rawTimestamp"
    columns: dict[str, type] = {time: int, "typeId": int, "metricId": int, "value": int}
    if not set(columns) <= db.columns(_VALUES):
        return schema.SAMPLES.empty_table()
    wanted = pa.array(ids, pa.int64())
    rows = db.read(
        _VALUES, columns, lambda rows: rows.filter(pc.is_in(rows.column("metricId"), wanted))
    )
    kind, metric = (ints(rows.column(name), _NO_ID) for name in ("typeId", "metricId"))
    which = np.full(len(kind), -1)
    for row, (of_kind, of_metric) in enumerate(meanings):
        which[(kind == of_kind) & (metric == of_metric)] = row
    stamp, value = (ints(rows.column(name), _NO_ID) for name in (time, "value"))
    used = np.flatnonzero((which >= 0) & (stamp >= 0))
    gpu = kind[used] & _GPU
    device = gpu.copy()
    for own, cuda in cuda_numbers(db).items():
        if cuda >= 0:
            device[gpu == own] = cuda
    values = value[used].astype(np.float64)
    return samples(device, stamp[used], [*meanings.values()], which[used], values)


def _meanings(db: Database) -> dict[tuple[int, int], Meaning]:
    """Return the meaning of each metric, by type and id, which differ from chip to chip."""
    rows = db.read(_NAMES, {"typeId": int, "metricId": int, "metricName": str})
    named = zip(
        ints(rows.column("typeId"), _NO_ID).tolist(),
        ints(rows.column("metricId"), _NO_ID).tolist(),
        rows.column("metricName").to_pylist(),
        strict=True,
    )
    return {(kind, metric): entry for kind, metric, name in named if (entry := meaning(name or ""))}
