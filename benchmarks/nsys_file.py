"""The tables of an nsys SQLite export (as 2024.2 writes them), filled row by row.

Knows how nsys spells threads, strings and events; knows nothing of what was trained.
"""

from __future__ import annotations

import re
import sqlite3
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from network import Kernel

_WORK = (
    "start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL,"
    " contextId INTEGER NOT NULL, greenContextId INTEGER, streamId INTEGER NOT NULL,"
    " correlationId INTEGER, globalPid INTEGER"
)
_TABLES = {
    "StringIds": "id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL",
    "META_DATA_EXPORT": "name TEXT NOT NULL, value TEXT",
    "TARGET_INFO_GPU": (
        "vmId INTEGER NOT NULL, id INTEGER NOT NULL, name TEXT, totalMemory INTEGER,"
        " memoryBandwidth INTEGER, clockRate INTEGER, smCount INTEGER, cuDevice INTEGER,"
        " computeMajor INTEGER, computeMinor INTEGER"
    ),
    "NVTX_EVENTS": (
        "start INTEGER NOT NULL, end INTEGER, eventType INTEGER NOT NULL, rangeId INTEGER,"
        " text TEXT, globalTid INTEGER, endGlobalTid INTEGER, textId INTEGER, domainId INTEGER,"
        " jsonText TEXT"
    ),
    "CUPTI_ACTIVITY_KIND_RUNTIME": (
        "start INTEGER NOT NULL, end INTEGER NOT NULL, eventClass INTEGER NOT NULL,"
        " globalTid INTEGER, correlationId INTEGER, nameId INTEGER NOT NULL,"
        " returnValue INTEGER NOT NULL, callchainId INTEGER"
    ),
    "CUPTI_ACTIVITY_KIND_KERNEL": (
        f"{_WORK}, demangledName INTEGER NOT NULL, shortName INTEGER NOT NULL,"
        " registersPerThread INTEGER NOT NULL,"
        " gridX INTEGER NOT NULL, gridY INTEGER NOT NULL, gridZ INTEGER NOT NULL,"
        " blockX INTEGER NOT NULL, blockY INTEGER NOT NULL, blockZ INTEGER NOT NULL,"
        " staticSharedMemory INTEGER NOT NULL, dynamicSharedMemory INTEGER NOT NULL"
    ),
    "CUPTI_ACTIVITY_KIND_MEMCPY": f"{_WORK}, bytes INTEGER NOT NULL, copyKind INTEGER NOT NULL",
    "CUPTI_ACTIVITY_KIND_MEMSET": f"{_WORK}, value INTEGER NOT NULL, bytes INTEGER NOT NULL",
}
PUSH_POP = 59  # NVTX_EVENTS.eventType


def process_id(pid: int) -> int:
    """Encode a process as nsys does: a machine's number, the process, and 24 bits of thread."""
    return 1 << 48 | pid << 24


def thread_id(pid: int, tid: int) -> int:
    """Encode a thread as nsys does."""
    return process_id(pid) | tid


class Where(NamedTuple):
    """The columns that every piece of GPU work begins with."""

    start: int
    end: int
    device: int
    stream: int
    corr: int
    process: int

    def row(self) -> tuple[int | None, ...]:
        """Return them in the order of the tables, with those that are the same everywhere."""
        return (self.start, self.end, self.device, 1, None, self.stream, self.corr, self.process)


def new_database(path: Path) -> sqlite3.Connection:
    """Make an empty database that is written fast, but is incomplete after a crash."""
    path.unlink(missing_ok=True)
    database = sqlite3.connect(path)
    database.execute("PRAGMA journal_mode=OFF")
    database.execute("PRAGMA synchronous=OFF")
    return database


class NsysFile:
    """An export being written. Use it as a context manager; the file is complete at its end."""

    def __init__(self, path: Path, batch: int = 20_000) -> None:
        """Make the file; `batch` rows of a table are kept before they are written."""
        self._batch = batch
        self._db = new_database(path)
        self._rows: dict[str, list[Sequence[Any]]] = {}
        self._strings: dict[str, int] = {}
        self.written = dict.fromkeys(_TABLES, 0)
        """Number of rows written to each table."""

    def __enter__(self) -> NsysFile:  # noqa: PYI034 - Self needs Python 3.11
        self._add("META_DATA_EXPORT", ("EXPORT_SCHEMA_VERSION", "3.11.1"))
        self._add("META_DATA_EXPORT", ("EXPORT_PRODUCT_VERSION", "2024.2.1.106"))
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            for text, number in self._strings.items():
                self._add("StringIds", (number, text))
            for table in list(self._rows):
                self._flush(table)
            self._db.commit()
        self._db.close()

    def gpu(self, device: int, name: str, sms: int, clock_hz: int, bandwidth: int) -> None:
        """Describe a GPU of compute capability 8.0 with 40 GiB."""
        row = (1 << 48, device, name, 40 << 30, bandwidth, clock_hz, sms, device, 8, 0)
        self._add("TARGET_INFO_GPU", row)

    def range(
        self, start: int, end: int | None, text: str, thread: int, payload: str | None = None
    ) -> None:
        """Add a push/pop range; `end` None: it was still open when the capture ended.

        One with a payload is of NCCL's domain.
        """
        domain = int(payload is not None)
        row = (start, end, PUSH_POP, None, text, thread, None, None, domain, payload)
        self._add("NVTX_EVENTS", row)

    def call(self, start: int, end: int, thread: int, corr: int, name: str) -> None:
        """Add a call of the CUDA runtime."""
        row = (start, end, 0, thread, corr, self._string(name), 0, None)
        self._add("CUPTI_ACTIVITY_KIND_RUNTIME", row)

    def kernel(self, where: Where, kernel: Kernel) -> None:
        """Add a kernel."""
        short = re.split(r"[<(]", kernel.name, maxsplit=1)[0].rsplit("::", maxsplit=1)[-1]
        names = (self._string(kernel.name), self._string(short))
        row = (*where.row(), *names, 64, *kernel.grid, *kernel.block, 0, 16384)
        self._add("CUPTI_ACTIVITY_KIND_KERNEL", row)

    def copy_to_device(self, where: Where, size_bytes: int) -> None:
        """Add a copy from the host."""
        self._add("CUPTI_ACTIVITY_KIND_MEMCPY", (*where.row(), size_bytes, 1))

    def clear(self, where: Where, size_bytes: int) -> None:
        """Add a memset to zero."""
        self._add("CUPTI_ACTIVITY_KIND_MEMSET", (*where.row(), 0, size_bytes))

    def _string(self, text: str) -> int:
        return self._strings.setdefault(text, len(self._strings) + 1)

    def _add(self, table: str, row: Sequence[Any]) -> None:
        rows = self._rows.setdefault(table, [])
        rows.append(row)
        self.written[table] += 1
        if len(rows) >= self._batch:
            self._flush(table)

    def _flush(self, table: str) -> None:
        # Like nsys: a table without rows does not exist.
        rows = self._rows[table]
        self._db.execute(f"CREATE TABLE IF NOT EXISTS {table} ({_TABLES[table]})")
        marks = ",".join("?" * (_TABLES[table].count(",") + 1))
        self._db.executemany(f"INSERT INTO {table} VALUES ({marks})", rows)  # noqa: S608 - our names
        rows.clear()
