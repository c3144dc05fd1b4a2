"""Allocations of a rocpd file, as rocprofv3 writes them: frees have no agent and no bytes."""

from pathlib import Path

from tests.capture_files.rocpd import CPU_AGENT, FIRST_GPU, NODE
from tests.damage import ROCPD_SUFFIX, sql

Row = tuple[int, str, int | None, int, int]
"""Time, type, agent, address, bytes."""
HOST, GPU, OTHER_GPU = CPU_AGENT, FIRST_GPU, FIRST_GPU + 1
_COLUMNS = "start, end, type, agent_id, address, size, level, nid, pid, tid, guid"


def alloc(at: int, size: int, address: int = 4096, agent: int = GPU) -> Row:
    return at, "ALLOC", agent, address, size


def free(at: int, address: int = 4096) -> Row:
    return at, "FREE", None, address, 0


def add(
    path: Path, rows: list[Row], *, level: str = "REAL", place: int | None = None, pid: int = 1
) -> Path:
    """Add rows to a file's first recording, or to number `place` where recordings share tables."""
    table = f"rocpd_memory_allocate{ROCPD_SUFFIX if place is None else ''}"
    guid = f"0000{place or 0:04x}-e175-7175-b886-1df113061c37"
    values = [
        f"({at}, {at + 2}, '{does}', {'NULL' if agent is None else agent}, {address}, {size},"
        f" '{level}', {NODE}, {pid}, 11, '{guid}')"
        for at, does, agent, address, size in rows
    ]
    sql(
        path,
        f"CREATE TABLE IF NOT EXISTS {table} ({_COLUMNS})",
        f"INSERT INTO {table} ({_COLUMNS}) VALUES {', '.join(values)}",  # noqa: S608 - a test's own
    )
    return path
