"""The file of ceilings: what `microbenchmark` measured on the user's own machine.

One JSON file per user, by device name; `peaks` takes them in place of the datasheet.
"""

from __future__ import annotations

import json
import os
import sys
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyprof.errors import PyprofError

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class Ceilings:
    """The best rates measured on one device."""

    device: str
    """The device's name as recorded in captures; `cpu` for the processor."""
    flops: Mapping[str, float]
    """FLOP/s by the keys of `card_table`."""
    bandwidth: float
    """bytes/s of a copy, read and written."""
    shares: Mapping[str, float] = field(default_factory=dict)
    """Shares of the datasheet's roofline, by family and type of kernels: `bmm float32`."""


def default_path() -> Path:
    """Return the file's path: under APPDATA, XDG_CONFIG_HOME or ~/.config."""
    if sys.platform == "win32" and (roaming := os.environ.get("APPDATA")):
        return Path(roaming) / "pyprof" / "ceilings.json"
    config = os.environ.get("XDG_CONFIG_HOME")
    return (Path(config) if config else Path.home() / ".config") / "pyprof" / "ceilings.json"


def save(ceilings: Ceilings, path: Path | None = None) -> Path:
    """Add or replace a device's ceilings; return the file. The file is never half written.

    Raises PyprofError if it cannot be written.
    """
    target = path or default_path()
    everything = {**load(target), ceilings.device: ceilings}
    rows = {name: asdict(device_ceilings) for name, device_ceilings in everything.items()}
    partial = target.with_suffix(".partial")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        partial.write_text(json.dumps(rows, indent=1), encoding="utf-8")
        partial.replace(target)
    except OSError as error:
        with suppress(OSError):
            partial.unlink(missing_ok=True)
        cause = error.strerror or error
        raise PyprofError(f"{target}: {cause}; make room, or make it writable") from None
    return target


def load(path: Path | None = None) -> dict[str, Ceilings]:
    """Return the ceilings by device name; empty if nothing was measured.

    Raises PyprofError for a file that something else wrote.
    """
    target = path or default_path()
    try:
        rows = json.loads(target.read_text(encoding="utf-8"))
        return {name: _ceilings(row) for name, row in rows.items()}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise PyprofError(
            f"{target}: not a file of pyprof peaks --measure; remove it and measure again"
        ) from error


def _ceilings(row: dict[str, Any]) -> Ceilings:
    flops = {str(key): float(rate) for key, rate in row["flops"].items()}
    shares = {str(key): float(share) for key, share in row.get("shares", {}).items()}
    return Ceilings(str(row["device"]), flops, float(row["bandwidth"]), shares)
