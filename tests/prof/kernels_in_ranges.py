"""Captures of kernels that were launched inside ranges."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import pyprof
from tests.builders import Range, Work, nsys_db

if TYPE_CHECKING:
    import pandas as pd


def called(path: Path, *calls: tuple[str | None, Iterable[tuple[str, int]]]) -> Path:
    """Write op calls one after the other: each one's text, and its kernels with their ns."""
    work, ranges, now = [], [], 1000
    for text, kernels in calls:
        begin = now
        for name, ns in kernels:
            work.append(Work(name, (now + 200, now + 200 + ns), (now + 10, now + 20)))
            now += 1000 + ns
        ranges += [Range(text, (begin, now - 1))] if text else []
    return nsys_db(path, work, ranges)


def rows_of(folder: Path, texts: list[str], *kernels: str) -> pd.DataFrame:
    """Load a capture of kernels, all launched inside ranges, the outermost first."""
    ranges = [Range(text, (at, 100 - at)) for at, text in enumerate(texts)]
    work = [
        Work(name, (1000 + 200 * at, 1100 + 200 * at), (10 + 10 * at, 15 + 10 * at))
        for at, name in enumerate(kernels)
    ]
    rows: pd.DataFrame = pyprof.load(nsys_db(folder / "net.sqlite", work, ranges))
    return rows
