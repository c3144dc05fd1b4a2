"""The straggler and the slow link in words, each with what it rests on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pyprof.report.across.match import spans
from pyprof.report.numbers import amount, count
from pyprof.report.text import duration, number, percent
from pyprof.report.tree import NO_LAYER

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyprof.report.across.links import SlowLink
    from pyprof.report.across.sorts import Sort
    from pyprof.report.across.stragglers import Straggler
    from pyprof.report.across.whole import Across

_LEAST = 0.005
"""A straggler costs at least this share of a step; less is no news."""
_SHOWN = 3
_UNEVEN = 1.1
_NOTHING = "No rank, link or layer stands out."
_ALONE = "One rank alone: nothing to compare it with; name the captures of the others, too."


def in_words(found: Across) -> Iterator[str]:
    """Name the straggler and the slow links, the dearer first, and the uneven layer.

    Says so where there are none.
    """
    told = sorted([*_stragglers(found), *_slow(found)], key=lambda entry: -entry[0])
    lines = [*(line for _, lines in told for line in lines), *_layer(found)]
    yield from lines or [_ALONE if len(found.numbers) == 1 else _NOTHING]


def stragglers(found: Across) -> list[Straggler]:
    """Choose the ranks whose own work takes longest; where steps are not known, who costs most.

    Others come late because they waited for one of these elsewhere: a rank's own time tells. Those
    count that have half of what the first has more than the others.
    """
    step = float(np.median([one.step_ns for one in found.ranks if one.step_ns] or [0]))
    if not step:
        dear = [one for one in found.stragglers if one.cost_ns]
        return dear[:1]
    most = max((one.excess_ns or 0 for one in found.stragglers), default=0)
    if most <= _LEAST * step:
        return []
    slow = [one for one in found.stragglers if (one.excess_ns or 0) >= most / 2]
    return sorted(slow, key=lambda one: (-(one.excess_ns or 0), one.rank))


def _stragglers(found: Across) -> Iterator[tuple[float, list[str]]]:
    """Give what the stragglers cost in all, and the words."""
    if not (slow := stragglers(found)):
        return
    first = slow[0]
    source = next(rank.source for rank in found.ranks if rank.rank == first.rank)
    said = f"Rank {first.rank} is the straggler: {'; '.join(_evidence(found, first))}."
    cost = (first.excess_ns or 0) * found.step_count or first.cost_ns / _peers(found)
    yield (
        cost,
        [
            _several(found, slow) if len(slow) > 1 else said,
            f"  Look at pyprof summary {source} beside that of another rank, or pyprof diff.",
        ],
    )


def _peers(found: Across) -> int:
    return max(len(found.numbers) - 1, 1)


def _evidence(found: Across, one: Straggler) -> Iterator[str]:
    steps = found.step_count
    each = one.cost_ns / (steps or 1) / _peers(found)
    if one.of:
        yield f"it came last to {count(one.last)} of {count(one.of)} collectives"
    pair = _peers(found) == 1
    if one.cost_ns:
        unit = " a step" if steps else ""
        whole = duration(one.cost_ns)
        others = "other" if pair else "others"
        yield (f"for it the {others} waited {duration(each)}{unit}{'' if pair else ' each'},"
               f" {whole} in all")  # fmt: skip
    if one.excess_ns is not None:
        others = "the other's" if pair else "the median of the others"
        yield (f"without communication its step takes {duration(one.own_ns)},"
               f" {duration(one.excess_ns)} more than {others}")  # fmt: skip
        if one.of and each < one.excess_ns / 2:
            yield "others come as late or later, and hide most of it"


def _several(found: Across, slow: list[Straggler]) -> str:
    cost = sum(one.cost_ns for one in slow)
    ranks = spans(sorted(one.rank for one in slow))
    return (
        f"{ranks[0].upper()}{ranks[1:]} hold up the others: without communication a step of theirs"
        f" takes up to {duration(slow[0].own_ns)}, {duration(slow[0].excess_ns)} more than the"
        f" median of the others; the others waited {duration(cost)} for one of them,"
        f" {duration(found.unclear_ns)} for several at once."
    )


def _slow(found: Across) -> Iterator[tuple[float, list[str]]]:
    """Give what the slow links cost in all, and the words."""
    for slow in found.slow[:_SHOWN]:
        yield slow.lost_ns, [_link(slow)]
    if (more := len(found.slow) - _SHOWN) > 0:
        yield 0, [f"{more} more groups are slower than their like (--csv --table groups)."]


def _link(slow: SlowLink) -> str:
    link = slow.link
    rate = "" if link.bus_rate is None else f" (bus {number(link.bus_rate / 1e9)} GB/s)"
    return (
        f"The link between {slow.label} is slow: {spelled(link.sort)} moves data for"
        f" {duration(link.transfer_ns)}{rate}, {number(slow.times)} times the"
        f" {duration(slow.usual_ns)} of {slow.like} like groups;"
        f" {duration(slow.lost_ns)} in {count(link.calls)} calls."
    )


def spelled(sort: Sort) -> str:
    """Spell a sort of collective for a sentence."""
    about = "about " if sort.mixed else ""
    size = "" if sort.bytes is None else f" of {about}{amount(sort.bytes, 'B')}"
    return f"{sort.kind or 'collective'}{size}"


def _layer(found: Across) -> Iterator[str]:
    layers = [one for one in found.layers if one.ranks > 1 and one.layer != NO_LAYER]
    uneven = [one for one in layers if (one.imbalance or 1) > _UNEVEN]
    for one in uneven[:1]:
        over = (one.imbalance or 1) - 1
        yield (f"Layer {one.layer} is uneven: rank {one.rank} spends {duration(one.most_ns)} in it,"
               f" {percent(over)} % more than the mean of {one.ranks} ranks.")  # fmt: skip
