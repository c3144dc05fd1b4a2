"""Rows of kernels that were launched inside nested ranges."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyprof
from tests.builders import Range, Work, nsys_db

if TYPE_CHECKING:
    import pandas as pd


def rows_of(folder: Path, texts: list[str], *kernels: str) -> pd.DataFrame:
    """Load a capture of kernels, all launched inside ranges, the outermost first."""
    ranges = [Range(text, (at, 100 - at)) for at, text in enumerate(texts)]
    work = [
        Work(name, (1000 + 200 * at, 1100 + 200 * at), (10 + 10 * at, 15 + 10 * at))
        for at, name in enumerate(kernels)
    ]
    rows: pd.DataFrame = pyprof.load(nsys_db(folder / "net.sqlite", work, ranges))
    return rows
