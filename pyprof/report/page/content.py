"""What the report's page shows of a capture, small enough to send; that of several makes one."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from pyprof.report import brief, source, source_lines, totals
from pyprof.report.overview import overview
from pyprof.report.page.icicle import OPS
from pyprof.report.page.roofline import achieved
from pyprof.report.page.sections import KERNELS, full_names
from pyprof.report.page.strip import strips

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import pyarrow as pa

    from pyprof.prof.table import Override
    from pyprof.report.brief import Brief
    from pyprof.report.page.roofline import Achieved
    from pyprof.report.page.strip import Strips
    from pyprof.report.source import Source
    from pyprof.report.source_lines import SourceLines
    from pyprof.sets.engine import Engine


@dataclass(frozen=True, slots=True)
class Content:
    """Sums over rows, and a drawing of some of them."""

    brief: Brief
    kernels: pa.Table
    """`totals.sums` by KERNELS."""
    full_names: Mapping[str, str]
    """Of kernels, by their short ones."""
    ops: pa.Table
    """`totals.sums` by OPS."""
    lines: SourceLines
    achieved: Achieved
    strips: Strips | None
    warnings: tuple[str, ...]
    """What the capture's reader warns of."""


def content(of: Source, chosen: str | None = None) -> Content:
    """Sum up a capture, or the steps of it that `chosen` (`3:`) names.

    Raises click.BadParameter where it names none.
    """
    table, found = of.table, overview(of, chosen)
    return Content(
        brief.shortened(of, found),
        totals.sums(table, KERNELS, found.rows),
        full_names(table),
        totals.sums(table, OPS, found.rows),
        source_lines.source_lines(table, found.rows),
        achieved(table, found.rows),
        strips(of, found),
        table.source.warnings,
    )


def of_all(
    sources: Sequence[str],
    chosen: str | None,
    override: Override,
    engine: Engine,
    begin: Callable[[str], object] = str,
) -> Content:
    """Sum up one file, or all captures of a set. Raises as `content` and `source.load` do."""
    work = partial(content, chosen=chosen)
    return source.of_all(sources, work, merge, engine, override, begin)


def merge(a: Content, b: Content) -> Content:
    """Sum up two sets of captures from what was found of each."""
    return Content(
        brief.merge(a.brief, b.brief),
        totals.merge(a.kernels, b.kernels),
        {**b.full_names, **a.full_names},
        totals.merge(a.ops, b.ops),
        source_lines.merge(a.lines, b.lines),
        a.achieved.plus(b.achieved),
        a.strips.plus(b.strips) if a.strips and b.strips else a.strips or b.strips,
        source.distinct(a.warnings, b.warnings),
    )
