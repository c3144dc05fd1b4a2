"""What the peak holds by call stack, as a flame graph: boxes as wide as their bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyprof.render.page.tables import without_folders
from pyprof.render.text.memory_text import size

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyprof.analysis.memory.held_memory import HeldStack

_MIN_WIDTH = 0.001
"""Boxes narrower than this share of all are left out: they would be less than 2 pixels wide."""
_MAX_LEVELS = 60
_MAX_BOXES = 3000
_NO_STACK = "(no stack)"


def flame_graph(stacks: Sequence[HeldStack]) -> Mapping[str, Any] | None:
    """Lay call stacks out, callers above what they call; None if no stack is known."""
    if not any(stack.frames for stack in stacks):
        return None
    listed = _boxes(stacks)
    return {
        "kind": "icicle",
        "bytes": True,
        "label": f"The peak by call stack: {len(listed)} boxes, as wide as their bytes",
        "axis": "bytes at the peak",
        "start": [start for _, start, _, _ in listed],
        "length": [held for _, _, held, _ in listed],
        "depth": [len(path) for path, _, _, _ in listed],
        "colour": [len(path) for path, _, _, _ in listed],
        "name": [path[-1] if path else "all" for path, _, _, _ in listed],
        "path": [path[-1] if path else "all" for path, _, _, _ in listed],
        "times": [
            f"{size(held)}, {count:,} block{'' if count == 1 else 's'}"
            for _, _, held, count in listed
        ],
        "key": [None] * len(listed),
    }


def _boxes(stacks: Sequence[HeldStack]) -> list[tuple[tuple[str, ...], int, int, int]]:
    """List path, start, bytes and number of blocks of each box, callers first."""
    held: dict[tuple[str, ...], tuple[int, int]] = {}
    for stack in stacks:
        frames = tuple(map(without_folders, stack.frames or (_NO_STACK,)))[:_MAX_LEVELS]
        for end in range(len(frames) + 1):
            before = held.get(frames[:end], (0, 0))
            held[frames[:end]] = (before[0] + stack.bytes, before[1] + stack.block_count)
    least = max(held[()][0] * _MIN_WIDTH, 1)
    starts: dict[tuple[str, ...], int] = {(): 0}
    below = dict(starts)  # where the next box below each one begins
    listed: list[tuple[tuple[str, ...], int, int, int]] = []
    for path in sorted(held, key=lambda path: (len(path), -held[path][0], path)):
        size_, count = held[path]
        if path and path[:-1] not in starts:
            continue  # its caller is too narrow
        start = below[path[:-1]] if path else 0
        if path:
            below[path[:-1]] += size_
        if size_ >= least and len(listed) < _MAX_BOXES:
            starts[path] = below[path] = start
            listed.append((path, start, size_, count))
    return listed
