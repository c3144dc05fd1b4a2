"""Collectives of ranks as literals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyprof import schema
from pyprof.report.across import facts
from pyprof.report.across.columns import Columns

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(frozen=True)
class Collective:
    """A collective's kernel on one rank."""

    rank: int
    at: tuple[int, int]
    kind: str | None = "all_reduce"
    group: str | None = "0"
    members: str | None = None
    stream: int = 20
    step: int | None = None
    size: int | None = None
    bytes: int | None = None
    algorithm: str | None = "RING"


def collectives(rows: Iterable[Collective]) -> Columns:
    """Write what the ranks' facts would hold."""
    listed = sorted(rows, key=lambda row: (row.rank, row.at))
    names = ("rank", "kind", "group", "members", "stream", "step", "size", "bytes", "algorithm")
    columns = {name: [getattr(row, name) for row in listed] for name in names}
    times = {"start_ns": [row.at[0] for row in listed], "end_ns": [row.at[1] for row in listed]}
    return Columns.of(schema.table(facts.COLLECTIVES, {**columns, **times}, len(listed)))
