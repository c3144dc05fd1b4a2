"""What counters measured, as text: a few sentences, then a line for each op."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyprof.quantities import amount, duration, number
from pyprof.render.text import formatting
from pyprof.render.text.formatting import milliseconds, part_name, percent
from pyprof.render.text.layout.text_width import cut_middle

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pyprof.answers.summary_answer import Measured, MeasuredOp, Summary

    Column = tuple[str, Callable[[MeasuredOp], float | None], Callable[[float | None], str]]

TITLE = "Measured"
_SOURCES = {
    "ncu": "by ncu",
    "joined": "by ncu in another run",
    "repeated": "by ncu of kernels alike",
    "args": "by CUPTI",
    "rocprofv3": "by rocprofv3",
    "samples": "by sampling",
}


def _mean(name: str) -> Callable[[MeasuredOp], float | None]:
    return lambda op: op.means[name]


def _share(value: float | None) -> str:
    return percent(value and value / 100)


_COLUMNS: tuple[Column, ...] = (
    ("ms", lambda op: op.time_ns, milliseconds),
    ("DRAM", lambda op: op.dram_bytes, lambda value: amount(value, "B")),
    ("GB/s", lambda op: op.dram_bytes_per_s and op.dram_bytes_per_s / 1e9, number),
    ("Excess", lambda op: op.excess, number),
    ("L2hit%", _mean("l2hit"), _share),
    ("Tensor%", _mean("tensor"), _share),
    ("Occ%", _mean("occ"), _share),
    ("OccM%", _mean("occmeas"), _share),
    ("MHz", _mean("clock"), number),
    ("Energy", lambda op: op.energy_j, lambda value: amount(value, "J")),
)

_MEANINGS = {
    "Excess": "DRAM traffic over the least that the op needs",
    "Occ%": "occupancy that the launch allows",
    "OccM%": "measured occupancy",
}


def sentences(measured: Measured, whole_ns: int) -> Iterator[str]:
    """What was measured, by what, and what contradicts the model; `whole_ns`: time of all rows."""
    parts = [
        f"{percent(ns / (whole_ns or 1))} % of GPU time {_SOURCES.get(source, source)}"
        for source, ns in measured.sources_ns.items()
    ]
    yield "; ".join(parts) or "only the power of the devices"
    yield from _energy(measured)
    if measured.throttled:
        yield measured.throttled
    yield from measured.contradictions[:_SHOWN]
    if (more := len(measured.contradictions) - _SHOWN) > 0:
        yield f"... and {more:,} more kernels contradict their names"


_SHOWN = 5


def _energy(measured: Measured) -> Iterator[str]:
    for power in measured.power[:_SHOWN]:
        rank = "" if power.rank is None else f"rank {power.rank}, "
        yield (
            f"{rank}GPU {power.device}: {amount(power.energy_j, 'J')}"
            f" in {duration(power.sampled_s * 1e9)}"
            f", {power.mean_w:,.0f} W on average, {power.most_w:,.0f} W at most"
        )
    if len(measured.power) > _SHOWN:
        energy_j = sum(power.energy_j for power in measured.power)
        yield f"all {len(measured.power):,} GPUs: {amount(energy_j, 'J')}"
    if measured.energy_j is None:
        return
    share = measured.energy_known_share
    known = "" if share > _NEARLY_ALL else f", known for {percent(share)} % of the time: at least"
    text = f"energy while kernels ran{known or ':'} {amount(measured.energy_j, 'J')}"
    if measured.energy_step_j is not None:
        text += f", {amount(measured.energy_step_j, 'J')} a step"
    if measured.energy_token_j is not None:
        text += f", {amount(measured.energy_token_j, 'J')} a token"
    yield text


_NEARLY_ALL = 0.995


def columns(ops: Sequence[MeasuredOp]) -> list[Column]:
    """Title, value and format of each column that is not empty."""
    return [entry for entry in _COLUMNS if any(entry[1](op) is not None for op in ops)]


def section(answer: Summary, limit: int) -> Iterator[str]:
    """Yield the section of the summary; no line if nothing was measured."""
    if answer.measured is None:
        return
    yield formatting.heading(TITLE)
    for sentence in sentences(answer.measured, answer.known_cost.total_ns):
        yield from formatting.wrapped(sentence, "- ", "  ")
    if ops := answer.measured.ops[:limit]:
        shown, directed = columns(ops), any(op.dir for op in ops)
        header = ["Op", *["Direction"] * directed, *(title for title, _, _ in shown)]
        rows = [
            [
                str(op.op or op.kernel),
                *[part_name(op.dir)] * directed,
                *(form(value(op)) for _, value, form in shown),
            ]
            for op in ops
        ]
        cuts = {0: cut_middle}
        yield from formatting.layout_table(rows, header, range(1 + directed), cuts)
        meanings = [f"{title}: {_MEANINGS[title]}" for title, _, _ in shown if title in _MEANINGS]
        if meanings:
            yield from formatting.wrapped(f"{'; '.join(meanings)}.")
