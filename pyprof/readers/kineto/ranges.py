"""Which thread ran the forward op of a backward op: PyTorch numbers threads in its own way."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from pyprof import marker
from pyprof.marker import templates
from pyprof.readers.kineto import texts
from pyprof.readers.kineto.columns import Interned, Threads, nanoseconds, times, whole_number

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyprof.arrays import Ints
    from pyprof.readers.kineto.stream import Event


class Flows:
    """Arrows from forward ops to backward ops, where the trace draws them."""

    def __init__(self, threads: Threads) -> None:
        self._threads = threads
        self._numbers: dict[object, int] = {}
        self._ends: list[tuple[int, float, bool, int]] = []
        """Number of the id, time, whether it is the head, row of threads."""

    def add(self, events: list[Event]) -> None:
        """Gather the ends of arrows."""
        for event in events:
            name = event.get("id")
            if type(name) not in (int, str):
                continue
            number = self._numbers.setdefault(name, len(self._numbers))
            thread = self._threads.row(event.get("pid"), event.get("tid"))
            self._ends.append((number, event["ts"], event.get("ph") != "s", thread))

    def votes(self, ranges: Columns) -> Ints:
        """Give pairs (PyTorch's number, row of threads), one for each arrow.

        Ids count from 1 in each window of a capture: an arrow is a tail and the next head of an id.
        """
        ends = sorted(self._ends)
        both = [
            (tail[3], head)
            for tail, head in pairwise(ends)
            if tail[0] == head[0] and (tail[2], head[2]) == (False, True)
        ]
        starts = nanoseconds([head[1] for _, head in both])
        arrows = {
            (head[3], start): tail
            for (tail, head), start in zip(both, starts.tolist(), strict=True)
        }
        rows = np.flatnonzero(ranges.forward > 0)
        places = zip(ranges.thread[rows].tolist(), ranges.start[rows].tolist(), strict=True)
        pairs = [
            (number, arrows[place])
            for number, place in zip(ranges.forward[rows].tolist(), places, strict=True)
            if place in arrows
        ]
        return np.array(pairs, dtype=np.int64).reshape(-1, 2)


def _matches(ranges: Columns) -> Ints:
    """Give pairs as `Flows.votes` does, one for each sequence number found on both sides.

    A forward op has the number 0 for its own forward thread.
    """
    ahead = (ranges.seq >= 0) & (ranges.forward == 0)
    forward_pairs = np.unique(np.stack([ranges.seq[ahead], ranges.thread[ahead]]), axis=1)
    behind = ranges.forward > 0
    wanted = np.unique(np.stack([ranges.seq[behind], ranges.forward[behind]]), axis=1)
    first = np.searchsorted(forward_pairs[0], wanted[0], side="left")
    counts = np.searchsorted(forward_pairs[0], wanted[0], side="right") - first
    number = np.repeat(wanted[1], counts)
    place = np.repeat(first - np.cumsum(counts) + counts, counts) + np.arange(counts.sum())
    return np.stack([number, forward_pairs[1][place]], axis=1)


def forward_threads(ranges: Columns, flows: Flows) -> pa.Array:
    """Give each backward op the row of the thread that ran its forward op; else null.

    Arrows decide; a number that has none goes to the thread that shares most sequence numbers.
    """
    rows: dict[int, int] = {}
    for votes in (_matches(ranges), flows.votes(ranges)):
        pairs, counts = np.unique(votes, axis=0, return_counts=True)
        rows |= {int(n): int(row) for n, row in pairs[np.argsort(counts, kind="stable")]}
    numbers = np.array([0, *rows])
    thread_rows = np.array([-1, *rows.values()])
    order = np.argsort(numbers)
    place = np.searchsorted(numbers[order], ranges.forward).clip(max=len(numbers) - 1)
    hit = (numbers[order][place] == ranges.forward) & (ranges.forward > 0)
    return pa.array(thread_rows[order][place], pa.int32(), mask=~hit)


# Ops, annotations, modules and Python frames of a trace, gathered as columns.


OPS = frozenset({"cpu_op", "Operator"})
"""Categories of ops; until torch 1.12 annotations had the same one."""

NOTES = frozenset({"user_annotation"})
PYTHON = "python_function"

FRAME, MODULE, NOTE, MARKER, OP = range(5)
"""What a range is; MARKER is an annotation with a trace of PyProf's own."""

_MODULE = "nn.Module: "
_OWN = ("{", "layer:", "pyprof%")  # what PyProf's texts begin with
_OPEN = -1  # stands for an end that the trace does not know


class Columns(NamedTuple):
    """Ranges as arrays of one length; times in ns."""

    start: Ints
    end: Ints
    """-1 where the range was still open when the trace ended."""
    thread: Ints
    kind: Ints
    order: Ints
    """Rises in the order in which ranges of one thread began, where the trace says."""
    seq: Ints
    forward: Ints
    """PyTorch's own number of the forward thread; 0 for none."""
    stack: Ints
    """Number of the op's call stack, or of a frame; -1 for none."""
    layers: Ints
    """Number of the op's module hierarchy; -1 for none."""
    name: Ints
    """Number of the op's name; -1 for what is no op."""


class Ranges:
    """What has been gathered so far."""

    def __init__(self, threads: Threads) -> None:
        self.names = Interned()
        """Names of ops."""
        self.stacks = Interned()
        """Trace texts."""
        self.hierarchies = Interned()
        """Tuples of layer texts."""
        self.frames = Interned()
        """(`file:line`, function)."""
        self._threads = threads
        self._columns: list[Columns] = []
        self._texts: list[pa.Array] = []
        self._frames: list[Columns] = []

    def columns(self) -> Columns:
        """Give the ranges that have a text."""
        return _joined(self._columns)

    def texts(self) -> pa.Table:
        """Give the texts of `columns`, as `marker.numbered` takes them apart."""
        batches = [pa.RecordBatch.from_struct_array(part) for part in self._texts]
        return pa.Table.from_batches(batches, pa.schema([*templates.NUMBERED])).unify_dictionaries()

    def python(self) -> Columns:
        """Give the Python frames, which have none."""
        return _joined(self._frames)

    def add(self, events: list[Event]) -> None:
        """Gather ops and annotations."""
        rows: list[tuple[int, ...]] = []
        written: list[str] = []
        for event in events:
            raw_args = event.get("args")
            args = raw_args if isinstance(raw_args, dict) else {}
            name = str(event.get("name", ""))
            seq = texts.sequence(args)
            op_id = whole_number(args.get("External id"))
            kind, text = _text(name, args, seq, op_id, op=event.get("cat") in OPS)
            written.append(text)
            thread = self._threads.row(event.get("pid"), event.get("tid"))
            forward = 0 if seq is None else whole_number(args.get("Fwd thread id")) or 0
            order, number = -1 if op_id is None else op_id, -1 if seq is None else seq
            stack, layers = self._around(args)
            named = self.names[name] if kind == OP else -1
            rows.append((thread, kind, order, number, forward, stack, layers, named))
        self._keep(events, rows, written)

    def _around(self, args: dict[str, Any]) -> tuple[int, int]:
        """Give the numbers of an op's call stack and module hierarchy."""
        stack = layers = -1
        if (text := args.get("Call stack")) and (trace := texts.call_stack(str(text))):
            stack = self.stacks[trace]
        if (text := args.get("Module Hierarchy")) and (modules := texts.hierarchy(str(text))):
            layers = self.hierarchies[modules]
        return stack, layers

    def add_python(self, events: list[Event]) -> None:
        """Gather Python calls: module calls as layers, others as frames, builtins not at all."""
        modules, calls, rows = [], [], []
        for event in events:
            name = str(event.get("name", ""))
            if name.startswith(_MODULE):
                modules.append(event)
            elif (frame := texts.frame(name)) is not None:
                thread = self._threads.row(event.get("pid"), event.get("tid"))
                calls.append(event)
                rows.append((thread, FRAME, -1, -1, 0, self.frames[frame], -1, -1))
        self._frames.append(self._times(calls, rows))
        thread_of = self._threads.row
        self._keep(
            modules,
            [
                (thread_of(e.get("pid"), e.get("tid")), MODULE, -1, -1, 0, -1, -1, -1)
                for e in modules
            ],
            [marker.encode_layer(e["name"].removeprefix(_MODULE)) for e in modules],
        )

    def _keep(
        self, events: list[Event], rows: Sequence[tuple[int, ...]], written: list[str]
    ) -> None:
        self._columns.append(self._times(events, rows))
        self._texts.append(templates.split(pa.array(written, pa.string())))

    def _times(self, events: list[Event], rows: Sequence[tuple[int, ...]]) -> Columns:
        start = nanoseconds([event["ts"] for event in events])
        length = np.asarray(times([event.get("dur") for event in events]).fill_null(_OPEN))
        open_ = length < 0
        others = np.array(rows, dtype=np.int64).reshape(len(events), 8).T
        return Columns(start, np.where(open_, _OPEN, start + length), *others)


def _text(
    name: str, args: dict[str, Any], seq: int | None, op_id: int | None, *, op: bool
) -> tuple[int, str]:
    own = name.startswith(_OWN)  # torch's quickest annotation makes them ops
    if op and not own and texts.is_op(name, args):
        try:
            return OP, texts.op(name, args, seq, op_id)
        except RecursionError:  # lists in each other without end, where sizes should stand
            return OP, marker.encode_seq(name, seq=seq, op_id=op_id)
    text = marker.decode_annotation(name)
    return (MARKER if own and marker.classify(text) is marker.Kind.TRACE else NOTE), text


def _joined(parts: list[Columns]) -> Columns:
    empty = np.empty(0, dtype=np.int64)
    return (
        Columns(*(np.concatenate([empty, *column]) for column in zip(*parts, strict=True)))
        if (parts)
        else Columns(*[empty] * len(Columns._fields))
    )
