"""What was found across ranks as text: clocks, ranks, stragglers, collectives, layers, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyprof.report import text
from pyprof.report.across.head import head
from pyprof.report.across.in_words import in_words, spelled
from pyprof.report.across.in_words import stragglers as slow_ranks
from pyprof.report.across.links import alike
from pyprof.report.across.match import spans
from pyprof.report.numbers import amount, count
from pyprof.report.text import UNKNOWN, milliseconds, percent
from pyprof.report.tree import NO_LAYER

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyprof.report.across.links import Link
    from pyprof.report.across.stragglers import Straggler
    from pyprof.report.across.whole import Across, RankTime

_LAYER_WIDTH = 48
_NEWS = 0.01
"""Stragglers are listed that cost at least this share of what the dearest costs."""


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
              "Own over others' ms/step", "Worst step", "Mostly at")  # fmt: skip
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
        named.setdefault(one.rank, f"{spelled(one.sort)}, {len(one.group.ranks)} ranks")
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
    if any(one.sort.mixed and one.sort.bytes for one in joined[:top]):
        yield "~: sizes differ among ranks or calls; the mean."


def _link(one: Link) -> list[str]:
    return [
        one.sort.kind or UNKNOWN,
        one.sort.algorithm or UNKNOWN,
        str(len(one.groups[0].ranks)),
        str(len(one.groups)),
        count(one.calls),
        f"{'~' if one.sort.mixed and one.sort.bytes else ''}{amount(one.sort.bytes, 'B')}",
        milliseconds(one.wait_ns),
        milliseconds(one.transfer_ns),
        text.number(one.algorithm_rate and one.algorithm_rate / 1e9),
        text.number(one.bus_rate and one.bus_rate / 1e9),
    ]


def layers(found: Across, top: int) -> Iterator[str]:
    """Tabulate the layers whose time differs most between ranks."""
    uneven = [one for one in found.layers if one.ranks > 1]
    if all(one.layer == NO_LAYER for one in uneven):
        return
    header = ("Layer", "Ranks", "Mean ms", "Most ms", "Most/mean", "On rank")
    rows = [
        [text.cut_left(one.layer, _LAYER_WIDTH), str(one.ranks), milliseconds(one.mean_ns),
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
