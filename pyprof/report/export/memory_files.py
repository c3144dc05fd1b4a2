"""The memory of devices as files: all of it as JSON, the blocks of the peak as CSV."""

from __future__ import annotations

import csv
import io
from dataclasses import fields
from typing import TYPE_CHECKING

import orjson

from pyprof import safe
from pyprof.report.analysis.held_memory import HeldBlock
from pyprof.version import __version__

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pyprof.report.analysis.memory import DeviceMemory

_VERSION = 1


def as_json(devices: Sequence[DeviceMemory], warnings: Sequence[str] = ()) -> bytes:
    """Give everything as JSON."""
    head = {
        "schema_version": _VERSION,
        "kind": "memory",
        "pyprof_version": __version__,
        "warnings": list(warnings),
    }
    return orjson.dumps({**head, "devices": devices}, option=orjson.OPT_INDENT_2) + b"\n"


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
