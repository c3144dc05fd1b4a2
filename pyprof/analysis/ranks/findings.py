"""A comparison of ranks, with the ranks, steps, clocks and groups that it rests on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyprof.analysis.ranks import group_speeds, stragglers
from pyprof.analysis.ranks.clocks import clocks
from pyprof.analysis.ranks.match import match
from pyprof.analysis.ranks.parallelism import axes
from pyprof.analysis.ranks.tables import Collectives
from pyprof.analysis.ranks.waiting import waits
from pyprof.errors import of_source

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyprof.analysis.ranks.clocks import Clock
    from pyprof.analysis.ranks.group_speeds import GroupSpeed, SlowGroup
    from pyprof.analysis.ranks.match import Group, UnmatchedCount
    from pyprof.analysis.ranks.parallelism import AxisUse
    from pyprof.analysis.ranks.stragglers import (
        Late,
        LayerSpread,
        StepCost,
        StragglerCost,
        Together,
    )
    from pyprof.analysis.ranks.tables import RankTables, RankTime


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
    layers: list[LayerSpread]
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
    ranks = [gpu for one in rank_tables.ranks for gpu in one.gpus]
    own_ns = {one.number: one.own_ns for one in rank_tables.ranks if one.own_ns is not None}
    per_group = group_speeds.measure_groups(columns, waits_of_groups)
    unclear_ns, together = stragglers.together(waits_of_groups)
    sources: dict[str, dict[str, None]] = {}
    for source, warning in rank_tables.warnings:
        sources.setdefault(warning, {})[source] = None
    warnings_once = tuple(of_source(_named([*of]), warning) for warning, of in sources.items())
    return RankComparison(
        ranks=tuple(sorted(ranks, key=lambda one: (one.rank, one.device))),
        origins=tuple(sorted({one.origin for one in rank_tables.ranks if one.origin})),
        groups=tuple(matrix.group for matrix in matched.matrices),
        unmatched=matched.unmatched,
        clocks=aligned,
        impossible=sum(int((~one.possible).sum()) for one in waits_of_groups),
        stragglers=stragglers.stragglers(
            waits_of_groups, own_ns, sorted(one.number for one in rank_tables.ranks)
        ),
        late=stragglers.by_collective(columns, waits_of_groups),
        step_waits=stragglers.by_step(waits_of_groups),
        together=together,
        unclear_ns=unclear_ns,
        group_speeds=per_group,
        slow=group_speeds.slow_groups(per_group),
        layers=stragglers.layer_spreads(rank_tables.layers),
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
    return {one.number: numbers.setdefault(one.clock, len(numbers)) for one in rank_tables.ranks}
