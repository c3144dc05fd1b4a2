"""Totals, the ops, kernels, layers and lines that took longest, and advice, as Markdown."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO

from pyprof.analysis.summary import op_totals
from pyprof.analysis.summary.composition import summary
from pyprof.analysis.summary.overview import SummarySums, summarise
from pyprof.answers.gains import gain_of
from pyprof.prof.processor import CPU
from pyprof.quantities import duration, number
from pyprof.render.text import formatting
from pyprof.render.text.formatting import count, percent, short_line
from pyprof.render.text.known_cost_text import without_copies

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import pyarrow as pa

    from pyprof.inputs.source import Source

KIND = "sums"
SUFFIXES = (".md",)

_TOP = 20
_EVIDENCE = 3
_SECTIONS = (("op", "Ops"), ("kernel", "Kernels"), ("layer", "Layers"), ("line", "Source lines"))
_HEADER = ("{} time", "share (%)", "mean", "TFLOP/s", "GB/s")


@dataclass(frozen=True, slots=True)
class ReportSums:
    """The content of the report, small enough to send."""

    rows: int
    groups: Mapping[str, pa.Table]
    """`op_totals.sums` by each column."""
    summary: SummarySums


def sums(source: Source) -> ReportSums:
    """Sum up a capture."""
    table = source.table
    groups = {key: op_totals.sums(table, [key]) for key, _ in _SECTIONS}
    return ReportSums(table.records.rows, groups, summarise(source))


def write(sums: ReportSums, file: BinaryIO) -> None:
    """Write the report, without empty tables."""
    file.write("\n".join(_lines(sums)).encode())


def _lines(sums: ReportSums) -> Iterator[str]:
    answer = summary(sums.summary)
    known = answer.known_cost
    on = known.processor
    yield f"# {on} profile\n"
    rows = "ops" if on == CPU else "kernels and copies"
    yield f"{count(sums.rows)} {rows}, {duration(known.total_ns)} of {on} time;"
    yield f"cost known for {100 * known.known_share:.1f} % of it{without_copies(known)}.\n"
    for key, title in _SECTIONS:
        if groups := _rows(sums.groups[key]):
            yield f"## {title}\n"
            counted = "calls" if key == "kernel" or on == CPU else "kernels"  # copies among them
            header = (key, counted, *(name.format(on) for name in _HEADER))
            yield formatting.markdown_table(header, groups)
    if answer.advice:
        yield "## Potential gains\n"
        yield "Predicted, or upper bounds; gains overlap and do not add up.\n"
        for entry in answer.advice:
            title, action = formatting.escape(entry.title), formatting.escape(entry.action)
            yield f"- **gain {gain_of(entry).words}**: {title}. To do: {action}"
            for proof in entry.evidence[:_EVIDENCE]:
                place = f" at {short_line(proof.line)}" if proof.line else ""
                detail = f" ({proof.detail})" if proof.detail else ""
                rows = f"{duration(proof.time_ns)} in {count(proof.count)}{detail}"
                yield f"  - {formatting.escape(f'{proof.what}{place}: {rows}')}"
        yield ""


def _rows(sums: pa.Table) -> list[tuple[str, ...]]:
    """Return the longest groups; none if no row has this key."""
    groups = op_totals.totals(sums)
    if all(group.key == (None,) for group in groups):
        return []
    return [
        (
            group.key[0] or "(none)",
            count(group.calls),
            duration(group.time_ns),
            percent(group.share),
            duration(group.time_ns / group.calls),
            number(group.flops_per_s and group.flops_per_s / 1e12),
            number(group.bytes_per_s and group.bytes_per_s / 1e9),
        )
        for group in groups[:_TOP]
    ]
