"""The tables of a rocpd database (schema 3, as ROCm 7 writes them), filled row by row.

Takes the calls that `NsysFile` takes, so that one run can be written as either. Ids of processes
and threads are those of nsys_file.py; names of calls become HIP's.
"""

from __future__ import annotations

import itertools
import json
import operator
from typing import TYPE_CHECKING, Any

from network import Kernel
from nsys_file import new_database

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Sequence
    from pathlib import Path

    from nsys_file import Where

_ROW = "id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, guid TEXT NOT NULL"
_PLACE = "nid INTEGER NOT NULL, pid INTEGER NOT NULL, tid INTEGER"
_EXTRA = "extdata JSONB DEFAULT '{}' NOT NULL"
_TABLES = {
    "string": "string TEXT NOT NULL",
    "info_process": "nid INTEGER, ppid INTEGER, pid INTEGER NOT NULL, command TEXT",
    "info_thread": "nid INTEGER, pid INTEGER NOT NULL, tid INTEGER NOT NULL, name TEXT",
    "info_agent": (
        "nid INTEGER, pid INTEGER, type TEXT, absolute_index INTEGER, logical_index INTEGER,"
        f" type_index INTEGER, name TEXT, product_name TEXT, {_EXTRA}"
    ),
    "info_kernel_symbol": (
        "nid INTEGER, pid INTEGER, code_object_id INTEGER, kernel_name TEXT, display_name TEXT,"
        " group_segment_size INTEGER, sgpr_count INTEGER, arch_vgpr_count INTEGER,"
        f" accum_vgpr_count INTEGER, {_EXTRA}"
    ),
    "event": (
        "category_id INTEGER, stack_id INTEGER, parent_stack_id INTEGER, correlation_id INTEGER,"
        " call_stack JSONB DEFAULT '{}' NOT NULL, line_info JSONB DEFAULT '{}' NOT NULL,"
        f" {_EXTRA}"
    ),
    "region": (
        f"{_PLACE}, start BIGINT NOT NULL, end BIGINT NOT NULL, name_id INTEGER NOT NULL,"
        f" event_id INTEGER, {_EXTRA}"
    ),
    "kernel_dispatch": (
        f"{_PLACE}, agent_id INTEGER NOT NULL, kernel_id INTEGER NOT NULL,"
        " dispatch_id INTEGER NOT NULL, queue_id INTEGER NOT NULL, stream_id INTEGER NOT NULL,"
        " start BIGINT NOT NULL, end BIGINT NOT NULL, private_segment_size INTEGER,"
        " group_segment_size INTEGER, workgroup_size_x INTEGER, workgroup_size_y INTEGER,"
        " workgroup_size_z INTEGER, grid_size_x INTEGER, grid_size_y INTEGER, grid_size_z INTEGER,"
        f" region_name_id INTEGER, event_id INTEGER, {_EXTRA}"
    ),
    "memory_copy": (
        f"{_PLACE}, start BIGINT NOT NULL, end BIGINT NOT NULL, name_id INTEGER NOT NULL,"
        " dst_agent_id INTEGER, src_agent_id INTEGER, size INTEGER NOT NULL, queue_id INTEGER,"
        f" stream_id INTEGER, event_id INTEGER, {_EXTRA}"
    ),
}
_NODE = 1
_FILL = "__amd_rocclr_fillBufferAligned"
_GPU_AGENT = 2
"""The agent of the first GPU; those before it are processors."""


class RocpdFile:
    """A database being written. Use it as a context manager; the file is complete at its end."""

    def __init__(self, path: Path, batch: int = 20_000) -> None:
        """Make the file; `batch` rows of a table are kept before they are written."""
        self._batch = batch
        self._db = new_database(path)
        self._processes: dict[int, _Process] = {}
        self._gpus: list[tuple[Any, ...]] = []
        self.written = {"NVTX_EVENTS": 0}
        """How many ranges there are, as in an nsys file."""

    def __enter__(self) -> RocpdFile:  # noqa: PYI034 - Self needs Python 3.11
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            for process in self._processes.values():
                process.finish(self._gpus)
            self._db.commit()
        self._db.close()

    def gpu(self, device: int, name: str, sms: int, clock_hz: int, bandwidth: int) -> None:
        """Describe a GPU: always an MI300X, whatever the arguments say of another."""
        del name, sms, clock_hz, bandwidth
        stated = {"cu_count": 304, "max_engine_clk_fcompute": 2100, "wave_front_size": 64}
        names = ("gfx942", "AMD Instinct MI300X", json.dumps(stated))
        agent = _GPU_AGENT + device
        self._gpus.append((agent, "GPU", agent, agent, device, *names))

    def range(
        self, start: int, end: int | None, text: str, thread: int, payload: str | None = None
    ) -> None:
        """Add a range of a thread; one that is still open at the end is not recorded."""
        del payload
        if end is not None:
            message = json.dumps({"message": text}, separators=(",", ":"))
            process = self._process(thread)
            event = process.event("MARKER_CORE_RANGE_API", process.next_stack(), message)
            process.region((start, end), thread, "roctxThreadRangeA", event)
            self.written["NVTX_EVENTS"] += 1

    def call(self, start: int, end: int, thread: int, corr: int, name: str) -> None:
        """Add a call of HIP's runtime."""
        process = self._process(thread)
        event = process.event("HIP_RUNTIME_API_EXT", process.stack_of(corr))
        hip = name.replace("cuda", "hip").partition("_v")[0]
        process.region((start, end), thread, hip, event)

    def kernel(self, where: Where, kernel: Kernel) -> None:
        """Add a kernel."""
        process = self._process(where.process)
        event = process.event("KERNEL_DISPATCH", process.stack_of(where.corr))
        items = tuple(map(operator.mul, kernel.grid, kernel.block))
        process.add(
            "kernel_dispatch",
            *(_NODE, process.pid, process.pid, _GPU_AGENT + where.device),
            *(process.symbol(kernel.name), next(process.dispatches), 16 + where.stream),
            *(where.stream, where.start, where.end, 0, 16384),
            *(*kernel.block, *items, process.string(""), event, "{}"),
        )

    def copy_to_device(self, where: Where, size_bytes: int) -> None:
        """Add a copy from the host."""
        process = self._process(where.process)
        event = process.event("MEMORY_COPY", process.stack_of(where.corr))
        name = process.string("MEMORY_COPY_HOST_TO_DEVICE")
        place = (_NODE, process.pid, process.pid, where.start, where.end, name)
        ends = (_GPU_AGENT + where.device, 0)
        process.add("memory_copy", *place, *ends, size_bytes, None, where.stream, event, "{}")

    def clear(self, where: Where, size_bytes: int) -> None:
        """Add a memset, which is a kernel of HIP's."""
        blocks = (-(-size_bytes // 256), 1, 1)
        self.kernel(where, Kernel(_FILL, 0, blocks, (256, 1, 1)))

    def _process(self, thread: int) -> _Process:
        pid = thread >> 24 & 0xFFFFFF
        if pid not in self._processes:
            self._processes[pid] = _Process(self._db, pid, self._batch)
        return self._processes[pid]


class _Process:
    """The recording of one process: tables with a suffix of their own."""

    def __init__(self, db: sqlite3.Connection, pid: int, batch: int) -> None:
        self.pid, self._db, self._batch = pid, db, batch
        self._guid = f"{pid:08x}-e175-7175-b886-1df113061c37"
        self._suffix = "_" + self._guid.replace("-", "_")
        self._rows: dict[str, list[Sequence[Any]]] = {name: [] for name in _TABLES}
        self._ids: dict[str, itertools.count[int]] = {name: itertools.count(1) for name in _TABLES}
        self._strings: dict[str, int] = {}
        self._symbols: dict[str, int] = {}
        self._threads: set[int] = set()
        self._stacks: dict[int, int] = {}
        self._stack = itertools.count(1)
        self.dispatches = itertools.count(1)
        for name, columns in _TABLES.items():
            db.execute(f'CREATE TABLE "rocpd_{name}{self._suffix}" ({_ROW}, {columns})')
        metadata = f"rocpd_metadata{self._suffix}"
        db.execute(f'CREATE TABLE "{metadata}" (id INTEGER PRIMARY KEY, tag TEXT, value TEXT)')
        tags = ((1, "schema_version", "3"), (2, "uuid", self._suffix), (3, "guid", self._guid))
        db.executemany(f'INSERT INTO "{metadata}" VALUES (?, ?, ?)', tags)  # noqa: S608 - our names

    def next_stack(self) -> int:
        return next(self._stack)

    def stack_of(self, corr: int) -> int:
        """Return a new stack id, which a call shares with its work."""
        if corr in self._stacks:
            return self._stacks.pop(corr)
        return self._stacks.setdefault(corr, self.next_stack())

    def string(self, text: str) -> int:
        return self._strings.setdefault(text, len(self._strings) + 1)

    def symbol(self, name: str) -> int:
        return self._symbols.setdefault(name, len(self._symbols) + 1)

    def event(self, category: str, stack: int, extdata: str = "{}") -> int:
        return self.add("event", self.string(category), stack, 0, 0, "{}", "{}", extdata)

    def region(self, span: tuple[int, int], thread: int, name: str, event: int) -> None:
        tid = thread & 0xFFFFFF
        self._threads.add(tid)
        self.add("region", _NODE, self.pid, tid, *span, self.string(name), event, "{}")

    def add(self, table: str, *row: Any) -> int:  # noqa: ANN401 - what SQLite takes
        number = next(self._ids[table])
        self.put(table, number, *row)
        return number

    def put(self, table: str, number: int, *row: Any) -> None:  # noqa: ANN401 - as above
        rows = self._rows[table]
        rows.append((number, self._guid, *row))
        if len(rows) >= self._batch:
            self._flush(table)

    def finish(self, gpus: Sequence[Sequence[Any]]) -> None:
        self.put("info_process", self.pid, _NODE, 1, self.pid, "python train.py")
        for tid in sorted(self._threads | {self.pid}):
            self.put("info_thread", tid, _NODE, self.pid, tid, None)
        self.put("info_agent", 0, _NODE, self.pid, "CPU", 0, 0, 0, "a processor", None, "{}")
        for number, *agent in gpus:
            self.put("info_agent", number, _NODE, self.pid, *agent)
        for name, number in self._symbols.items():
            names = (1, f"{name}.kd", name)
            self.put("info_kernel_symbol", number, _NODE, self.pid, *names, 16384, 32, 64, 0, "{}")
        for text, number in self._strings.items():
            self.put("string", number, text)
        for table in _TABLES:
            self._flush(table)

    def _flush(self, table: str) -> None:
        rows = self._rows[table]
        if rows:
            marks = ",".join("?" * len(rows[0]))
            name = f"rocpd_{table}{self._suffix}"
            self._db.executemany(f'INSERT INTO "{name}" VALUES ({marks})', rows)  # noqa: S608
        rows.clear()
