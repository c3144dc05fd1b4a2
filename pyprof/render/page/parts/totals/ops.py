"""The ops that take most time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyprof.render.page.tables import (
    PATH,
    TENSOR_CORES,
    WORD,
    amount,
    of_numbers,
    of_texts,
    rate,
    share,
    sortable,
    tensor_cores,
    text,
    time,
)
from pyprof.render.text.formatting import part_name, place

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyprof.answers.summary_answer import OpTime
    from pyprof.render.page.parts import Page
    from pyprof.render.page.tables import Column

TITLE, ORDER = "Ops", 7
_MAX_ROWS = 500


_COLUMNS: tuple[Column[OpTime], ...] = (
    (of_texts("op"), lambda op: text(op.op or op.kernel)),
    (of_numbers("time", "time", "ns"), lambda op: time(op.time_ns)),
    (of_numbers("share", "share", "%"), lambda op: share(op.share)),  # a phone shows these three
    (of_texts("direction", "dir"), lambda op: text(part_name(op.dir), css_class=WORD)),
    (of_texts("line"), lambda op: text(place(op.line, op.range), css_class=PATH)),
    (of_numbers("calls"), lambda op: amount(op.calls)),
    (of_numbers("kernels"), lambda op: amount(op.kernels)),
    (of_numbers("TFLOP/s", "tflops"), lambda op: rate(op.flops_per_s, 1e12)),
    (of_numbers("GB/s", "gbs"), lambda op: rate(op.bytes_per_s, 1e9)),
    (of_numbers("efficiency", "eff", "%"), lambda op: share(op.efficiency)),
    (of_texts("bound"), lambda op: text(op.bound, css_class=WORD)),
    (TENSOR_CORES, lambda op: tensor_cores(op.tc)),
)


def section(page: Page) -> Mapping[str, Any]:
    """The table of ops."""

    def key(op: OpTime) -> str | None:
        unnamed = {"kernel": op.kernel or None} if op.op is None else {}
        return page.selectable.key(op=op.op, dir=op.dir, line=op.line, **unnamed)

    ops = page.answer.ops
    return {"ops": sortable(ops, _COLUMNS, _MAX_ROWS, time_ns=lambda op: op.time_ns, key=key)}
