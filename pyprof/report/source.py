"""What a report is made from: the table of all rows and, where the file holds it, the capture."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pyprof import readers
from pyprof.errors import CaptureError
from pyprof.parse import parse, parse_file, recordfile
from pyprof.prof.table import Override, Table

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyprof.schema import Capture

STAGES = 3
"""How often `load` says what it does."""


@dataclass(frozen=True, slots=True)
class Source:
    """A file that was read once."""

    table: Table
    capture: Capture | None
    """None for dict lines and Parquet, which hold neither API calls nor the user's ranges."""


def load(
    file: str, override: Override | None = None, begin: Callable[[str], object] = str
) -> Source:
    """Read a capture, dict lines or Parquet (`-`: dict lines on stdin), and cost its ops.

    Tells `begin` which stage begins. Raises PyprofError where the file cannot be used, as
    `pyprof.load` does.
    """
    loaded = _read(file, override or Override(), begin)
    begin("costing")
    _ = loaded.table.costs  # kept by the table
    return loaded


def _read(file: str, chosen: Override, begin: Callable[[str], object]) -> Source:
    begin("reading")
    path = Path(file)
    if file == recordfile.STDIN or not readers.is_capture(path):
        return Source(Table(recordfile.load(file), chosen), None)
    capture = readers.read(path)
    if not capture.activities.num_rows:
        parse_file(path)  # says what to do
        raise CaptureError(f"{path}: no GPU work was captured")
    begin("parsing")
    return Source(Table(parse(capture), chosen), capture)
