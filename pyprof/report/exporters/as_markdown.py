"""Totals, and the ops, kernels, layers and lines that took longest, as Markdown."""

from __future__ import annotations

from typing import TYPE_CHECKING, BinaryIO

from pyprof.prof.known import known
from pyprof.report.markdown import table
from pyprof.report.numbers import count
from pyprof.report.text import duration, number, percent
from pyprof.report.totals import totals

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyprof.prof.table import Table
    from pyprof.report.source import Source

SUFFIXES = (".md",)

_TOP = 20
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
