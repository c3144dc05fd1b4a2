"""Totals, the ops, kernels, layers and lines that took longest, and advice, as Markdown."""

from __future__ import annotations

from typing import TYPE_CHECKING, BinaryIO

from pyprof.prof.known import known
from pyprof.report.advice import advise
from pyprof.report.markdown import escape, table
from pyprof.report.numbers import count
from pyprof.report.text import duration, number, percent, short_line
from pyprof.report.timeline import timeline
from pyprof.report.totals import totals

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyprof.prof.table import Table
    from pyprof.report.advice import Advice
    from pyprof.report.source import Source

SUFFIXES = (".md",)

_TOP = 20
_EVIDENCE = 3
_SECTIONS = (("op", "Ops"), ("kernel", "Kernels"), ("layer", "Layers"), ("line", "Source lines"))
_HEADER = ("calls", "GPU time", "share (%)", "mean", "TFLOP/s", "GB/s")


def write(source: Source, file: BinaryIO) -> None:
    """Write the report; tables that would say nothing are left out."""
    file.write("\n".join(_lines(source)).encode())


def _lines(source: Source) -> Iterator[str]:
    found = source.table
    total_ns = int(found.duration_ns.sum())
    yield "# GPU profile\n"
    yield f"{count(found.records.rows)} kernels and copies, {duration(total_ns)} of GPU time;"
    yield f"cost known for {known(found).percent:.1f} % of it.\n"
    for key, title in _SECTIONS:
        if rows := _rows(found, key):
            yield f"## {title}\n"
            yield table((key, *_HEADER), rows)
    timed = timeline(found.records, source.capture)
    if advice := advise(found, timed, source.capture):
        yield "## What could be won\n"
        yield "At most; gains overlap, they do not add up.\n"
        yield from (line for entry in advice for line in _advice(entry))
        yield ""


def _advice(entry: Advice) -> Iterator[str]:
    gain = "gain not known" if entry.gain_ns is None else f"up to {duration(entry.gain_ns)}"
    yield f"- **{gain}**: {escape(entry.title)}. To do: {escape(entry.action)}"
    for proof in entry.evidence[:_EVIDENCE]:
        place = f" at {short_line(proof.line)}" if proof.line else ""
        detail = f" ({proof.detail})" if proof.detail else ""
        what = f"{proof.what}{place}: {duration(proof.total_ns)} in {count(proof.count)}{detail}"
        yield f"  - {escape(what)}"


def _rows(found: Table, key: str) -> list[tuple[str, ...]]:
    """Give the longest groups; none where no row has this key."""
    groups = totals(found, [key])
    if all(group.key == (None,) for group in groups):
        return []
    return [
        (
            group.key[0] or "(none)",
            count(group.calls),
            duration(group.time_ns),
            percent(group.share),
            duration(group.time_ns / group.calls),
            _rate(group.flops_per_s, 1e12),
            _rate(group.bytes_per_s, 1e9),
        )
        for group in groups[:_TOP]
    ]


def _rate(value: float | None, unit: float) -> str:
    return number(None if value is None else value / unit)
