"""What the host spends in each op."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyprof.render.page.sections import Cell, Heading, Sortable, number, share, text
from pyprof.render.text.formatting import duration, short_line

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyprof.render.page.parts import Page

TITLE, ORDER = "Host", 115
_MAX_ROWS = 200


def section(page: Page) -> Mapping[str, Any] | None:
    """The ops by their own time on the host; None if no capture shows it."""
    host = page.answer.host_ops
    if not host:
        return None
    total_ns = sum(op.self_ns for op in host) or 1
    columns = [
        Heading("op", is_text=True),
        Heading("own time", is_text=False, name="self", unit="ns"),
        Heading("share", is_text=False, unit="%"),
        Heading("with ops inside", is_text=False, name="total", unit="ns"),
        Heading("calls", is_text=False),
        Heading("mean", is_text=False, unit="ns"),
        Heading("line", is_text=True),
    ]
    rest = host[_MAX_ROWS:]
    rows = [
        [
            text(op.op),
            number(op.self_ns, duration(op.self_ns)),
            share(op.self_ns / total_ns),
            number(op.total_ns, duration(op.total_ns)),
            number(op.calls, f"{op.calls:,}"),
            _mean(op.total_ns, op.calls),
            text(short_line(op.line)),
        ]
        for op in host[:_MAX_ROWS]
    ]
    left_out_ns = sum(op.self_ns for op in rest)
    keys = [page.selectable.key(op=op.op) for op in host[:_MAX_ROWS]]
    return {
        "host": Sortable(
            columns=columns, rows=rows, left_out=len(rest), left_out_ns=left_out_ns, keys=keys
        )
    }


def _mean(total_ns: int, calls: int) -> Cell:
    mean_ns = total_ns / calls if calls else None
    return number(mean_ns, duration(mean_ns))
