"""The comparison of ranks: collectives matched, clocks aligned, the answer made of both."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from pyprof.analysis.ranks import group_speeds, stragglers
from pyprof.analysis.ranks.clocks import clocks
from pyprof.analysis.ranks.match import match
from pyprof.analysis.ranks.parallelism import axes
from pyprof.analysis.ranks.tables import Collectives
from pyprof.analysis.ranks.waited_for import judge_waits
from pyprof.analysis.ranks.waiting import waits
from pyprof.answers.ranks_answer import Ranks
from pyprof.errors import of_source

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pyprof.analysis.ranks.clocks import Clock
    from pyprof.analysis.ranks.tables import RankTables
    from pyprof.answers.ranks_answer import RankUse


def compare_ranks(rank_tables: RankTables, left_out: Sequence[str] = ()) -> Ranks:
    """Match collectives, align clocks, and compare the ranks."""
    columns = Collectives.from_tables(rank_tables)
    matched = match(columns)
    aligned = clocks(columns, matched.matrices, _clock_numbers(rank_tables))
    waits_of_groups = waits(columns, matched.matrices, aligned)
    gpus = [gpu for one in rank_tables.ranks for gpu in one.gpus]
    own_ns = {one.number: one.own_ns for one in rank_tables.ranks if one.own_ns is not None}
    low_ns = {one.number: one.own_low_ns for one in rank_tables.ranks}
    costs = stragglers.stragglers(
        waits_of_groups, own_ns, sorted(one.number for one in rank_tables.ranks)
    )
    step_ns = [one.step_ns for one in gpus if one.step_ns]
    speeds = group_speeds.measure_groups(columns, waits_of_groups)
    waited_for_several_ns, together = stragglers.together(waits_of_groups)
    groups = [matrix.group for matrix in matched.matrices]
    staged = any(one.bubble_ns is not None for one in gpus)
    job = Ranks(
        ranks=tuple(
            _on_clock(one, aligned.get(one.rank))
            for one in sorted(gpus, key=lambda one: (one.rank, one.device))
        ),
        stragglers=tuple(costs),
        late=tuple(stragglers.by_collective(columns, waits_of_groups)),
        together=tuple(together),
        steps=tuple(stragglers.by_step(waits_of_groups)),
        groups=tuple(speeds),
        parallelism=tuple(axes(columns, matched.matrices)),
        layers=tuple(stragglers.layer_spreads(rank_tables.layers, staged=staged)),
        unmatched=matched.unmatched,
        waited_for_several_ns=waited_for_several_ns,
        left_before_the_last_came=sum(int((~one.possible).sum()) for one in waits_of_groups),
        left_out=tuple(left_out),
        missing_ranks=matched.absent,
        waiting_for_missing_ranks=matched.waiting_for_absent,
        slowest_ranks=tuple(
            stragglers.slowest(
                costs,
                low_ns,
                float(np.median(step_ns)) if step_ns else None,
                matched.waiting_for_absent,
            )
        ),
        all_may_wait_for_missing=matched.all_may_wait,
        slow_groups=tuple(group_speeds.slow_groups(speeds)),
        collectives=tuple(group_speeds.join_alike(speeds)),
        group_sizes=tuple(len(group.ranks) for group in groups),
        groups_named=all(group.named for group in groups),
        step_origins=tuple(sorted({one.origin for one in rank_tables.ranks if one.origin})),
        warnings=tuple(_warnings_once(rank_tables)),
    )
    return judge_waits(job)


def _on_clock(gpu: RankUse, clock: Clock | None) -> RankUse:
    if clock is None:
        return gpu
    return replace(
        gpu,
        clock=clock.number,
        clock_against_rank=clock.against,
        clock_offset_ns=clock.offset_ns,
        clock_drift=clock.drift,
        clock_residual_ns=clock.residual_ns,
        clock_collectives=clock.collectives,
        clock_sure=clock.sure,
    )


def _warnings_once(rank_tables: RankTables) -> Iterator[str]:
    """Yield each warning with the first of its captures, and how many others it is about."""
    sources_of: dict[str, dict[str, None]] = {}
    for source, warning in rank_tables.warnings:
        sources_of.setdefault(warning, {})[source] = None
    for warning, (first, *others) in sources_of.items():
        yield of_source(f"{first} and {len(others)} more" if others else first, warning)


def _clock_numbers(rank_tables: RankTables) -> Mapping[int, int]:
    """Number the clocks; return the number of each rank's clock."""
    numbers: dict[str, int] = {}
    return {one.number: numbers.setdefault(one.clock, len(numbers)) for one in rank_tables.ranks}
