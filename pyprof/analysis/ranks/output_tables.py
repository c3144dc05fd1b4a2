"""What was found across ranks as tables for programs: a name, its columns, all of its rows."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass, fields
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from pyprof import sanitize
from pyprof.analysis.ranks.collective_kinds import CollectiveKey
from pyprof.analysis.ranks.findings import RankTime
from pyprof.analysis.ranks.match import UnmatchedCount
from pyprof.analysis.ranks.parallelism import AxisUse
from pyprof.analysis.ranks.stragglers import LayerLoad, StepCost, StragglerCost

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from pyprof.analysis.ranks.findings import RankComparison
    from pyprof.analysis.ranks.match import Group

Cell = Any
Columns = dict[str, "Callable[[Any], Cell]"]


@dataclass(frozen=True, slots=True)
class OutputTable:
    """A table: what a row stands for, and what each column holds."""

    items: Callable[[RankComparison], Iterable[Any]]
    columns: Columns

    def rows(self, comparison: RankComparison) -> Iterator[list[Cell]]:
        """Yield the cells of each row."""
        read = [*self.columns.values()]
        return ([cell(item) for cell in read] for item in self.items(comparison))


def _fields(of: type, place: str = "") -> Columns:
    return {field.name: attrgetter(place + field.name) for field in fields(of)}


def _of_first(columns: Columns) -> Columns:
    return {name: partial(_cell, 0, cell) for name, cell in columns.items()}


def _of_second(columns: Columns) -> Columns:
    return {name: partial(_cell, 1, cell) for name, cell in columns.items()}


def _cell(place: int, cell: Callable[[Any], Cell], pair: tuple[Any, Any]) -> Cell:
    """Read a cell of one of two rows; None if the row is missing."""
    return None if pair[place] is None else cell(pair[place])


def _members(group: Group) -> str:
    return " ".join(map(str, group.ranks.tolist()))


_RANKS = OutputTable(  # one row per GPU of a rank: its times, its clock
    lambda job: ((one, job.clocks.get(one.rank)) for one in job.ranks),
    _of_first(_fields(RankTime))
    | _of_second({
        "clock": attrgetter("number"),
        "clock_against_rank": attrgetter("against"),
        "clock_offset_ns": attrgetter("offset_ns"),
        "clock_drift": attrgetter("drift"),
        "clock_residual_ns": attrgetter("residual_ns"),
        "clock_collectives": attrgetter("collectives"),
        "clock_sure": attrgetter("sure"),
    }),
)  # fmt: skip

_LATE = OutputTable(  # one row per rank, process group and kind of collective to which it came last
    attrgetter("late"),
    {
        "rank": attrgetter("rank"),
        "group": attrgetter("group.name"),
        "members": lambda one: _members(one.group),
        **_fields(CollectiveKey, "key."),
        "last": attrgetter("last"),
        "cost_ns": attrgetter("cost_ns"),
    },
)

_TOGETHER = (
    OutputTable(  # one row per set of ranks that came last within the residual of each other
        attrgetter("together"),
        {
            "ranks": lambda one: " ".join(map(str, one.ranks)),
            "cost_ns": attrgetter("cost_ns"),
        },
    )
)

_GROUPS = OutputTable(  # one row per process group, kind, algorithm and size
    lambda job: [
        (speed, slow.get(id(speed)))
        for slow in [{id(one.speed): one for one in job.slow}]
        for speed in job.group_speeds
    ],
    _of_first({
        **_fields(CollectiveKey, "key."),
        "ranks": attrgetter("ranks"),
        "calls": attrgetter("calls"),
        "wait_ns": attrgetter("wait_ns"),
        "transfer_ns": attrgetter("transfer_ns"),
        "transfer_total_ns": attrgetter("total_ns"),
        "algorithm_bytes_per_s": attrgetter("algorithm_rate"),
        "bus_bytes_per_s": attrgetter("bus_rate"),
        "group": lambda speed: speed.groups[0].name,
        "named": lambda speed: speed.groups[0].named,
        "members": lambda speed: _members(speed.groups[0]),
    })
    | _of_second({"times_like_groups": attrgetter("times")}),
)  # fmt: skip

TABLES: Mapping[str, OutputTable] = {
    "ranks": _RANKS,
    "stragglers": OutputTable(attrgetter("stragglers"), _fields(StragglerCost)),
    "late": _LATE,
    "together": _TOGETHER,
    "steps": OutputTable(attrgetter("step_waits"), _fields(StepCost)),
    "groups": _GROUPS,
    "parallelism": OutputTable(attrgetter("axes"), _fields(AxisUse)),
    "layers": OutputTable(
        attrgetter("layers"), _fields(LayerLoad) | {"imbalance": attrgetter("imbalance")}
    ),
    "unmatched": OutputTable(attrgetter("unmatched"), _fields(UnmatchedCount)),
}


def as_csv(job: RankComparison, name: str) -> bytes:
    """Format one table as CSV: times in ns, unknown values empty; without rows, only the header."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(TABLES[name].columns)
    rows = TABLES[name].rows(job)
    writer.writerows(map(sanitize.escape_formula, row) for row in rows)
    return file.getvalue().encode()
