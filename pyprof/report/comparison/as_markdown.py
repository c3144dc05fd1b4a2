"""A comparison as Markdown, for a pull request."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyprof.report import markdown
from pyprof.report.comparison.shown import METRIC_HEADER, NOTHING, basis, changes, header, metrics

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyprof.report.comparison.compare import Comparison


def text(found: Comparison, limit: int | None, broken: Sequence[str] = ()) -> str:
    """Write the limits that were broken, the totals, and the largest changes."""
    parts = [f"# {found.processor} time compared\n"]
    if broken:
        parts += [*(f"- **failed** {markdown.escape(sentence)}" for sentence in broken), ""]
    parts += [
        f"{markdown.escape(basis(found))}\n",
        *([f"{markdown.escape(found.devices)}\n"] if found.devices else []),
        markdown.table(METRIC_HEADER, list(metrics(found))),
    ]
    rows = list(changes(found, limit))
    listed = markdown.table(header(found), rows) if rows else f"{NOTHING}\n"
    parts += ["## Largest changes\n", listed]
    return "\n".join(parts)
