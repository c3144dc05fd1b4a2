"""What was found across ranks as text: clocks, ranks, stragglers, collectives, layers, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pyprof.report import text
from pyprof.report.across.in_words import in_words
from pyprof.report.across.in_words import stragglers as slow_ranks
from pyprof.report.across.links import alike
from pyprof.report.across.match import spans
from pyprof.report.numbers import amount, count
from pyprof.report.text import UNKNOWN, duration, milliseconds, percent

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyprof.report.across.links import Link
    from pyprof.report.across.stragglers import Straggler
    from pyprof.report.across.whole import Across, RankTime

_LAYER_WIDTH = 48
_NO_STEPS = "none found; call pyprof.annotate('step') around each to see them"


def lines(found: Across, top: int) -> Iterator[str]:
    """Give the sections, with an empty line between them; each lists `top` rows at most."""
    yield from head(found)
    for section in (ranks, stragglers, collectives, layers):
        if shown := list(section(found, top)):
            yield ""
            yield from shown
    yield ""
    yield text.heading("In words")
    yield from in_words(found)


def head(found: Across) -> Iterator[str]:
    """Say which ranks there are, how steps were found, and how well clocks agree."""
    names = sorted({one.gpu or "not named by the capture" for one in found.ranks})
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
    others = list(found.clocks.values())
    if len(others) < 2:  # noqa: PLR2004 - nothing to align
        yield "cannot be aligned: no two ranks share collectives; waiting is not known"
        return
    residuals = [one.residual_ns for one in others]
    offsets = [abs(one.offset_ns) for one in others]
    yield (
        f"{len(others)} ranks aligned on their collectives; offsets up to {duration(max(offsets))};"
        f" residual {duration(float(np.median(residuals)))}, at most {duration(max(residuals))}:"
        " shorter waits are not told"
    )
    if drifting := sum(one.drift != 0 for one in others):
        fastest = max(abs(one.drift) for one in others)
        yield f"{drifting} drift, by up to {fastest * 1e6:.3g} us a second; taken away"
    if found.unaligned:
        yield f"not aligned, for want of shared collectives: {_some(found.unaligned)}"


def _groups(found: Across) -> Iterator[str]:
    groups = found.matched.groups
    sizes: dict[int, int] = {}
    for group in groups:
        sizes[len(group.ranks)] = sizes.get(len(group.ranks), 0) + 1
    parts = [f"{number} of {size} ranks" for size, number in sorted(sizes.items(), reverse=True)]
    if parts:
        told = "" if all(group.named for group in groups) else (
            "; where captures name none, told by streams whose ranks leave together"
        )  # fmt: skip
        yield f"{', '.join(parts)}{told}"
    for one in found.matched.unmatched[:_SHOWN]:
        yield f"{one.count} collectives of rank {one.rank} in {one.group} unmatched: {one.why}"
    if len(found.matched.unmatched) > _SHOWN:
        yield f"... and {len(found.matched.unmatched) - _SHOWN} more unmatched (--json has all)"

    if wrong := sum(one.impossible for one in found.waits):
        yield f"{wrong} collectives are left by some before the last comes: nothing is told of them"


_SHOWN = 4
_NEWS = 0.01
"""Stragglers are listed that cost at least this share of what the dearest costs."""


def _some(ranks: list[int]) -> str:
    return " ".join(map(str, ranks[:16])) + (" ..." if len(ranks) > 16 else "")  # noqa: PLR2004


def ranks(found: Across, top: int) -> Iterator[str]:
    """Tabulate time per rank; of many, the first ones and the stragglers."""
    dear = {one.rank for one in slow_ranks(found)}
    shown = [
        one for place, one in enumerate(found.ranks)
        if place < top or one.rank in dear
    ]  # fmt: skip
    waited = {one.rank: one for one in found.stragglers}
    header = ("Rank", "GPU", "Span ms", "Step ms", "Busy%", "Compute%", "Comm%", "Exposed%",
              "Idle%", "Own ms/step", "Waited ms", "Clock us", "Residual us")  # fmt: skip
    yield from _table([_rank(found, one, waited[one.rank]) for one in shown], header, ())
    if rest := len(found.ranks) - len(shown):
        yield f"... and {rest} more (--top {len(found.ranks)})"


def _rank(found: Across, one: RankTime, waited: Straggler) -> list[str]:
    clock = found.clocks.get(one.rank)
    shares = (one.busy_ns, one.compute_ns, one.communication_ns, one.exposed_ns, one.idle_ns)
    return [
        str(one.rank),
        str(one.device),
        milliseconds(one.span_ns),
        milliseconds(one.step_ns),
        *(percent(ns / one.span_ns if one.span_ns else None) for ns in shares),
        milliseconds(waited.own_ns),
        milliseconds(waited.waited_ns if clock else None),
        UNKNOWN if clock is None else f"{clock.offset_ns / 1e3:+,.1f}",
        UNKNOWN if clock is None else f"{clock.residual_ns / 1e3:,.1f}",
    ]


def stragglers(found: Across, top: int) -> Iterator[str]:
    """Tabulate the ranks that others waited for."""
    dear = [one for one in found.stragglers if one.cost_ns]
    if not dear:
        return
    top = min(top, sum(one.cost_ns >= _NEWS * dear[0].cost_ns for one in dear))
    steps = found.step_count or 1
    peers = max(len(found.numbers) - 1, 1)
    worst, mostly = _worst_steps(found), _mostly_at(found)
    header = ("Straggler", "Last at", "of", "Others waited ms", "ms/step", "each ms/step",
              "Own over median ms/step", "Worst step", "Mostly at")  # fmt: skip
    rows = [
        [
            f"rank {one.rank}",
            count(one.last),
            count(one.of),
            milliseconds(one.cost_ns),
            milliseconds(one.cost_ns / steps),
            milliseconds(one.cost_ns / steps / peers),
            milliseconds(one.excess_ns),
            worst.get(one.rank, UNKNOWN),
            mostly.get(one.rank, UNKNOWN),
        ]
        for one in dear[:top]
    ]
    yield from _table(rows, header, (0, len(header) - 1))
    if rest := dear[top:]:
        yield f"... and {len(rest)} more, {milliseconds(sum(one.cost_ns for one in rest))} ms"
    for several in found.together[:1]:
        yield (
            f"{milliseconds(found.unclear_ns)} ms more were waited for several ranks that came last"
            f" together, most for {spans(list(several.ranks))}: {milliseconds(several.cost_ns)} ms"
        )


def _worst_steps(found: Across) -> dict[int, str]:
    most: dict[int, tuple[int, int]] = {}
    for one in found.step_waits:
        most[one.rank] = max(most.get(one.rank, (0, 0)), (one.cost_ns, -one.step))
    return {rank: f"{-step}: {milliseconds(ns)} ms" for rank, (ns, step) in most.items()}


def _mostly_at(found: Across) -> dict[int, str]:
    """Name the sort of collective at which each rank cost most: the dearest stand first."""
    named: dict[int, str] = {}
    for one in found.late:
        size = "" if one.bytes is None else f" of {amount(one.bytes, 'B')}"
        named.setdefault(
            one.rank, f"{one.kind or 'collective'}{size}, {len(one.group.ranks)} ranks"
        )
    return named


def collectives(found: Across, top: int) -> Iterator[str]:
    """Tabulate collectives by kind, algorithm, size and number of ranks."""
    joined = alike(found.links)
    if not joined:
        return
    header = ("Collective", "Algorithm", "Ranks", "Groups", "Calls", "Size", "Wait ms",
              "Transfer ms", "Alg GB/s", "Bus GB/s")  # fmt: skip
    yield from _table([_link(one) for one in joined[:top]], header, (0, 1))
    if len(joined) > top:
        yield f"... and {len(joined) - top} more (--top {len(joined)})"
    yield "Wait: of a rank for the last to come, the mean. Transfer: from then on, the median."


def _link(one: Link) -> list[str]:
    return [
        one.kind or UNKNOWN,
        one.algorithm or UNKNOWN,
        str(len(one.groups[0].ranks)),
        str(len(one.groups)),
        count(one.calls),
        amount(one.bytes, "B"),
        milliseconds(one.wait_ns),
        milliseconds(one.transfer_ns),
        text.number(one.algorithm_rate and one.algorithm_rate / 1e9),
        text.number(one.bus_rate and one.bus_rate / 1e9),
    ]


def layers(found: Across, top: int) -> Iterator[str]:
    """Tabulate the layers whose time differs most between ranks."""
    uneven = [one for one in found.layers if one.ranks > 1]
    if not uneven:
        return
    header = ("Layer", "Ranks", "Mean ms", "Most ms", "Most/mean", "On rank")
    rows = [
        [text.cut(one.layer, _LAYER_WIDTH), str(one.ranks), milliseconds(one.mean_ns),
         milliseconds(one.most_ns), text.number(one.imbalance), str(one.rank)]
        for one in uneven[:top]
    ]  # fmt: skip
    yield from _table(rows, header, (0,))
    if len(uneven) > top:
        yield f"... and {len(uneven) - top} more (--top {len(uneven)})"


def _table(rows: list[list[str]], header: tuple[str, ...], left: tuple[int, ...]) -> Iterator[str]:
    first, *rest = text.table(rows, header, left)
    yield text.heading(first)
    yield from rest
