"""A comparison as a page: its changes sort and filter."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyprof.analysis.diff.waterfall import waterfall
from pyprof.render import page
from pyprof.render.page.sections import Cell, Heading, Sortable, number, text
from pyprof.render.page.waterfall_bars import WIDTH, bars
from pyprof.render.text import diff_text
from pyprof.render.text.formatting import duration
from pyprof.version import __version__

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyprof.analysis.diff.compare import Change, Comparison

_MOST = 1000


def page_of(comparison: Comparison, gpus: Sequence[str], broken: Sequence[str] = ()) -> str:
    """Make the page; the largest changes only, where there are very many."""
    header = diff_text.header(comparison)
    texts = len(comparison.keys) + 1
    columns = [Heading(title or "status", place < texts) for place, title in enumerate(header)]
    rows = [list(_cells(change)) for change in comparison.changes[:_MOST]]
    return page.render(
        "diff.html.j2",
        version=__version__,
        title=f"{comparison.processor} time compared",
        processor=comparison.processor,
        gpu_a=gpus[0],
        gpu_b=gpus[1],
        basis=f"{diff_text.basis(comparison)}; {diff_text.certainty(comparison)}",
        keys=", ".join(comparison.keys) or "nothing",
        broken=broken,
        causes=comparison.causes,
        **_waterfall(comparison),
        metric_header=("total", *diff_text.METRIC_HEADER[1:-1], "significance"),
        metrics=list(diff_text.metrics(comparison)),
        changes=Sortable(
            columns=columns, rows=rows, left_out=max(len(comparison.changes) - _MOST, 0)
        ),
    )


def _waterfall(comparison: Comparison) -> dict[str, Any]:
    """The rows from A's time to B's, each with its bar; none if nothing changed."""
    stages = waterfall(comparison)
    if not stages:
        return {"stages": []}
    begin_ns, drawn = bars(stages)
    rows = list(diff_text.stage_rows(stages))
    return {
        "stage_header": diff_text.STAGE_HEADER,
        "stages": list(zip(rows, drawn, strict=True)),
        "axis_width": WIDTH,
        "axis_begin": duration(begin_ns) if begin_ns else "",
    }


def _cells(change: Change) -> Iterator[Cell]:
    for part in change.key:
        yield text(part)
    status, *spelt = diff_text.change_cells(change)
    yield text(status, sort=status)
    values = (
        change.a_ns if change.a else None,
        change.b_ns if change.b else None,
        change.delta_ns,
        change.relative if change.b else None,
        diff_text.half_of(change),
        *(side.calls if side else None for side in (change.a, change.b)),
    )
    for value, cell in zip(values, spelt, strict=True):
        yield number(value, cell)
