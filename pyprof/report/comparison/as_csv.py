"""A comparison's changes as CSV: all of them, times in ns, unknown empty."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING

from pyprof import safe

if TYPE_CHECKING:
    from pyprof.report.comparison.compare import Comparison

_NUMBERS = ("status", "a_ns", "b_ns", "change_ns", "change", "a_calls", "b_calls",
            "a_rows", "b_rows")  # fmt: skip


def text(found: Comparison, *, raw: bool = False) -> str:
    """Write RFC 4180; `change` is a fraction of A, calls and rows are totals.

    `raw`: texts that spreadsheets take for formulas stay as they are.
    """
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow([*found.keys, *_NUMBERS])
    for entry in found.changes:
        sides = (entry.a, entry.b)
        writer.writerow(
            [
                *(entry.key if raw else map(safe.field, entry.key)),
                entry.status,
                entry.a_ns if entry.a else None,
                entry.b_ns if entry.b else None,
                entry.delta_ns,
                entry.relative,
                *(side.calls if side else None for side in sides),
                *(side.rows if side else None for side in sides),
            ]
        )
    return file.getvalue()
