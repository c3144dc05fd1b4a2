"""What a comparison of ranks rests on: which ranks, steps, clocks and groups there are."""

from __future__ import annotations

from collections import Counter
from statistics import median
from typing import TYPE_CHECKING

from pyprof.quantities import counted, duration, spans
from pyprof.render.text import formatting

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyprof.answers.ranks_answer import Ranks, RankUse

_NO_STEPS = "none found; pyprof.annotate('step') around each shows them"
_SHOWN = 4
_RANKS = 16


def head(job: Ranks) -> Iterator[str]:
    """Say which ranks there are, how steps were found, and how well clocks agree."""
    names = sorted({one.gpu or "GPU not named by the capture" for one in job.ranks})
    yield from formatting.labelled("Ranks", f"{job.rank_count}; {'; '.join(names)}")
    yield from formatting.labelled("Left out", *job.left_out)
    if job.missing_ranks:
        yield from formatting.labelled("Missing", f"{spans(job.missing_ranks)}: no capture")
    origins = "; ".join(job.step_origins)
    steps = f"{job.step_count} by {origins}" if origins else _NO_STEPS
    yield from formatting.labelled("Steps", steps)
    yield from formatting.labelled("Clocks", *_clocks(job))
    yield from formatting.labelled("Groups", *_groups(job))


def _clocks(job: Ranks) -> Iterator[str]:
    aligned = [*{one.rank: one for one in job.ranks if one.clock is not None}.values()]
    if len(aligned) < 2:  # noqa: PLR2004 - nothing to align
        yield "cannot be aligned: no two ranks share timed collectives; waiting is unknown"
        return
    clock_count = len({one.clock for one in aligned})
    if clock_count == 1:
        yield f"one clock: the {len(aligned)} ranks are in one capture; nothing to align"
    else:
        yield from _describe_alignment(aligned, clock_count)
    if (apart := len({one.clock_against_rank for one in aligned})) > 1:
        yield (
            f"{apart} sets of ranks share no collectives that all leave at once: each set has its"
            " own clock, and two sets are not compared"
        )
    if unaligned := sorted({one.rank for one in job.ranks if one.clock is None}):
        ranks = " ".join(map(str, unaligned[:_RANKS]))
        more = " ..." if len(unaligned) > _RANKS else ""
        yield f"not aligned, for lack of shared collectives: {ranks}{more}"


def _describe_alignment(ranks: list[RankUse], clock_count: int) -> Iterator[str]:
    residuals = [one.clock_residual_ns or 0 for one in ranks]
    offsets = [abs(one.clock_offset_ns or 0) for one in ranks]
    several = f" on {clock_count} clocks" if clock_count < len(ranks) else ""
    yield (
        f"{len(ranks)} ranks{several} aligned on their collectives; offsets up to"
        f" {duration(max(offsets))}; residual {duration(median(residuals))}, at most"
        f" {duration(max(residuals))}: differences between two ranks below the sum of theirs are"
        " not reported"
    )
    if not all(one.clock_sure for one in ranks):
        yield (
            "there are no collectives that all ranks leave at once, such as all-reduce: offsets are"
            " off by as much as some ranks leave early"
        )
    if drifts := [abs(one.clock_drift) for one in ranks if one.clock_drift]:
        yield f"{len(drifts)} drift, by up to {max(drifts) * 1e6:.3g} us per second; removed"


def _groups(job: Ranks) -> Iterator[str]:
    if job.group_sizes:
        sizes = Counter(job.group_sizes).items()
        evidence = "" if job.groups_named else (
            "; not all are named: inferred from when collectives end on each rank"
        )  # fmt: skip
        yield f"{', '.join(f'{number} of {size} ranks' for size, number in sizes)}{evidence}"
        if job.left_out:
            yield "captures left out may belong to these groups; not all give the group size"
    for one in job.unmatched[:_SHOWN]:
        count = counted(one.count, "collective")
        yield f"{count} of rank {one.rank} in {one.group} unmatched: {one.why}"
    if len(job.unmatched) > _SHOWN:
        yield f"... and {len(job.unmatched) - _SHOWN} more unmatched (--json has all)"
    if early := job.left_before_the_last_came:
        yield f"{counted(early, 'collective')} excluded: some ranks leave before the last arrives"
