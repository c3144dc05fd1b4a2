"""What serving frameworks' ranges say of the batch that they work on."""

from __future__ import annotations

import re
from functools import lru_cache

_STEPS = (
    re.compile(r"execute_(\d+)_context_\d+\("),  # vLLM: tokens, those that fill it up included
    re.compile(r"\bstep\[(?!\w*EXTEND)[\w ]*\bbs=(\d+)"),  # SGLang: requests
    re.compile(r"execute_context_\d+\((?:sq)?(\d+)\w*\)_generation_\d+\((?:sq)?(\d+)\w*\)"),
)
_CAPTURE = re.compile(r"capture_(\d+)_(\w+)")
_DIGITS = 18


@lru_cache(maxsize=1 << 16)
def batch_size(text: str) -> int | None:
    """Give the batch size of the step that a range is; None where its text tells none."""
    for pattern in _STEPS:
        if match := pattern.search(text):
            if any(len(number) > _DIGITS for number in match.groups()):
                return None
            return sum(map(int, match.groups())) or None
    return None


def captured(text: str) -> tuple[int, str] | None:
    """Give batch size and mode of the capture of a graph that a range is around; else None."""
    match = _CAPTURE.fullmatch(text.strip())
    return (int(match[1]), match[2]) if match and len(match[1]) <= _DIGITS else None


def chosen(size: int, captured: tuple[int, ...]) -> int | None:
    """Give the size of the graph for a batch: the least that has room; None where none has."""
    return min((other for other in captured if other >= size), default=None)
