"""The tree of modules, or, without layers, of ops and their kernels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyprof.analysis.summary import op_totals
from pyprof.render.page import figures, icicle
from pyprof.render.page.icicle import OPS

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa

    from pyprof.render.page.parts import Page, PartInput

TITLE, ORDER = "Modules", 70


def summarise(gathered: PartInput) -> pa.Table:
    """Sum up the chosen rows by direction, op and kernel, which replace unknown modules."""
    return op_totals.sums(gathered.source.table, OPS, gathered.overview.rows)


def section(page: Page) -> Mapping[str, Any]:
    """The figure of the tree, with its title."""
    root = icicle.modules(page.answer.layers)
    title = "Modules" if root else "Ops and their kernels (the capture has no layers)"
    boxes = icicle.boxes(root or icicle.ops(page.data), f"all {page.on} time")
    key = icicle.layer_keys if root else icicle.op_keys
    keys = key(boxes, page.selectable)
    return {"title_text": title, "icicle": figures.icicle(boxes, keys, title, page.on)}
