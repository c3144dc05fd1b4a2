"""Collectives of ranks as literals."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from pyprof import schema
from pyprof.analysis.ranks import tables
from pyprof.analysis.ranks.tables import Collectives
from pyprof.answers.ranks_answer import RankUse


@dataclass(frozen=True)
class Collective:
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
    description: str | None = None
    total_ns: int = 0
    exposed_ns: int = 0
    received_bytes: int | None = None


GPU = RankUse(
    rank=0, device=0, gpu=None, source="net.sqlite", rows=0, span_ns=0, busy_ns=0, idle_ns=0,
    compute_ns=0, communication_ns=0, exposed_ns=0, bubble_ns=None, copy_ns=0, step_ns=None,
    steps=0,
)  # fmt: skip
"""A GPU with nothing known about it."""


def collectives(rows: Iterable[Collective]) -> Collectives:
    return Collectives.from_tables(gathered(rows))


def gathered(rows: Iterable[Collective]) -> tables.RankTables:
    """Write the facts of ranks of hosts of their own; nothing but collectives is known."""
    listed = sorted(rows, key=lambda row: (row.rank, row.at))
    known: dict[int, dict[tuple[object, ...], int]] = {}
    number = []
    for row in listed:
        own = known.setdefault(row.rank, {})
        what = tuple(getattr(row, name) for name in tables.SIGNATURES.names)
        number.append(own.setdefault(what, len(own)))
    whats = zip(*(what for own in known.values() for what in own), strict=True)
    columns = {
        "rank": [row.rank for row in listed],
        "signature": number,
        "start_ns": [row.at[0] for row in listed],
        "end_ns": [row.at[1] for row in listed],
        "step": [row.step for row in listed],
    }
    return tables.RankTables(
        ranks=tuple(
            tables.Rank(
                number=rank,
                clock=f"host {rank}",
                origin="",
                own_ns=None,
                own_low_ns=None,
                gpus=(replace(GPU, rank=rank),),
            )
            for rank in known
        ),
        layers=schema.table(tables.LAYERS, {}, 0),
        signatures=schema.table(
            tables.SIGNATURES,
            dict(zip(tables.SIGNATURES.names, map(list, whats), strict=bool(listed))),
            None if listed else 0,
        ),
        collectives=schema.table(tables.COLLECTIVES, columns),
    )
