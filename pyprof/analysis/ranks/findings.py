"""A comparison of ranks, with the ranks, steps, clocks and groups that it rests on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pyprof.analysis.ranks import group_speeds as links
from pyprof.analysis.ranks import stragglers
from pyprof.analysis.ranks.clocks import clocks
from pyprof.analysis.ranks.match import match, spans
from pyprof.analysis.ranks.parallelism import axes
from pyprof.analysis.ranks.tables import Collectives
from pyprof.analysis.ranks.waiting import waits
from pyprof.render.text import formatting
from pyprof.render.text.formatting import duration

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from pyprof.analysis.ranks.clocks import Clock
    from pyprof.analysis.ranks.group_speeds import Link, SlowLink
    from pyprof.analysis.ranks.match import Group, UnmatchedCount
    from pyprof.analysis.ranks.parallelism import AxisUse
    from pyprof.analysis.ranks.stragglers import Late, LayerLoad, StepCost, StragglerCost, Together
    from pyprof.analysis.ranks.tables import RankTables

_NO_STEPS = "none found; call pyprof.annotate('step') around each to see them"
_SHOWN = 4
_RANKS = 16


def head(job: Across) -> Iterator[str]:
    """Say which ranks there are, how steps were found, and how well clocks agree."""
    names = sorted({one.gpu or "GPU not named by the capture" for one in job.ranks})
    yield _labelled("Ranks", f"{len(job.rank_numbers)}; {'; '.join(names)}")
    for number, source in enumerate(job.missing):
        yield _labelled("" if number else "Left out", source)
    if job.absent:
        yield _labelled("Missing", f"{spans(list(job.absent))}: no capture")
    steps = f"{job.step_count} by {'; '.join(job.origins)}" if job.origins else _NO_STEPS
    yield _labelled("Steps", steps)
    for number, sentence in enumerate(_clocks(job)):
        yield _labelled("" if number else "Clocks", sentence)
    for number, sentence in enumerate(_groups(job)):
        yield _labelled("" if number else "Groups", sentence)


def _labelled(label: str, value: str) -> str:
    return f"{formatting.heading(label.ljust(9))} {value}"


def _clocks(job: Across) -> Iterator[str]:
    aligned_clocks = list(job.clocks.values())
    if len(aligned_clocks) < 2:  # noqa: PLR2004 - nothing to align
        yield "cannot be aligned: no two ranks share collectives; waiting is unknown"
        return
    numbers = {one.number for one in aligned_clocks}
    if len(numbers) == 1:
        yield f"one clock: the {len(aligned_clocks)} ranks are in one capture; nothing to align"
    else:
        yield from _aligned(aligned_clocks, len(numbers))
    if (apart := len({one.against for one in aligned_clocks})) > 1:
        yield (
            f"{apart} sets of ranks share no collectives that all leave at once: each set has its"
            " own clock, and two sets are not compared"
        )
    if job.unaligned:
        yield f"not aligned, for lack of shared collectives: {_some(job.unaligned)}"


def _aligned(aligned_clocks: list[Clock], clocks: int) -> Iterator[str]:
    residuals = [one.residual_ns for one in aligned_clocks]
    offsets = [abs(one.offset_ns) for one in aligned_clocks]
    several = f" on {clocks} clocks" if clocks < len(aligned_clocks) else ""
    yield (
        f"{len(aligned_clocks)} ranks{several} aligned on their collectives; offsets up to"
        f" {duration(max(offsets))}; residual {duration(float(np.median(residuals)))}, at most"
        f" {duration(max(residuals))}: differences between two ranks below the sum of theirs are"
        " not reported"
    )
    if not all(one.sure for one in aligned_clocks):
        yield (
            "there are no collectives that all ranks leave at once, such as all-reduce: offsets are"
            " off by as much as some ranks leave early"
        )
    if drifting := sum(one.drift != 0 for one in aligned_clocks):
        fastest = max(abs(one.drift) for one in aligned_clocks)
        yield f"{drifting} drift, by up to {fastest * 1e6:.3g} us per second; removed"


def _groups(job: Across) -> Iterator[str]:
    groups = job.groups
    sizes: dict[int, int] = {}
    for group in groups:
        sizes[len(group.ranks)] = sizes.get(len(group.ranks), 0) + 1
    parts = [f"{number} of {size} ranks" for size, number in sorted(sizes.items(), reverse=True)]
    if parts:
        evidence = "" if all(group.named for group in groups) else (
            "; inferred from streams whose ranks leave together where captures name none"
        )  # fmt: skip
        yield f"{', '.join(parts)}{evidence}"
        if job.missing:
            yield "captures left out may belong to these groups; not all give the group size"
    for one in job.unmatched[:_SHOWN]:
        yield f"{one.count} collectives of rank {one.rank} in {one.group} unmatched: {one.why}"
    if len(job.unmatched) > _SHOWN:
        yield f"... and {len(job.unmatched) - _SHOWN} more unmatched (--json has all)"

    if job.impossible:
        yield (f"{job.impossible} collectives excluded: some ranks leave before the last arrives")


def _some(ranks: list[int]) -> str:
    return " ".join(map(str, ranks[:_RANKS])) + (" ..." if len(ranks) > _RANKS else "")


@dataclass(frozen=True, slots=True)
class RankTime:
    """One GPU of a rank."""

    rank: int
    """The rank."""
    device: int
    """Number of the GPU in its process; -1 where it is unknown."""
    gpu: str | None
    """Its name; null where the capture does not name it."""
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
    """Median step after warm-up; null where no steps were found."""
    steps: int
    """How many steps."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Across:
    """What a report shows: tables of ranks, groups, steps and layers, none of collectives."""

    ranks: tuple[RankTime, ...]
    origins: tuple[str, ...]
    """How steps were found, each way once."""
    groups: tuple[Group, ...]
    unmatched: tuple[UnmatchedCount, ...]
    clocks: Mapping[int, Clock]
    impossible: int
    """Collectives that some rank left before the last had come; nothing can be said of them."""
    stragglers: list[StragglerCost]
    late: list[Late]
    step_waits: list[StepCost]
    together: list[Together]
    """The most expensive sets of ranks."""
    unclear_ns: int
    """Waiting for several ranks that came last together, in all."""
    links: list[Link]
    """Per group; `links.join_alike` puts like groups together."""
    slow: list[SlowLink]
    layers: list[LayerLoad]
    axes: list[AxisUse]
    """What process groups are for."""
    missing: tuple[str, ...]
    """Captures that could not be read."""
    absent: tuple[int, ...]
    """Ranks without a capture, as far as the others tell of them."""
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


def across(rank_tables: RankTables, missing: Sequence[str] = ()) -> Across:
    """Match, align and compare."""
    columns = Collectives.from_tables(rank_tables)
    matched = match(columns)
    aligned = clocks(columns, matched.grids, _clock_numbers(rank_tables))
    waits_of_groups = waits(columns, matched.grids, aligned)
    ranks = _ranks(rank_tables)
    per_group = links.links(columns, waits_of_groups)
    unclear_ns, together = stragglers.together(waits_of_groups)
    return Across(
        ranks=ranks,
        origins=tuple(sorted(set(filter(None, rank_tables.ranks.column("origin").to_pylist())))),
        groups=tuple(grid.group for grid in matched.grids),
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
        links=per_group,
        slow=links.slow_links(per_group),
        layers=stragglers.layer_loads(rank_tables.layers),
        axes=axes(columns, matched.grids),
        missing=tuple(missing),
        absent=matched.absent,
        waiting_for_absent=matched.waiting_for_absent,
        warnings=_warnings_once(rank_tables.warnings),
    )


def _warnings_once(warnings: Iterable[tuple[str, str]]) -> tuple[str, ...]:
    """Merge warnings that several captures have in common."""
    sources: dict[str, dict[str, None]] = {}
    for source, warning in warnings:
        sources.setdefault(warning, {})[source] = None
    return tuple(f"{_named([*of])}: {warning}" for warning, of in sources.items())


def _named(sources: Sequence[str]) -> str:
    more = len(sources) - 1
    return f"{sources[0]} and {more} more" if more else sources[0]


def _clock_numbers(rank_tables: RankTables) -> Mapping[int, int]:
    """Number the clocks, and give that of each rank."""
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
        RankTime(**row, step_ns=steps.get(row["rank"], (None, 0))[0],
                 steps=steps.get(row["rank"], (None, 0))[1])
        for row in rows
    ]  # fmt: skip
    return tuple(sorted(rank_times, key=lambda one: (one.rank, one.device)))


def _step_times(rank_tables: RankTables) -> dict[int, tuple[float | None, int]]:
    """Each rank's median step after warm-up, and its number of steps."""
    table = rank_tables.steps.sort_by("rank")
    duration = table.column("duration_ns").to_numpy()
    warm = table.column("warm_up").to_numpy(zero_copy_only=False).astype(bool)
    number, first = np.unique(table.column("rank").to_numpy(), return_index=True)
    step_times: dict[int, tuple[float | None, int]] = {}
    for rank, rows in zip(
        number.tolist(), np.split(np.arange(len(duration)), first[1:]), strict=False
    ):
        step_times[rank] = (float(np.median(duration[rows][~warm[rows]])), len(rows))
    return step_times
