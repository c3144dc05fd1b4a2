"""A comparison as tables on the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyprof.report.comparison.shown import METRIC_HEADER, NOTHING, basis, changes, header, metrics
from pyprof.report.text import cut, cut_left, heading, table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyprof.report.comparison.compare import Comparison

_KEY_WIDTH = 32


_PATHS = ("layer", "line")


def lines(found: Comparison, limit: int | None) -> Iterator[str]:
    """Give the totals, then the largest changes."""
    yield heading(basis(found))
    if found.devices:
        yield found.devices
    yield from table(metrics(found), METRIC_HEADER, left=(0,))
    yield ""
    yield heading("largest changes")
    keys = len(found.keys)
    rows = [(*map(_name, found.keys, row[:keys]), *row[keys:]) for row in changes(found, limit)]
    if rows:
        yield from table(rows, header(found), left=range(keys + 1))
    else:
        yield NOTHING
    if limit is not None and (more := len(found.differing) - limit) > 0:
        yield f"... and {more:,} more; --top shows them"


def _name(key: str, text: str) -> str:
    return (cut_left if key in _PATHS else cut)(text, _KEY_WIDTH)
