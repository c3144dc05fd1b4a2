"""What counters measured, as text: a few sentences, then a line for each op."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyprof.render.text import formatting
from pyprof.render.text.formatting import amount, duration, milliseconds, number, part_name, percent

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyprof.analysis.summary.counter_totals import CounterTotals, Sums

    _Column = tuple[str, Callable[[Sums], float | None], Callable[[float | None], str]]

TITLE = "Measured"
_MOST_NAME = 36
_SOURCES = {
    "ncu": "by ncu",
    "joined": "by ncu in another run",
    "repeated": "by ncu of kernels alike",
    "args": "by CUPTI",
    "samples": "by sampling",
}


def _mean(name: str) -> Callable[[Sums], float | None]:
    return lambda sums: sums.mean(name)


def _share(value: float | None) -> str:
    return percent(_scaled(value, 100))


_COLUMNS: tuple[_Column, ...] = (
    ("ms", lambda sums: sums.time_ns, milliseconds),
    ("DRAM", lambda sums: sums.dram_bytes, lambda value: amount(value, "B")),
    ("GB/s", lambda sums: _scaled(sums.dram_bytes_per_s, 1e9), number),
    ("Excess", lambda sums: sums.excess, number),
    ("L2hit%", _mean("l2hit"), _share),
    ("Tensor%", _mean("tensor"), _share),
    ("Occ%", _mean("occ"), _share),
    ("OccM%", _mean("occmeas"), _share),
    ("MHz", _mean("clock"), number),
    ("Energy", lambda sums: sums.energy_j, lambda value: amount(value, "J")),
)


def _scaled(value: float | None, by: float) -> float | None:
    return None if value is None else value / by


def sentences(
    totals: CounterTotals, steps: int | None = None, tokens: int | None = None
) -> Iterator[str]:
    """Say what was measured, by what, and what contradicts the model."""
    whole_ns = totals.whole_ns or 1
    parts = [
        f"{percent(ns / whole_ns)} % of GPU time {_SOURCES.get(source, source)}"
        for source, ns in totals.sources.items()
    ]
    yield "; ".join(parts) or "only the power of the devices"
    yield from _energy(totals, steps, tokens)
    if totals.throttled:
        yield totals.throttled
    for entry in totals.disagreements[:_SHOWN]:
        yield entry.text
    if (more := len(totals.disagreements) - _SHOWN) > 0:
        yield f"... and {more:,} more kernels contradict their names"


_SHOWN = 5


def _energy(totals: CounterTotals, steps: int | None, tokens: int | None) -> Iterator[str]:
    for power in totals.power[:_SHOWN]:
        yield (
            f"{power.name}: {amount(power.energy_j, 'J')} in {duration(power.time_s * 1e9)}, "
            f"{power.mean_w:,.0f} W on average, {power.most_w:,.0f} W at most"
        )
    if len(totals.power) > _SHOWN:
        energy_j = sum(power.energy_j for power in totals.power)
        yield f"all {len(totals.power):,} GPUs: {amount(energy_j, 'J')}"
    total = totals.total
    if total.energy_j is None:
        return
    share = totals.known_share("energy")
    known = "" if share > _NEARLY_ALL else f", known for {percent(share)} % of the time: at least"
    text_of_energy = f"energy while kernels ran{known or ':'} {amount(total.energy_j, 'J')}"
    if total.energy_step_j is not None:
        text_of_energy += f", {amount(total.energy_step_j, 'J')} a step"
    a_token = totals.energy_token_j(steps, tokens)
    if a_token is not None:
        text_of_energy += f", {amount(a_token, 'J')} a token"
    yield text_of_energy


_NEARLY_ALL = 0.995


def columns(totals: CounterTotals, limit: int) -> tuple[list[str], list[list[str]]]:
    """Give the header and the cells of a table by op; columns of which nothing is known are not."""
    sums = totals.top(limit)
    kept = [entry for entry in _COLUMNS if any(entry[1](row) is not None for row in sums)]
    header = ["Op", "Direction", *(title for title, _, _ in kept)]
    rows = [
        [row.name, part_name(row.direction), *(spell(value(row)) for _, value, spell in kept)]
        for row in sums
    ]
    return header, rows


def numbers(totals: CounterTotals, limit: int) -> list[dict[str, float | None]]:
    """Give the values of the same rows by the titles of their columns."""
    return [{title: value(row) for title, value, _ in _COLUMNS} for row in totals.top(limit)]


def section(
    totals: CounterTotals | None, limit: int, steps: int | None = None, tokens: int | None = None
) -> Iterator[str]:
    """Give the section of the summary; nothing where nothing was measured."""
    if totals is None:
        return
    yield formatting.heading(TITLE)
    for sentence in sentences(totals, steps, tokens):
        yield from formatting.wrapped(sentence, "- ", "  ")
    header, rows = columns(totals, limit)
    if rows:
        shown = [[formatting.cut(row[0], _MOST_NAME), *row[1:]] for row in rows]
        yield from formatting.fitted(shown, header, (0, 1), {0: formatting.cut})
    yield ""
