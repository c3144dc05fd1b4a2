"""What grows from step to step: at the end of each, what is held, and by which lines."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pyprof.arrays import NONE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyprof.arrays import Ints, Mask
    from pyprof.memory.history import History

LEAST_STEPS = 3
"""Ends of steps that show growth, the first aside: what is set up then stays."""


class Leak(NamedTuple):
    """A line that holds more and more at the ends of steps."""

    line: str | None
    """None: of blocks of which no line is known."""
    bytes: int
    """From the first compared end to the last."""
    bytes_per_step: float
    blocks: int
    """How many more it holds."""


class Growth(NamedTuple):
    """What the ends of steps show."""

    marked_by: str
    held: tuple[int, ...]
    """At the end of each step, bytes."""
    leaks: tuple[Leak, ...]
    """The largest first."""


def growth(history: History, marked_by: str, ends: Sequence[int]) -> Growth | None:
    """Compare the ends of steps, given as states; None where there are too few."""
    states = np.unique(np.asarray(ends, np.int64))
    if len(states) <= LEAST_STEPS:
        return None
    held = tuple(history.held(int(state)) for state in states)
    return Growth(marked_by, held, tuple(_leaks(history, states[1:])))


def _leaks(history: History, states: Ints) -> list[Leak]:
    lines = history.labels["line"]
    blocks = history.blocks
    amounts = _at_ends(history, states, blocks.bytes)
    counts = _at_ends(history, states, np.ones(len(blocks), np.int64))
    leaking = _leaking(np.diff(amounts, axis=1))
    names = (*lines.names, None)
    steps = len(states) - 1
    leaks = [
        Leak(names[row], int(more), more / steps, int(counts[row, -1] - counts[row, 0]))
        for row in np.flatnonzero(leaking).tolist()
        for more in [int(amounts[row, -1] - amounts[row, 0])]
    ]
    return sorted(leaks, key=lambda leak: -leak.bytes)


_LEAST_RISES = 3
"""Caches that fill once or twice are no leaks."""


def _leaking(change: Ints) -> Mask:
    """Tell which lines, by what each step added to them, never give back, and keep growing.

    Not every step need add: some programs keep something every tenth.
    """
    steps = change.shape[1]
    rises = change > 0
    late = rises[:, steps - max(steps // 3, 1) :].any(axis=1)
    often = rises.sum(axis=1) >= min(_LEAST_RISES, steps)
    leaking: Mask = (change >= 0).all(axis=1) & often & late
    return leaking


def _at_ends(history: History, states: Ints, amount: Ints) -> Ints:
    """Sum what is live in each state by line; the last row is of no line."""
    blocks, codes = history.blocks, history.labels["line"].codes
    first = np.searchsorted(states, blocks.allocated, "left")
    last = np.searchsorted(states, blocks.released, "left")
    rows = len(history.labels["line"].names) + 1
    change = np.zeros((rows, len(states) + 1), np.int64)
    place = np.where(codes == NONE, rows - 1, codes)
    np.add.at(change, (place, first), amount)
    np.add.at(change, (place, np.maximum(first, last)), -amount)
    sums: Ints = np.cumsum(change, axis=1)[:, :-1]
    return sums


def ends_by_direction(history: History, optimizer: str = "optimizer") -> Ints:
    """Give the states in which steps end: what follows allocates, and not for the optimizer."""
    direction = history.labels["direction"]
    if optimizer not in direction.names:
        return np.zeros(0, np.int64)
    order = np.argsort(history.blocks.allocated, kind="stable")
    order = order[(history.blocks.allocated[order] >= 0) & (direction.codes[order] != NONE)]
    is_optimizer = direction.codes[order] == direction.names.index(optimizer)
    last = is_optimizer & ~np.append(is_optimizer[1:], True)
    ends: Ints = history.blocks.allocated[order[np.flatnonzero(last) + 1]] - 1
    if is_optimizer[-1:].any():
        ends = np.append(ends, len(history.time_ns) - 1)
    return ends
