"""The sizes of batches that a serving framework's graphs are captured for."""

from __future__ import annotations

import re

_CAPTURE = re.compile(r"capture_(\d+)_(\w+)")
_DIGITS = 18


def captured(text: str) -> tuple[int, str] | None:
    """Give batch size and mode of the capture of a graph that a range is around; else None."""
    match = _CAPTURE.fullmatch(text.strip())
    return (int(match[1]), match[2]) if match and len(match[1]) <= _DIGITS else None


def chosen(size: int, captured: tuple[int, ...]) -> int | None:
    """Give the size of the graph for a batch: the least that has room; None where none has."""
    return min((other for other in captured if other >= size), default=None)
