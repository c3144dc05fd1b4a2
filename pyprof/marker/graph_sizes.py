"""Batch sizes for which a serving framework captured graphs."""

from __future__ import annotations

import re

_CAPTURE = re.compile(r"capture_(\d+)_(\w+)")
_DIGITS = 18


def captured(text: str) -> tuple[int, str] | None:
    """Return batch size and mode from the range around the capture of a graph; else None."""
    match = _CAPTURE.fullmatch(text.strip())
    return (int(match[1]), match[2]) if match and len(match[1]) <= _DIGITS else None


def chosen(size: int, captured: tuple[int, ...]) -> int | None:
    """Return the size of the graph that runs a batch: the smallest that has room, or None."""
    return min((other for other in captured if other >= size), default=None)
