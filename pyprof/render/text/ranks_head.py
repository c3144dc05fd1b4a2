"""What a comparison of ranks rests on: which ranks, steps, clocks and groups there are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pyprof.analysis.ranks.match import spans
from pyprof.render.text import formatting
from pyprof.render.text.formatting import duration

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyprof.analysis.ranks.clocks import Clock
    from pyprof.analysis.ranks.findings import RankComparison

_NO_STEPS = "none found; pyprof.annotate('step') around each shows them"
_SHOWN = 4
_RANKS = 16


def head(job: RankComparison) -> Iterator[str]:
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


def _clocks(job: RankComparison) -> Iterator[str]:
    aligned_clocks = list(job.clocks.values())
    if len(aligned_clocks) < 2:  # noqa: PLR2004 - nothing to align
        yield "cannot be aligned: no two ranks share timed collectives; waiting is unknown"
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
        ranks = " ".join(map(str, job.unaligned[:_RANKS]))
        more = " ..." if len(job.unaligned) > _RANKS else ""
        yield f"not aligned, for lack of shared collectives: {ranks}{more}"


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


def _groups(job: RankComparison) -> Iterator[str]:
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
