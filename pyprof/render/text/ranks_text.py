"""A comparison of ranks as text: clocks, ranks, stragglers, collectives, links and layers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyprof.answers.summary_answer import NO_LAYER
from pyprof.quantities import DASH, amount, counted, duration, number, spans
from pyprof.render.text import formatting
from pyprof.render.text.formatting import count, milliseconds, percent
from pyprof.render.text.layout.text_width import cut_middle, cut_start
from pyprof.render.text.ranks_head import head

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyprof.answers.ranks_answer import (
        CollectiveKey,
        LateCost,
        Ranks,
        RankUse,
        StragglerCost,
    )

_SHOWN = 3
_NOTHING = "No rank, link or layer stands out."
_ALONE = "Only one rank: nothing to compare; name the captures of the other ranks, too."


def in_words(job: Ranks) -> Iterator[str]:
    """Name the straggler and the slow links, most expensive first, and the uneven layer.

    Says so if there are none.
    """
    findings = [
        *_stragglers(job),
        *_stalls(job),
        *_slow_links(job),
        *_waiting_outside_of_steps(job),
    ]
    findings.sort(key=lambda entry: -entry[0])
    lines = [*(line for _, lines in findings for line in lines), *_unevenness(job)]
    lines += _waiting_for_absent(job)
    yield from lines or [_ALONE if job.rank_count == 1 else _NOTHING]


_ROLES: Mapping[str | None, str] = {
    "straggler": "is the straggler",
    "stage": "works longest, and other stages wait for it",
    "unawaited": "works longest, but the others seldom wait for it",
    "unclear": "works longest; the clocks cannot tell how long the others wait for it",
}


def _stragglers(job: Ranks) -> Iterator[tuple[float, list[str]]]:
    """Yield what the stragglers cost in all, and the text."""
    cost_of = {one.rank: one for one in job.stragglers}
    slow = [cost_of[rank] for rank in job.slowest_ranks]
    if not slow:
        return
    first = slow[0]
    sentence = f"Rank {first.rank} {_ROLES[first.role]}: {'; '.join(_evidence(job, first))}."
    if len(slow) > 1:
        sentence = _describe_stragglers(job, slow)
    one = next(each for each in job.ranks if each.rank == first.rank)
    compare = f"pyprof summary {one.source} with that of another rank, or use pyprof diff."
    if sum(each.source == one.source for each in job.ranks) > 1:
        summary = f"pyprof summary --where device={one.device} {one.source}"
        compare = f"{summary} with that of another rank's device."
    cost = (first.excess_ns or 0) * job.step_count or first.cost_ns / job.peer_count
    yield cost, [sentence, f"  Compare {compare}"]


def _waiting_outside_of_steps(job: Ranks) -> Iterator[tuple[float, list[str]]]:
    """Yield how long others waited for a rank outside of steps, as for its checkpoint; the text."""
    for one in job.stragglers:
        if one.awaited_outside_steps:
            each_ns = (one.cost_ns - (one.cost_in_steps_ns or 0)) / job.peer_count
            span_ns = max(gpu.span_ns for gpu in job.ranks)
            waited = f"the others waited {duration(each_ns)} each"
            if job.peer_count == 1:
                waited = f"the other waited {duration(each_ns)}"
            share = f"{percent(each_ns / span_ns)} % of the time recorded"
            yield each_ns, [f"Outside of steps, {waited} for rank {one.rank}: {share}."]


def _stalls(job: Ranks) -> Iterator[tuple[float, list[str]]]:
    """Yield how long others waited for ranks that are late in some steps only; the text."""
    if not job.stalls:
        return
    each_ns = sum(one.waited_ns for one in job.stalls)
    span_ns = max(one.span_ns for one in job.ranks)
    late = sorted({one.rank for one in job.stalls})
    ranks = spans(late)
    who = f"{ranks[0].upper()}{ranks[1:]} {'stalls' if len(late) == 1 else 'stall in turn'}"
    others, each = ("other", "") if job.peer_count == 1 else ("others", " each")
    worst = max(job.stalls, key=lambda one: one.waited_ns)
    source = next(one.source for one in job.ranks if one.rank == worst.rank)
    finding = (
        f"{who}, in {counted(len(job.stalls), 'step')} of {job.step_count}: the {others} waited"
        f" {duration(each_ns)}{each}, {percent(each_ns / span_ns)} % of the time recorded"
        f"{'' if job.slowest_ranks else '; no rank works longer in three of four steps'}."
    )
    look = f"See pyprof summary --steps {worst.step} {source}"
    yield each_ns, [finding, f"  {look}: late data, a checkpoint or garbage collection, perhaps."]


def _waiting_for_absent(job: Ranks) -> Iterator[str]:
    """Say who came last, but may have waited for a rank that has no capture; or that all may."""
    if not job.missing_ranks:
        return
    unclear = {*job.waiting_for_missing_ranks}
    late = sorted(one.rank for one in job.stragglers if one.last and one.rank in unclear)
    them = "it" if len(job.missing_ranks) == 1 else "them"
    unknown = f"{spans(job.missing_ranks)}, of which there is no capture: name {them}, too."
    if late:
        ranks = spans(late)
        yield f"{ranks[0].upper()}{ranks[1:]} may come last only because of waiting for {unknown}"
    elif not job.slowest_ranks and job.all_may_wait_for_missing:
        yield f"All of these may wait for {unknown}"


def _evidence(job: Ranks, one: StragglerCost) -> Iterator[str]:
    steps = job.step_count
    each = one.cost_to_each_ns
    if one.of:
        yield f"it arrived last at {count(one.last)} of {counted(one.of, 'collective')}"
    pair = job.peer_count == 1
    if total_ns := one.cost_in_steps_ns:
        unit = " per step" if steps else ""
        in_all = f", {duration(total_ns)} in total" if steps or not pair else ""
        others = "other" if pair else "others"
        yield f"the {others} waited {duration(each)}{unit}{'' if pair else ' each'} for it{in_all}"
    if one.excess_ns is not None:
        others = "the other's" if pair else "the median of the others"
        yield (f"without communication its step takes {duration(one.own_ns)},"
               f" {duration(one.excess_ns)} more than {others}")  # fmt: skip
        if one.excess_hidden:
            yield "others arrive as late or later, which hides most of it"


def _describe_stragglers(job: Ranks, slow: list[StragglerCost]) -> str:
    cost = sum(one.cost_in_steps_ns or 0 for one in slow)
    ranks = spans(sorted(one.rank for one in slow))
    host = ", a whole host (inferred)," if job.slowest_are_a_host else ""
    role = "delay the others"
    if slow[0].role == "unawaited":
        role = "work longest, but the others do not wait for them"
    own = "" if slow[0].excess_ns is None else (
        f" without communication, their steps take up to {duration(slow[0].own_ns)},"
        f" {duration(slow[0].excess_ns)} more than the median of the others;"
    )  # fmt: skip
    return (
        f"{ranks[0].upper()}{ranks[1:]}{host} {role}:{own} the others waited {duration(cost)} for"
        f" one of them, {duration(job.waited_for_several_ns)} for several at once."
    )


def _slow_links(job: Ranks) -> Iterator[tuple[float, list[str]]]:
    """Yield what the slow links cost in all, and the text."""
    for slow in job.slow_groups[:_SHOWN]:
        bus = slow.bus_bytes_per_s
        rate = "" if bus is None else f" (bus {number(bus / 1e9)} GB/s)"
        group_speed = (
            f"The link between {spans(map(int, slow.members.split()))} is slow:"
            f" {format_kind(slow)} transfers data for"
            f" {duration(slow.transfer_ns)}{rate}, {number(slow.times_like_groups)} times the"
            f" {duration(slow.usual_ns)} of {counted(slow.like_groups, 'similar group')};"
            f" {duration(slow.lost_ns)} in {counted(slow.calls, 'call')}."
        )
        yield slow.lost_ns, [group_speed]
    if (more := len(job.slow_groups) - _SHOWN) > 0:
        yield 0, [f"... and {counted(more, 'more slower group')} (--csv groups)."]


def format_kind(key: CollectiveKey | LateCost) -> str:
    """Format a kind of collective for a sentence."""
    about = "about " if key.mixed else ""
    size = "" if key.bytes is None else f" of {about}{amount(key.bytes, 'B')}"
    return f"{key.kind or 'collective'}{size}"


def _unevenness(job: Ranks) -> Iterator[str]:
    """Name the uneven layer, the stage with the largest bubble, and the busiest experts' rank."""
    for one in [one for one in job.layers if one.uneven][:1]:
        over = (one.imbalance or 1) - 1
        yield (f"Layer {one.layer} is uneven: rank {one.rank} spends {duration(one.most_ns)} in it,"
               f" {percent(over)} % more than the mean of {one.ranks} ranks.")  # fmt: skip
    if (bubble := job.bubble) is not None:
        remedy = "more micro-batches reduce that"
        if bubble.busiest is not None:
            remedy = (f"stages of equal length reduce that: rank {bubble.busiest} computes"
                      f" {duration(bubble.longer_ns)} longer")  # fmt: skip
        spends = f"Rank {bubble.rank} spends {percent(bubble.share)} % of its time"
        if bubble.in_pipeline:
            yield f"{spends} in pipeline bubbles, waiting for other stages; {remedy}."
        else:
            yield (f"{spends} sending or receiving while it computes nothing; in a pipeline,"
                   f" {remedy}.")  # fmt: skip
    for axis in job.parallelism:
        if axis.uneven:
            yield (f"Experts are unevenly used: rank {axis.busiest} receives"
                   f" {axis.imbalance:.2f} times the mean of its ranks.")  # fmt: skip


_LAYER_WIDTH = 48
_NEWS = 0.01
"""Stragglers are listed if they cost at least this share of the most expensive one."""


def report_lines(job: Ranks, top: int) -> Iterator[str]:
    """Yield the sections, with an empty line between them; each lists `top` rows at most."""
    tables = (ranks, straggler_lines, parallelism, collectives, layers)
    yield from formatting.separated([head(job), *(table(job, top) for table in tables)])
    yield ""
    yield formatting.heading("In words")
    for sentence in in_words(job):
        yield from formatting.wrapped(
            sentence.lstrip(), " " * (len(sentence) - len(sentence.lstrip())), "  "
        )


def ranks(job: Ranks, top: int) -> Iterator[str]:
    """Tabulate time per rank; if there are many, only the first ones and the stragglers."""
    slowest = {*job.slowest_ranks}
    shown = [
        one for index, one in enumerate(job.ranks)
        if index < top or one.rank in slowest
    ]  # fmt: skip
    waited = {one.rank: one for one in job.stragglers}
    header = ("Rank", "GPU", "Span ms", "Step ms", "Busy%", "Compute%", "Comm%", "Exposed%",
              *(["Bubble%"] if job.is_staged else []), "Idle%", "Own ms/step", "Waited ms",
              "Clock us", "Residual us")  # fmt: skip
    yield from _table([_rank(job, one, waited[one.rank]) for one in shown], header, ())
    if rest := len(job.ranks) - len(shown):
        yield f"... and {rest} more (--top {len(job.ranks)})"


def _rank(job: Ranks, one: RankUse, waited: StragglerCost) -> list[str]:
    bubble = [one.bubble_ns] if job.is_staged else []
    shares = [one.busy_ns, one.compute_ns, one.communication_ns, one.exposed_ns, *bubble,
              one.idle_ns]  # fmt: skip
    return [
        str(one.rank),
        str(one.device),
        milliseconds(one.span_ns),
        milliseconds(one.step_ns),
        *(percent(ns / one.span_ns if one.span_ns and ns is not None else None) for ns in shares),
        milliseconds(waited.own_ns),
        milliseconds(None if one.clock is None else waited.waited_ns),
        DASH if one.clock_offset_ns is None else f"{one.clock_offset_ns / 1e3:+,.1f}",
        DASH if one.clock_residual_ns is None else f"{one.clock_residual_ns / 1e3:,.1f}",
    ]


def straggler_lines(job: Ranks, top: int) -> Iterator[str]:
    """Tabulate the ranks that others waited for."""
    costly = [one for one in job.stragglers if one.cost_ns]
    if not costly:
        return
    top = min(top, sum(one.cost_ns >= _NEWS * costly[0].cost_ns for one in costly))
    worst, mostly = _worst_steps(job), {}
    for one in reversed(job.late):  # the most expensive kind of collective is the first
        mostly[one.rank] = f"{format_kind(one)}, {len(one.members.split())} ranks"
    header = ("Straggler", "Last at", "of", "Others waited ms", "ms/step", "each ms/step",
              "Own over others' ms/step", "Worst step", "Mostly at")  # fmt: skip
    rows = [
        [
            f"rank {one.rank}",
            count(one.last),
            count(one.of),
            milliseconds(one.cost_ns),
            *(
                milliseconds(others * (one.cost_to_each_ns or 0) if job.step_count else None)
                for others in (job.peer_count, 1)
            ),
            milliseconds(one.excess_ns),
            worst.get(one.rank, DASH),
            mostly.get(one.rank, DASH),
        ]
        for one in costly[:top]
    ]
    yield from _table(rows, header, (0, len(header) - 1))
    if rest := costly[top:]:
        yield f"... and {len(rest)} more, {milliseconds(sum(one.cost_ns for one in rest))} ms"
    for several in job.together[:1]:
        yield (
            f"{milliseconds(job.waited_for_several_ns)} ms more waiting for several ranks that"
            f" arrived last together, mostly {spans(map(int, several.ranks.split()))}:"
            f" {milliseconds(several.cost_ns)} ms"
        )


def _worst_steps(job: Ranks) -> dict[int, str]:
    most: dict[int, tuple[int, int]] = {}
    for one in job.steps:
        most[one.rank] = max(most.get(one.rank, (0, 0)), (one.cost_ns, -one.step))
    return {rank: f"{-step}: {milliseconds(ns)} ms" for rank, (ns, step) in most.items()}


def parallelism(job: Ranks, top: int) -> Iterator[str]:
    """Tabulate what process groups are used for, as far as that is known."""
    if not any(axis.role for axis in job.parallelism):
        return
    header = ("Parallelism", "Known by", "Groups", "Ranks", "Calls", "Communication ms",
              "Exposed ms", "Hidden%", "Imbalance")  # fmt: skip
    rows = [
        [
            axis.role or DASH,
            axis.evidence or DASH,
            str(axis.groups),
            str(axis.ranks),
            count(axis.calls),
            milliseconds(axis.communication_ns),
            milliseconds(axis.exposed_ns),
            percent(1 - axis.exposed_ns / axis.communication_ns if axis.communication_ns else None),
            DASH if axis.imbalance is None else f"{axis.imbalance:.2f}x, rank {axis.busiest}",
        ]
        for axis in job.parallelism[:top]
    ]
    yield from _table(rows, header, (0, 1))
    yield "Calls and times are means per rank. Exposed: while nothing was computed."


def collectives(job: Ranks, top: int) -> Iterator[str]:
    """Tabulate collectives by kind, algorithm, size and number of ranks."""
    if not job.collectives:
        return
    header = ("Collective", "Algorithm", "Ranks", "Groups", "Calls", "Size", "Wait ms",
              "Transfer ms", "Alg GB/s", "Bus GB/s")  # fmt: skip
    rows = [
        [
            one.kind or DASH,
            one.algorithm or DASH,
            str(one.captured_ranks),
            str(one.groups),
            count(one.calls),
            f"{'~' if one.mixed and one.bytes else ''}{amount(one.bytes, 'B')}",
            milliseconds(one.wait_ns),
            milliseconds(one.transfer_ns),
            number(one.algorithm_bytes_per_s and one.algorithm_bytes_per_s / 1e9),
            number(one.bus_bytes_per_s and one.bus_bytes_per_s / 1e9),
        ]
        for one in job.collectives[:top]
    ]
    yield from _table(rows, header, (0, 1))
    if len(job.collectives) > top:
        yield f"... and {len(job.collectives) - top} more (--top {len(job.collectives)})"
    yield "Wait: mean time until the last rank arrives. Transfer: median time from then on."
    if any(one.mixed and one.bytes for one in job.collectives[:top]):
        yield "~: mean of sizes that differ among ranks or calls."


def layers(job: Ranks, top: int) -> Iterator[str]:
    """Tabulate the layers whose time differs most between ranks."""
    uneven = [one for one in job.layers if one.ranks > 1]
    if all(one.layer == NO_LAYER for one in uneven):
        return
    header = ("Layer", "Ranks", "Mean ms", "Most ms", "Most/mean", "On rank")
    rows = [
        [cut_start(one.layer, _LAYER_WIDTH), str(one.ranks), milliseconds(one.mean_ns),
         milliseconds(one.most_ns), number(one.imbalance), str(one.rank)]
        for one in uneven[:top]
    ]  # fmt: skip
    yield from _table(rows, header, (0,))
    if len(uneven) > top:
        yield f"... and {len(uneven) - top} more (--top {len(uneven)})"


def _table(rows: list[list[str]], header: tuple[str, ...], left: tuple[int, ...]) -> Iterator[str]:
    return formatting.layout_table(rows, header, left, dict.fromkeys(left, cut_middle))
