"""Ranges of a thread put inside one another, with the Python frames and modules around them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pyprof import schema
from pyprof.readers.kineto.ranges import FRAME, MARKER, MODULE, NOTE, OP

if TYPE_CHECKING:
    from pyprof.readers.kineto.columns import Ints
    from pyprof.readers.kineto.ranges import Columns

SLACK_NS = 2_000
"""Overhang that rounding explains: old traces round start and length to microseconds each."""

_FOREVER = 2**63 - 1


class Nested(NamedTuple):
    """How the ranges of a trace lie."""

    order: Ints
    """Rows by thread and time, parents first."""
    end: Ints
    """By row: ends, none past its parent's by rounding."""
    style: Ints
    """By row: schema.NESTED or FREE."""
    stack: Ints
    """By row: number of the call stack to be written around it; -1 for none."""
    frames: Ints
    """By row: number of the chain of frames to be written around it; -1 for none."""
    layers: Ints
    """By row: number of the module hierarchy to be written around it; -1 for none."""
    op: Ints
    """By row: the row of the op that it lies in; -1 for none."""


class Chains:
    """Chains of Python frames, each a longer one's beginning or end of line."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[int, int], int] = {}
        self._links: list[tuple[int, int]] = []

    def longer(self, chain: int, frame: int) -> int:
        """Give the number of a chain with one more frame inside."""
        key = (chain, frame)
        found = self._numbers.get(key)
        if found is None:
            found = self._numbers[key] = len(self._links)
            self._links.append(key)
        return found

    def frames(self, chain: int) -> list[int]:
        """Give a chain's frames, outermost first."""
        found = []
        while chain >= 0:
            chain, frame = self._links[chain]
            found.append(frame)
        return found[::-1]


def nested(ranges: Columns, python: Columns, chains: Chains) -> Nested:
    """Lay out the ranges of every thread. Rows of `python` only give them their frames."""
    count = len(ranges.start)
    both = type(ranges)(*(np.concatenate(pair) for pair in zip(ranges, python, strict=True)))
    end = np.where(both.end < 0, _FOREVER, both.end)
    # Equal boundaries: what began first lies outside; a frame lies outside of what it calls.
    order = np.lexsort((both.order, -end, both.start, both.thread))
    sweep = _Sweep(both, end, count, chains)
    sweep.run(order)
    rows = order[order < count]
    ends = np.where(sweep.end == _FOREVER, -1, sweep.end)[:count]
    return Nested(rows, ends, sweep.style, sweep.stack, sweep.frames, sweep.layers, sweep.op)


class _Open(NamedTuple):
    """A range that has begun and not yet ended, as the sweep passes."""

    row: int
    start: int
    end: int
    kind: int
    since: int
    """Frames that began before this lie outside of it."""
    op: int
    """The innermost op, itself included; -1 for none."""
    traced: bool
    """A trace of PyProf's own is around: it knows the lines better than the frames do."""
    stack: int
    layers: int


_OUTSIDE = _Open(-1, -1, _FOREVER, NOTE, -1, -1, traced=False, stack=-1, layers=-1)


class _Sweep:
    """One pass over all ranges in order of thread and start."""

    def __init__(self, ranges: Columns, end: Ints, count: int, chains: Chains) -> None:
        self._ranges = ranges
        self._chains = chains
        self.end = end
        self.style = np.full(count, schema.NESTED)
        self.stack, self.frames, self.layers, self.op = (np.full(count, -1) for _ in range(4))

    def run(self, order: Ints) -> None:
        ranges = self._ranges
        lists = (column[order].tolist() for column in (*ranges[:4], ranges.stack, ranges.layers))
        starts, _, threads, kinds, stacks, layers = lists
        ends = self.end[order].tolist()
        thread = -1
        outer: list[_Open] = []
        calls: list[tuple[int, int, int]] = []
        for row, start, end, on, kind, stack, layer in zip(
            order.tolist(), starts, ends, threads, kinds, stacks, layers, strict=True
        ):
            if on != thread:
                thread, outer, calls = on, [], []
            while calls and calls[-1][1] <= start:
                calls.pop()
            if kind == FRAME:
                chain = self._chains.longer(calls[-1][2] if calls else -1, stack)
                calls.append((start, end, chain))
                continue
            while outer and outer[-1].end <= start:
                outer.pop()
            if outer and end > outer[-1].end:
                end = self._overhang(row, start, end, kind, outer)  # noqa: PLW2901 - set right
            parent = outer[-1] if outer else _OUTSIDE
            since = parent.since if kind == MODULE else start
            traced = parent.traced or kind == MARKER
            self._note(row, kind, parent, stack, layer)
            if (
                kind != MODULE
                and stack < 0
                and calls
                and calls[-1][0] >= parent.since
                and not traced
            ):
                self.frames[row] = calls[-1][2]
            op = row if kind == OP else parent.op
            stack = parent.stack if stack < 0 else stack  # noqa: PLW2901 - inherited
            layer = parent.layers if layer < 0 else layer  # noqa: PLW2901 - inherited
            outer.append(_Open(row, start, end, kind, since, op, traced, stack, layer))

    def _note(self, row: int, kind: int, parent: _Open, stack: int, layers: int) -> None:
        self.op[row] = parent.op
        if kind != OP:
            return
        if stack != parent.stack:
            self.stack[row] = stack
        if layers != parent.layers:
            self.layers[row] = layers

    def _overhang(self, row: int, start: int, end: int, kind: int, outer: list[_Open]) -> int:
        """Set right a range that goes on after the one it began in; give its end."""
        while outer and end > outer[-1].end:
            around = outer[-1]
            over, shared = end - around.end, around.end - start
            if shared <= min(SLACK_NS, over):  # they touch: the first had ended
                self.end[around.row] = min(start, around.end)
                outer.pop()
            elif over <= SLACK_NS:
                self.end[row] = around.end
                return around.end
            else:
                free = row if kind != OP else around.row
                if self._ranges.kind[free] != OP:
                    self.style[free] = schema.FREE
                break
        return end
