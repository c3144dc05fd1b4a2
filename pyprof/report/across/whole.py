"""All that is found across ranks, made from the facts of each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pyprof.report.across import balance, links, stragglers
from pyprof.report.across.clocks import clocks
from pyprof.report.across.columns import Columns
from pyprof.report.across.match import match
from pyprof.report.across.waiting import waits

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pyprof.report.across.balance import LayerLoad
    from pyprof.report.across.clocks import Clock
    from pyprof.report.across.facts import Facts
    from pyprof.report.across.links import Link, SlowLink
    from pyprof.report.across.match import Group, Unmatched
    from pyprof.report.across.stragglers import Late, StepWait, Straggler, Together


@dataclass(frozen=True, slots=True)
class RankTime:
    """One GPU of a rank. Times in ns."""

    rank: int
    device: int
    gpu: str | None
    source: str
    rows: int
    span_ns: int
    busy_ns: int
    idle_ns: int
    compute_ns: int
    communication_ns: int
    exposed_ns: int
    copy_ns: int
    step_ns: float | None
    """The median step after warm-up, of the rank."""
    steps: int


@dataclass(frozen=True, slots=True)
class Across:
    """What a report shows: tables of ranks, groups, steps and layers, none of collectives."""

    ranks: tuple[RankTime, ...]
    origins: tuple[str, ...]
    """How steps were found, each way once."""
    groups: tuple[Group, ...]
    unmatched: tuple[Unmatched, ...]
    clocks: Mapping[int, Clock]
    impossible: int
    """Collectives that some rank left before the last had come; nothing is told of them."""
    stragglers: list[Straggler]
    late: list[Late]
    step_waits: list[StepWait]
    together: list[Together]
    """The dearest sets of ranks."""
    unclear_ns: int
    """Waiting for several ranks that came last together, in all."""
    links: list[Link]
    """Per group; `links.alike` puts like groups together."""
    slow: list[SlowLink]
    layers: list[LayerLoad]
    missing: tuple[str, ...]
    """Captures that could not be read."""
    warnings: tuple[str, ...]
    """What the captures hide or distort."""

    @property
    def numbers(self) -> list[int]:
        """The ranks, rising."""
        return sorted({one.rank for one in self.ranks})

    @property
    def unaligned(self) -> list[int]:
        """Ranks whose clocks could not be aligned with the first one's."""
        return [rank for rank in self.numbers if rank not in self.clocks]

    @property
    def step_count(self) -> int:
        """The steps of the rank that has most."""
        return max((one.steps for one in self.ranks), default=0)


def across(facts: Facts, missing: Sequence[str] = ()) -> Across:
    """Match, align and compare."""
    columns = Columns.of(facts)
    matched = match(columns)
    aligned = clocks(columns, matched.grids, _clock_numbers(facts))
    found = waits(columns, matched.grids, aligned)
    ranks = _ranks(facts)
    per_group = links.links(columns, found)
    unclear_ns, together = stragglers.together(found)
    return Across(
        ranks=ranks,
        origins=tuple(sorted(set(filter(None, facts.ranks.column("origin").to_pylist())))),
        groups=tuple(grid.group for grid in matched.grids),
        unmatched=matched.unmatched,
        clocks=aligned,
        impossible=sum(int((~one.possible).sum()) for one in found),
        stragglers=stragglers.stragglers(found, facts.steps, sorted({one.rank for one in ranks})),
        late=stragglers.by_collective(columns, found),
        step_waits=stragglers.by_step(found),
        together=together,
        unclear_ns=unclear_ns,
        links=per_group,
        slow=links.slow_links(per_group),
        layers=balance.layer_loads(facts.layers),
        missing=tuple(missing),
        warnings=_told(facts.warnings),
    )


def _told(warnings: Iterable[tuple[str, str]]) -> tuple[str, ...]:
    """Tell once what several captures have in common."""
    sources: dict[str, dict[str, None]] = {}
    for source, text in warnings:
        sources.setdefault(text, {})[source] = None
    return tuple(f"{_named([*of])}: {text}" for text, of in sources.items())


def _named(sources: Sequence[str]) -> str:
    more = len(sources) - 1
    return f"{sources[0]} and {more} more" if more else sources[0]


def _clock_numbers(facts: Facts) -> Mapping[int, int]:
    """Number the clocks, and give that of each rank."""
    numbers: dict[str, int] = {}
    rank, clock = (facts.ranks.column(name).to_pylist() for name in ("rank", "clock"))
    return {
        one: numbers.setdefault(name, len(numbers)) for one, name in zip(rank, clock, strict=True)
    }


def _ranks(facts: Facts) -> tuple[RankTime, ...]:
    steps = _step_times(facts)
    names = [name for name in facts.ranks.column_names if name not in {"origin", "clock"}]
    rows = facts.ranks.select(names).to_pylist()
    found = [
        RankTime(**row, step_ns=steps.get(row["rank"], (None, 0))[0],
                 steps=steps.get(row["rank"], (None, 0))[1])
        for row in rows
    ]  # fmt: skip
    return tuple(sorted(found, key=lambda one: (one.rank, one.device)))


def _step_times(facts: Facts) -> dict[int, tuple[float | None, int]]:
    """Give each rank's median step after warm-up, and how many steps it has."""
    table = facts.steps.sort_by("rank")
    duration = table.column("duration_ns").to_numpy()
    warm = table.column("warm_up").to_numpy(zero_copy_only=False).astype(bool)
    number, first = np.unique(table.column("rank").to_numpy(), return_index=True)
    found: dict[int, tuple[float | None, int]] = {}
    for rank, rows in zip(
        number.tolist(), np.split(np.arange(len(duration)), first[1:]), strict=False
    ):
        found[rank] = (float(np.median(duration[rows][~warm[rows]])), len(rows))
    return found
