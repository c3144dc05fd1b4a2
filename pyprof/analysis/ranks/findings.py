"""A comparison of ranks, with the ranks, steps, clocks and groups that it rests on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pyprof.analysis.ranks import group_speeds, stragglers
from pyprof.analysis.ranks.clocks import clocks
from pyprof.analysis.ranks.match import match
from pyprof.analysis.ranks.parallelism import axes
from pyprof.analysis.ranks.tables import Collectives
from pyprof.analysis.ranks.waiting import waits
from pyprof.errors import of_source
from pyprof.parse.ranges.nesting import by_value

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyprof.analysis.ranks.clocks import Clock
    from pyprof.analysis.ranks.group_speeds import GroupSpeed, SlowGroup
    from pyprof.analysis.ranks.match import Group, UnmatchedCount
    from pyprof.analysis.ranks.parallelism import AxisUse
    from pyprof.analysis.ranks.stragglers import Late, LayerLoad, StepCost, StragglerCost, Together
    from pyprof.analysis.ranks.tables import RankTables


@dataclass(frozen=True, slots=True)
class RankTime:
    """One GPU of a rank."""

    rank: int
    """The rank."""
    device: int
    """Number of the GPU in its process; -1 where it is unknown."""
    gpu: str | None
    """Its name; null if the capture does not name it."""
    source: str
    """The capture."""
    rows: int
    """Kernels, copies and fills."""
    span_ns: int
    """From the first start to the last end."""
    busy_ns: int
    """When anything ran."""
    idle_ns: int
    """When nothing ran."""
    compute_ns: int
    """When kernels ran, but those of collectives."""
    communication_ns: int
    """When collectives ran."""
    exposed_ns: int
    """When collectives ran and nothing computed."""
    bubble_ns: int | None
    """Waiting for other pipeline stages while nothing computed; null: it is in no pipeline."""
    copy_ns: int
    """When copies or fills ran."""
    step_ns: float | None
    """Median step after warm-up; null if no steps were found."""
    steps: int
    """How many steps."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RankComparison:
    """What a report shows: tables of ranks, groups, steps and layers, but not of collectives."""

    ranks: tuple[RankTime, ...]
    origins: tuple[str, ...]
    """How steps were found, each way once."""
    groups: tuple[Group, ...]
    unmatched: tuple[UnmatchedCount, ...]
    clocks: Mapping[int, Clock]
    impossible: int
    """Collectives that some rank left before the last one came: their times are inconsistent."""
    stragglers: list[StragglerCost]
    late: list[Late]
    step_waits: list[StepCost]
    together: list[Together]
    """The most expensive sets of ranks."""
    unclear_ns: int
    """Waiting for several ranks that came last together, in all."""
    group_speeds: list[GroupSpeed]
    """Per group; `group_speeds.join_alike` puts like groups together."""
    slow: list[SlowGroup]
    layers: list[LayerLoad]
    axes: list[AxisUse]
    """What process groups are for."""
    missing: tuple[str, ...]
    """Captures that could not be read."""
    absent: tuple[int, ...]
    """Ranks without a capture, as far as they follow from the other captures."""
    waiting_for_absent: tuple[int, ...]
    """Ranks that may come late because they waited for one of these."""
    warnings: tuple[str, ...]
    """What the captures hide or distort."""

    @property
    def rank_numbers(self) -> list[int]:
        """The ranks, rising."""
        return sorted({one.rank for one in self.ranks})

    @property
    def unaligned(self) -> list[int]:
        """Ranks whose clocks could not be aligned with the first one's."""
        return [rank for rank in self.rank_numbers if rank not in self.clocks]

    @property
    def step_count(self) -> int:
        """The steps of the rank that has most."""
        return max((one.steps for one in self.ranks), default=0)


def compare_ranks(rank_tables: RankTables, missing: Sequence[str] = ()) -> RankComparison:
    """Match collectives, align clocks, and compare the ranks."""
    columns = Collectives.from_tables(rank_tables)
    matched = match(columns)
    aligned = clocks(columns, matched.matrices, _clock_numbers(rank_tables))
    waits_of_groups = waits(columns, matched.matrices, aligned)
    ranks = _ranks(rank_tables)
    per_group = group_speeds.measure_groups(columns, waits_of_groups)
    unclear_ns, together = stragglers.together(waits_of_groups)
    sources: dict[str, dict[str, None]] = {}
    for source, warning in rank_tables.warnings:
        sources.setdefault(warning, {})[source] = None
    warnings_once = tuple(of_source(_named([*of]), warning) for warning, of in sources.items())
    return RankComparison(
        ranks=ranks,
        origins=tuple(sorted(set(filter(None, rank_tables.ranks.column("origin").to_pylist())))),
        groups=tuple(matrix.group for matrix in matched.matrices),
        unmatched=matched.unmatched,
        clocks=aligned,
        impossible=sum(int((~one.possible).sum()) for one in waits_of_groups),
        stragglers=stragglers.stragglers(
            waits_of_groups, rank_tables.steps, sorted({one.rank for one in ranks})
        ),
        late=stragglers.by_collective(columns, waits_of_groups),
        step_waits=stragglers.by_step(waits_of_groups),
        together=together,
        unclear_ns=unclear_ns,
        group_speeds=per_group,
        slow=group_speeds.slow_groups(per_group),
        layers=stragglers.layer_loads(rank_tables.layers),
        axes=axes(columns, matched.matrices),
        missing=tuple(missing),
        absent=matched.absent,
        waiting_for_absent=matched.waiting_for_absent,
        warnings=warnings_once,
    )


def _named(sources: Sequence[str]) -> str:
    more = len(sources) - 1
    return f"{sources[0]} and {more} more" if more else sources[0]


def _clock_numbers(rank_tables: RankTables) -> Mapping[int, int]:
    """Number the clocks; return the number of each rank's clock."""
    numbers: dict[str, int] = {}
    rank, clock = (rank_tables.ranks.column(name).to_pylist() for name in ("rank", "clock"))
    return {
        one: numbers.setdefault(name, len(numbers)) for one, name in zip(rank, clock, strict=True)
    }


def _ranks(rank_tables: RankTables) -> tuple[RankTime, ...]:
    steps = _step_times(rank_tables)
    names = [name for name in rank_tables.ranks.column_names if name not in {"origin", "clock"}]
    rows = rank_tables.ranks.select(names).to_pylist()
    rank_times = [
        RankTime(**row, step_ns=step_ns, steps=count)
        for row in rows
        for step_ns, count in [steps.get(row["rank"], (None, 0))]
    ]
    return tuple(sorted(rank_times, key=lambda one: (one.rank, one.device)))


def _step_times(rank_tables: RankTables) -> dict[int, tuple[float | None, int]]:
    """Each rank's median step after warm-up, and its number of steps."""
    table = rank_tables.steps
    duration = table.column("duration_ns").to_numpy()
    warm = table.column("warm_up").to_numpy(zero_copy_only=False).astype(bool)
    return {
        rank: (float(np.median(duration[rows[~warm[rows]]])), len(rows))
        for rank, rows in by_value(table.column("rank").to_numpy())
    }
