"""What the host spends in each op."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyprof.render.page.tables import amount, of_numbers, of_texts, share, sortable, text, time
from pyprof.render.text.formatting import short_line

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyprof.answers.summary_answer import HostOp
    from pyprof.render.page.parts import Page
    from pyprof.render.page.tables import Column

TITLE, ORDER = "Host", 115
_MAX_ROWS = 200


def section(page: Page) -> Mapping[str, Any] | None:
    """The ops by their own time on the host; None if no capture shows it."""
    host = page.answer.host_ops
    if not host:
        return None
    total_ns = sum(op.self_ns for op in host) or 1
    columns: Sequence[Column[HostOp]] = (
        (of_texts("op"), lambda op: text(op.op)),
        (of_numbers("own time", "self", "ns"), lambda op: time(op.self_ns)),
        (of_numbers("share", "", "%"), lambda op: share(op.self_ns / total_ns)),
        (of_numbers("with ops inside", "total", "ns"), lambda op: time(op.total_ns)),
        (of_numbers("calls"), lambda op: amount(op.calls)),
        (of_numbers("mean", "", "ns"),
         lambda op: time(op.total_ns / op.calls if op.calls else None)),
        (of_texts("line"), lambda op: text(short_line(op.line))),
    )  # fmt: skip
    return {
        "host": sortable(
            host, columns, _MAX_ROWS,
            time_ns=lambda op: op.self_ns, key=lambda op: page.selectable.key(op=op.op),
        )
    }  # fmt: skip
