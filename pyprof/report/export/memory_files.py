"""The blocks that are live at the peaks of devices, as CSV."""

from __future__ import annotations

import csv
import io
from dataclasses import fields
from typing import TYPE_CHECKING

from pyprof import safe
from pyprof.report.analysis.held_memory import HeldBlock

if TYPE_CHECKING:
    from collections.abc import Iterable


def as_csv(rows: Iterable[tuple[int | None, str, HeldBlock]], *, raw: bool = False) -> bytes:
    """Give the blocks that are live at the peaks, each with its rank and device."""
    out = io.StringIO()
    write = csv.writer(out, lineterminator="\n").writerow
    names = [field.name for field in fields(HeldBlock)]
    write(("rank", "device", *names))
    for rank, device, block in rows:
        cells = (rank, device, *(getattr(block, name) for name in names))
        write(cells if raw else [safe.field(cell) for cell in cells])
    return out.getvalue().encode(errors="backslashreplace")
