"""What a comparison of ranks rests on: which ranks, steps, clocks and groups there are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pyprof.report import text
from pyprof.report.text import duration

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyprof.report.across.clocks import Clock
    from pyprof.report.across.whole import Across

_NO_STEPS = "none found; call pyprof.annotate('step') around each to see them"
_SHOWN = 4
_RANKS = 16


def head(found: Across) -> Iterator[str]:
    """Say which ranks there are, how steps were found, and how well clocks agree."""
    names = sorted({one.gpu or "GPU not named by the capture" for one in found.ranks})
    yield _labelled("Ranks", f"{len(found.numbers)}; {'; '.join(names)}")
    for number, source in enumerate(found.missing):
        yield _labelled("" if number else "Left out", source)
    steps = f"{found.step_count} by {'; '.join(found.origins)}" if found.origins else _NO_STEPS
    yield _labelled("Steps", steps)
    for number, sentence in enumerate(_clocks(found)):
        yield _labelled("" if number else "Clocks", sentence)
    for number, sentence in enumerate(_groups(found)):
        yield _labelled("" if number else "Groups", sentence)


def _labelled(label: str, value: str) -> str:
    return f"{text.heading(label.ljust(9))} {value}"


def _clocks(found: Across) -> Iterator[str]:
    known = list(found.clocks.values())
    if len(known) < 2:  # noqa: PLR2004 - nothing to align
        yield "cannot be aligned: no two ranks share collectives; waiting is not known"
        return
    numbers = {one.number for one in known}
    if len(numbers) == 1:
        yield f"one clock: the {len(known)} ranks are of one capture; nothing to align"
    else:
        yield from _aligned(known, len(numbers))
    if (apart := len({one.against for one in known})) > 1:
        yield (
            f"{apart} sets of ranks share no collectives that all leave at once: each set is on a"
            " clock of its own, and nothing is told between two"
        )
    if found.unaligned:
        yield f"not aligned, for want of shared collectives: {_some(found.unaligned)}"


def _aligned(known: list[Clock], clocks: int) -> Iterator[str]:
    residuals = [one.residual_ns for one in known]
    offsets = [abs(one.offset_ns) for one in known]
    several = f" on {clocks} clocks" if clocks < len(known) else ""
    yield (
        f"{len(known)} ranks{several} aligned on their collectives; offsets up to"
        f" {duration(max(offsets))}; residual {duration(float(np.median(residuals)))}, at most"
        f" {duration(max(residuals))}: differences of two ranks below the sum of theirs are not"
        " told"
    )
    if not all(one.sure for one in known):
        yield (
            "there was nothing to align on that all ranks leave at once, as an all-reduce: offsets"
            " are as wrong as some leave early"
        )
    if drifting := sum(one.drift != 0 for one in known):
        fastest = max(abs(one.drift) for one in known)
        yield f"{drifting} drift, by up to {fastest * 1e6:.3g} us a second; taken away"


def _groups(found: Across) -> Iterator[str]:
    groups = found.groups
    sizes: dict[int, int] = {}
    for group in groups:
        sizes[len(group.ranks)] = sizes.get(len(group.ranks), 0) + 1
    parts = [f"{number} of {size} ranks" for size, number in sorted(sizes.items(), reverse=True)]
    if parts:
        told = "" if all(group.named for group in groups) else (
            "; where captures name none, told by streams whose ranks leave together"
        )  # fmt: skip
        yield f"{', '.join(parts)}{told}"
        if found.missing:
            yield "what is left out may be of these groups, too; not all captures tell their size"
    for one in found.unmatched[:_SHOWN]:
        yield f"{one.count} collectives of rank {one.rank} in {one.group} unmatched: {one.why}"
    if len(found.unmatched) > _SHOWN:
        yield f"... and {len(found.unmatched) - _SHOWN} more unmatched (--json has all)"

    if found.impossible:
        yield (
            f"{found.impossible} collectives are left by some before the last comes: nothing is"
            " told of them"
        )


def _some(ranks: list[int]) -> str:
    return " ".join(map(str, ranks[:_RANKS])) + (" ..." if len(ranks) > _RANKS else "")
