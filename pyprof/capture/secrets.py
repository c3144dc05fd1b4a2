"""What a capture file holds that one may not want to share: environment, host, command line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyprof.capture.tables import filled

if TYPE_CHECKING:
    from pathlib import Path

_TABLES = {
    "TARGET_INFO_SYSTEM_ENV": "the machine and its environment, which can hold tokens",
    "PROCESSES": "command lines",
    "ANALYSIS_DETAILS": "the capture's own command",
    "TARGET_INFO_SESSION_START_TIME": "when it was made",
}
"""Tables of nsys's export, and what they tell."""


def inside(path: Path) -> list[str]:
    """Say what a file tells of where it was made. Values are not read."""
    held = filled(path, _TABLES)
    return [f"before sharing the file: it holds {table}: {_TABLES[table]}" for table in held]
