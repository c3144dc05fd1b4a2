"""What was found across ranks as tables for programs: a name, its columns, all of its rows."""

from __future__ import annotations

import csv
import io
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import orjson

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from pyprof.report.across.links import Link
    from pyprof.report.across.whole import Across

Row = dict[str, Any]


def ranks(found: Across) -> Iterable[Row]:
    """One per GPU of a rank: its times, its clock."""
    for one in found.ranks:
        clock = found.clocks.get(one.rank)
        yield asdict(one) | {
            "clock_offset_ns": clock.offset_ns if clock else None,
            "clock_drift": clock.drift if clock else None,
            "clock_residual_ns": clock.residual_ns if clock else None,
            "clock_collectives": clock.collectives if clock else None,
        }


def stragglers(found: Across) -> Iterable[Row]:
    """One per rank: what it cost others, what it waited."""
    return map(asdict, found.stragglers)


def late(found: Across) -> Iterable[Row]:
    """One per rank, process group, kind and size of collectives to which it came last."""
    for one in found.late:
        yield {
            "rank": one.rank,
            "group": one.group.name,
            "members": " ".join(map(str, one.group.ranks.tolist())),
            "kind": one.kind,
            "bytes": one.bytes,
            "last": one.last,
            "cost_ns": one.cost_ns,
        }


def together(found: Across) -> Iterable[Row]:
    """One per set of ranks that came last within the clocks' residual of each other."""
    for one in found.together:
        yield {"ranks": " ".join(map(str, one.ranks)), "cost_ns": one.cost_ns}


def steps(found: Across) -> Iterable[Row]:
    """One per step and rank that came last in it."""
    return map(asdict, found.step_waits)


def groups(found: Across) -> Iterable[Row]:
    """One per process group, kind, algorithm and size."""
    slow = {id(one.link): one for one in found.slow}
    for link in found.links:
        compared = slow.get(id(link))
        yield _link(link) | {
            "group": link.groups[0].name,
            "named": link.groups[0].named,
            "members": " ".join(map(str, link.groups[0].ranks.tolist())),
            "times_like_groups": compared.times if compared else None,
        }


def _link(link: Link) -> Row:
    return {
        "kind": link.kind,
        "algorithm": link.algorithm,
        "bytes": link.bytes,
        "ranks": link.ranks,
        "calls": link.calls,
        "wait_ns": link.wait_ns,
        "transfer_ns": link.transfer_ns,
        "transfer_total_ns": link.total_ns,
        "algorithm_bytes_per_s": link.algorithm_rate,
        "bus_bytes_per_s": link.bus_rate,
    }


def layers(found: Across) -> Iterable[Row]:
    """One per layer: mean and most over ranks."""
    return (asdict(one) | {"imbalance": one.imbalance} for one in found.layers)


def unmatched(found: Across) -> Iterable[Row]:
    """One per rank and group with collectives that no other capture has."""
    return map(asdict, found.matched.unmatched)


TABLES: Mapping[str, Callable[[Across], Iterable[Row]]] = {
    "ranks": ranks,
    "stragglers": stragglers,
    "late": late,
    "together": together,
    "steps": steps,
    "groups": groups,
    "layers": layers,
    "unmatched": unmatched,
}


def as_csv(found: Across, name: str) -> bytes:
    """Write one table, times in ns, unknown empty; without rows, nothing."""
    rows = list(TABLES[name](found))
    file = io.StringIO()
    if rows:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    return file.getvalue().encode()


def as_json(found: Across) -> bytes:
    """Write all tables, unknown null."""
    tables = {name: list(rows(found)) for name, rows in TABLES.items()}
    content = {**tables, "left_out": found.missing}
    return orjson.dumps(content, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
