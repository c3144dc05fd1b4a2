"""The contents of a capture in tests' terms, and their SQLite file."""

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

CAPTURES = Path(__file__).resolve().parents[2] / ".." / "shared" / "captures"

SECRETS = ("build-host-77", "alice.liddell", "AWS_SECRET=hunter2", "10.1.2.3")
"""Host, user and environment, as the tools store them."""

Value = int | str | float | bytes | None
Rows = list[dict[str, Value]]
Table = tuple[Sequence[str], Rows]


@dataclass(frozen=True)
class Work:
    """A piece of GPU work, and the API call that launched it (None: not in the capture)."""

    name: str = "gemm"
    at: tuple[int, int] = (1000, 1100)
    call: tuple[int, int] | None = None
    kind: str = "kernel"
    pid: int = 1
    tid: int = 11
    corr: int | None = None
    """None: numbered in order."""
    device: int = 0
    stream: int = 7
    grid: tuple[int, int, int] = (4, 2, 1)
    block: tuple[int, int, int] = (128, 1, 1)
    regs: int = 32
    smem: int = 1024
    bytes: int = 4096
    copy_kind: int = 1
    api: str = "cudaLaunchKernel_v7000"
    driver: bool = False
    node: int | None = None
    """Id of the graph's node that ran it."""


@dataclass(frozen=True)
class Node:
    """The making of a node of a graph: captured, or, with `of`, made of another node."""

    id: int
    at: int
    of: int | None = None
    pid: int = 1
    tid: int = 11
    name: str = "Graph Node Creation"


@dataclass(frozen=True)
class Range:
    """An NVTX range; `style` is nsys's eventType. End None: still open when the capture ended."""

    text: str
    at: tuple[int, int | None]
    pid: int = 1
    tid: int = 11
    style: int = 59
    end_tid: int | None = None
    domain: int = 0
    payload: str | None = None
    """The payload as nsys decodes it, as JSON."""
    data: bytes | None = None
    """The payload as bytes, if nsys does not decode it."""


CUPTI = "CUPTI_ACTIVITY_KIND_"


class Strings:
    """A tool's table of strings: each text has one id."""

    def __init__(self) -> None:
        self.ids: dict[str, int] = {}

    def __call__(self, text: str) -> int:
        return self.ids.setdefault(text, len(self.ids) + 1)


def number_work(work: Iterable[Work]) -> list[tuple[int, Work]]:
    return [(number if w.corr is None else w.corr, w) for number, w in enumerate(work, 1)]


def global_id(pid: int, tid: int = 0) -> int:
    """Serialise a process and a thread as nsys does."""
    return (1 << 48) | (pid << 24) | tid


def write_tables(path: Path, tables: Mapping[str, Table]) -> Path:
    """Write an SQLite file of untyped columns: name -> (columns, rows)."""
    path.unlink(missing_ok=True)
    with closing(sqlite3.connect(path)) as db, db:
        for name, (columns, rows) in tables.items():
            spelt = ", ".join(f'"{column}"' for column in columns)
            db.execute(f'CREATE TABLE "{name}" ({spelt})')
            marks = ", ".join("?" * len(columns))
            values = [[row.get(column) for column in columns] for row in rows]
            db.executemany(f'INSERT INTO "{name}" VALUES ({marks})', values)  # noqa: S608
    return path


def table(columns: Sequence[str], *rows: Sequence[Value]) -> Table:
    return columns, [dict(zip(columns, row, strict=True)) for row in rows]
