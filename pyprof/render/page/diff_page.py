"""A comparison as a page: its changes sort and filter."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from pyprof.quantities import duration
from pyprof.render import page
from pyprof.render.page.tables import Cell, Heading, Sortable, text
from pyprof.render.text import diff_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyprof.answers.diff_answer import Change, Diff, Stage


_MAX_ROWS = 1000


def page_of(diff: Diff) -> str:
    """Make the page, with only the largest changes if there are very many."""
    gpus = [", ".join(name or "a GPU without a name" for name in names) for names in diff.gpus]
    header = diff_text.header(diff)
    texts = len(diff.matched_by) + 1
    columns = [Heading(title or "status", index < texts) for index, title in enumerate(header)]
    rows = [list(_cells(change)) for change in diff.changes[:_MAX_ROWS]]
    return page.render(
        "diff.html.j2",
        title=f"{diff.processor} time compared",
        processor=diff.processor,
        gpu_a=gpus[0],
        gpu_b=gpus[1],
        basis=f"{diff_text.basis(diff)}; {diff_text.certainty(diff)}",
        keys=", ".join(diff.matched_by) or "nothing",
        broken=diff.failed,
        causes=diff.causes,
        **_waterfall(diff.waterfall),
        metric_header=("total", *diff_text.METRIC_HEADER[1:-1], "significance"),
        metrics=list(diff_text.metrics(diff)),
        changes=Sortable(
            columns=columns, rows=rows, left_out=max(len(diff.changes) - _MAX_ROWS, 0)
        ),
    )


def _waterfall(stages: Sequence[Stage]) -> dict[str, Any]:
    """The rows from A's time to B's, each with its bar; none if nothing changed."""
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
    for part in change.key.values():
        yield text(part)
    status, *texts = diff_text.change_cells(change)
    yield text(status, css_class=status)
    values = (
        change.a_ns,
        change.b_ns,
        change.change_ns,
        None if change.b_ns is None else change.change_share,
        diff_text.half_of(change),
        change.a_calls,
        change.b_calls,
    )
    for value, cell in zip(values, texts, strict=True):
        yield Cell(cell, value)


WIDTH = 1000
"""Length of the axis, in units of the picture."""
_MIN_PART = 0.25
"""Share of the longest time: if all changes are smaller, the axis does not begin at 0."""
_MARGIN = 0.5
"""Share of the changes' range between the beginning of the axis and the shortest time."""


class Bar(NamedTuple):
    """One bar, in units of the picture."""

    left: float
    length: float
    css_class: str
    """`total`, `slower` or `faster`."""
    end: float
    """Where the next bar joins on."""


def bars(stages: Sequence[Stage]) -> tuple[float, list[Bar]]:
    """Return where the axis begins, ns, and the bars of A, of each stage (at least one) and of B.

    The axis begins at 0 unless changes would be too small to see.
    """
    levels = [stages[0].from_ns, *(stage.to_ns for stage in stages)]
    low, high = min(levels), max(levels)
    begin_ns = max(low - _MARGIN * (high - low), 0.0) if high - low < _MIN_PART * high else 0.0
    scale = WIDTH / ((high - begin_ns) or 1)

    def place(ns: float) -> float:
        return round((ns - begin_ns) * scale, 2)

    def total(ns: float) -> Bar:
        return Bar(0, place(ns), "total", place(ns))

    moved = [
        Bar(
            place(min(stage.from_ns, stage.to_ns)),
            round(abs(stage.change_ns) * scale, 2),
            "slower" if stage.change_ns > 0 else "faster",
            place(stage.to_ns),
        )
        for stage in stages
    ]
    return begin_ns, [total(levels[0]), *moved, total(levels[-1])]
