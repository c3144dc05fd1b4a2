"""Ops, annotations, modules and Python frames of a trace as columns, and their forward threads.

PyTorch numbers threads in its own way: they are matched by flow events, or by shared sequence
numbers.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

from pyprof import marker
from pyprof.readers.kineto import texts
from pyprof.readers.kineto.columns import Interned, Threads, Timed, times, whole_numbers
from pyprof.readers.kineto.file import events
from pyprof.readers.kineto.file.events import NO_JSON, NO_NUMBER
from pyprof.readers.kineto.op_texts import FRAME, MARKER, MODULE, OpTexts, named

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from msgspec import Raw

    from pyprof.arrays import Int64Array


class Flows:
    """Arrows from forward to backward ops, in traces that have them."""

    def __init__(self, threads: Threads) -> None:
        self._threads = threads
        self._numbers = Interned()
        self._ends: list[tuple[int, int, bool, int]] = []
        """(number of the id, ns, whether it is the head, row of threads)."""

    def add(self, ends: Timed) -> None:
        """Gather the ends of arrows."""
        threads = self._threads.rows(ends.events).tolist()
        starts = ends.start.tolist()
        for event, start, thread in zip(ends.events, starts, threads, strict=True):
            if type(event.id) in (int, str):
                self._ends.append((self._numbers[event.id], start, event.ph != "s", thread))

    def votes(self, ranges: Columns) -> Int64Array:
        """Return PyTorch's numbers and rows of threads, a column per arrow.

        Ids restart from 1 in each window of a capture: an arrow is a tail and the next head of its
        id.
        """
        ends = sorted(self._ends)
        arrows = {
            (head[3], head[1]): tail[3]
            for tail, head in pairwise(ends)
            if tail[0] == head[0] and (tail[2], head[2]) == (False, True)
        }
        rows = np.flatnonzero(ranges.forward > 0)
        places = zip(ranges.thread[rows].tolist(), ranges.start[rows].tolist(), strict=True)
        pairs = [
            (number, arrows[index])
            for number, index in zip(ranges.forward[rows].tolist(), places, strict=True)
            if index in arrows
        ]
        return np.array(pairs, dtype=np.int64).reshape(-1, 2).T


def _matches(ranges: Columns) -> Int64Array:
    """Return columns as `Flows.votes` does, one per sequence number found on both sides.

    A forward op has the number 0 for its own forward thread.
    """
    ahead = (ranges.seq >= 0) & (ranges.forward == 0)
    forward_pairs, _ = _distinct(np.stack([ranges.seq[ahead], ranges.thread[ahead]]))
    behind = ranges.forward > 0
    wanted, _ = _distinct(np.stack([ranges.seq[behind], ranges.forward[behind]]))
    first = np.searchsorted(forward_pairs[0], wanted[0], side="left")
    counts = np.searchsorted(forward_pairs[0], wanted[0], side="right") - first
    number = np.repeat(wanted[1], counts)
    index = np.repeat(first - np.cumsum(counts) + counts, counts) + np.arange(counts.sum())
    return np.stack([number, forward_pairs[1][index]])


def _distinct(pairs: Int64Array) -> tuple[Int64Array, Int64Array]:
    """Return the distinct columns, ascending, and their counts."""
    pairs = pairs[:, np.lexsort(pairs[::-1])]
    new = np.ones(pairs.shape[1], bool)
    new[1:] = (pairs[:, 1:] != pairs[:, :-1]).any(axis=0)
    first = np.flatnonzero(new)
    return pairs[:, first], np.diff(np.append(first, len(new)))


def forward_threads(ranges: Columns, flows: Flows) -> pa.Array:
    """Return the row of the thread that ran each backward op's forward op; else null.

    Arrows decide; a number without one belongs to the thread that shares most sequence numbers.
    """
    rows: dict[int, int] = {}
    for votes in (_matches(ranges), flows.votes(ranges)):
        pairs, counts = _distinct(votes)
        rows |= dict(pairs[:, np.argsort(counts, kind="stable")].T.tolist())
    numbers = np.array([0, *rows])
    thread_rows = np.array([-1, *rows.values()])
    order = np.argsort(numbers)
    index = np.searchsorted(numbers[order], ranges.forward).clip(max=len(numbers) - 1)
    hit = (numbers[order][index] == ranges.forward) & (ranges.forward > 0)
    return pa.array(thread_rows[order][index], pa.int32(), mask=~hit)


OPS = frozenset({"cpu_op", "Operator"})
"""Categories of ops; until torch 1.12 annotations had the same one."""

PYTHON = "python_function"
"""The category of calls of Python functions."""
HOST = OPS | {"user_annotation", PYTHON}
"""Categories of all ranges."""

_MODULE = "nn.Module: "
OPEN = 2**63 - 1
"""The end of a range that was still open when the trace ended."""


class Columns(NamedTuple):
    """Ranges as arrays of one length; times in ns."""

    start: Int64Array
    end: Int64Array
    """OPEN if the range was still open when the trace ended."""
    thread: Int64Array
    kind: Int64Array
    order: Int64Array
    """Ascends in the order in which ranges of one thread began, if the trace has it; else -1."""
    seq: Int64Array
    forward: Int64Array
    """PyTorch's own number of the forward thread; 0 for none."""
    stack: Int64Array
    """Number of the op's call stack, or of a frame; -1 for none."""
    layers: Int64Array
    """Number of the op's module hierarchy; -1 for none."""
    name: Int64Array
    """Number of the op's name; -1 if it is not an op."""


class Ranges:
    """The ranges gathered so far."""

    def __init__(self, threads: Threads) -> None:
        self.stacks = Interned()
        """Trace texts."""
        self.hierarchies = Interned()
        """Tuples of layer texts."""
        self.frames = Interned()
        """(`file:line`, function)."""
        self._threads = threads
        self._written = OpTexts()
        self._columns: list[Columns] = []
        self._texts: list[Int64Array] = []
        self._frames: list[Columns] = []
        self._stack_of: dict[bytes, int] = {}
        self._layers_of: dict[bytes, int] = {}

    @property
    def names(self) -> list[str]:
        """Names of ops."""
        return list(self._written.names)

    def columns(self) -> Columns:
        """Return the ranges that have a text."""
        return _concatenate(self._columns)

    def texts(self) -> pa.Table:
        """Return the texts of `columns`, split as `templates.split` does."""
        columns = self.columns()
        text = np.concatenate([np.zeros(0, np.int64), *self._texts])
        return self._written.table(text, columns.seq, columns.order)

    @property
    def only_frames(self) -> bool:
        """Whether Python frames say which line called an op, and no marker does."""
        marked = any((part.kind == MARKER).any() for part in self._columns)
        return len(self.frames) > 0 and not marked

    def python(self) -> Columns:
        """Return the Python frames, which have no text."""
        return _concatenate(self._frames)

    def add(self, calls: Timed, *, ops: bool) -> None:
        """Gather ops or annotations."""
        args = events.OPS.read(calls.events)
        seq = whole_numbers([a.seq for a in args], NO_NUMBER)
        seq = np.where(seq < 0, NO_NUMBER, seq)
        op_id = whole_numbers([a.op_id for a in args], NO_NUMBER)
        kind, name, text = self._written.write(calls.events, args, seq, op_id, ops=ops)
        forward = whole_numbers([a.forward for a in args], 0)
        self._texts.append(text)
        self._columns.append(
            self._to_columns(
                calls,
                kind=kind,
                order=np.where(op_id == NO_NUMBER, -1, op_id),
                seq=np.where(seq == NO_NUMBER, -1, seq),
                forward=np.where(seq == NO_NUMBER, 0, forward),
                stack=self._numbers(
                    [a.stack for a in args], self._stack_of, texts.call_stack, self.stacks
                ),
                layers=self._numbers(
                    [a.modules for a in args], self._layers_of, texts.hierarchy, self.hierarchies
                ),
                name=name,
            )
        )

    def _numbers(
        self,
        raws: list[Raw],
        known: dict[bytes, int],
        parse: Callable[[str], Hashable],
        values: Interned,
    ) -> Int64Array:
        """Return the number of each op's value; each distinct one is parsed once; -1 for none."""
        code, pieces = events.number_distinct(raws)
        for piece in pieces:
            if piece not in known:
                stated = None if piece == NO_JSON else events.loads(piece)
                value = parse(str(stated)) if stated else None
                known[piece] = -1 if value in (None, "", ()) else values[value]
        return np.array([known[piece] for piece in pieces], np.int64)[code]

    def add_python(self, calls: Timed) -> None:
        """Gather Python calls: module calls as layers, others as frames, builtins not at all."""
        names = named(calls.events)
        frame, text = np.full((2, len(names.values)), -1)
        for index, name in enumerate(names.values):
            if name.startswith(_MODULE):
                layer = marker.encode_layer(name.removeprefix(_MODULE))
                text[index] = self._written.intern(layer)
            elif (of_name := texts.frame(name)) is not None:
                frame[index] = self.frames[of_name]
        frame, text = frame[names.number], text[names.number]
        self._frames.append(
            self._to_columns(calls.filter(frame >= 0), kind=FRAME, stack=frame[frame >= 0])
        )
        self._texts.append(text[text >= 0])
        self._columns.append(self._to_columns(calls.filter(text >= 0), kind=MODULE))

    def _to_columns(self, calls: Timed, **columns: Int64Array | int) -> Columns:
        start = calls.start
        length = np.asarray(times([event.dur for event in calls.events]).fill_null(-1))
        rows = len(start)
        filled = {
            name: np.full(rows, column) if isinstance(column, int) else column
            for name, column in (_DEFAULTS | columns).items()
        }
        return Columns(
            start=start,
            end=np.where(length < 0, OPEN, start + length),
            thread=self._threads.rows(calls.events),
            **filled,
        )


_DEFAULTS: dict[str, Int64Array | int] = {
    "order": -1,
    "seq": -1,
    "forward": 0,
    "stack": -1,
    "layers": -1,
    "name": -1,
}
"""Values of the columns that a kind of range does not have."""


def _concatenate(parts: list[Columns]) -> Columns:
    nothing = Columns(*[np.empty(0, np.int64)] * len(Columns._fields))
    return Columns(*map(np.concatenate, zip(nothing, *parts, strict=True)))
