"""Nests the ranges of each thread, and writes them with the frames and modules around them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyprof import marker, schema
from pyprof.arrays import ints, nearest
from pyprof.marker import templates
from pyprof.readers.kineto import texts
from pyprof.readers.kineto.op_texts import COMPILING, MARKER, MODULE, NOTE, OP
from pyprof.readers.kineto.ranges import OPEN, Columns

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyprof.arrays import Int64Array, IntArray, Mask
    from pyprof.readers.kineto.ranges import Ranges

SLACK_NS = 2_000
"""Overhang due to rounding: old traces round start and length to microseconds each."""


class Nested(NamedTuple):
    """How the ranges of a trace are nested."""

    order: Int64Array
    """Rows by thread and time, parents first."""
    end: Int64Array
    """By row: ends, none past its parent's by rounding; OPEN as in `Columns`."""
    style: Int64Array
    """By row: schema.NESTED or FREE."""
    stack: Int64Array
    """By row: number of the call stack to be written around it; -1 for none."""
    frames: Int64Array
    """By row: number of the chain of frames to be written around it; -1 for none."""
    layers: Int64Array
    """By row: number of the module hierarchy to be written around it; -1 for none."""
    op: IntArray
    """By row: the row of the op that it lies in; -1 for none."""
    compiling: Mask
    """By row: whether it lies in what torch.compile does before a model runs."""


class FrameChains:
    """Chains of Python frames, stored as a tree of prefixes."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[int, int], int] = {}
        self._links: list[tuple[int, int]] = []

    def longer(self, chain: int, frame: int) -> int:
        """Return the number of a chain extended by one frame inside."""
        key = (chain, frame)
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self._links)
            self._links.append(key)
        return number

    def frames(self, chain: int) -> list[int]:
        """Return a chain's frames, outermost first."""
        innermost_first = []
        while chain >= 0:
            chain, frame = self._links[chain]
            innermost_first.append(frame)
        return innermost_first[::-1]


def nested(ranges: Columns, python: Columns, chains: FrameChains) -> Nested:
    """Nest the ranges of every thread. Rows of `python` only contribute frames."""
    count = len(ranges.start)
    both = type(ranges)(*(np.concatenate(pair) for pair in zip(ranges, python, strict=True)))
    # With equal bounds, the first to begin is outside; a frame is outside its callees.
    order = np.lexsort((both.order, -both.end, both.start, both.thread))
    sweep = _Sweep(both, count)
    sweep.run(order)
    parent, call = np.array(sweep.parents, np.int64), np.array(sweep.calls, np.int64)
    style = np.full(count, schema.NESTED)
    style[sweep.free] = schema.FREE
    return Nested(
        order[order < count],
        np.array(sweep.ends[:count], np.int64),
        style,
        _drop_inherited(ranges.stack, parent, ranges.kind),
        _frames(both, parent, call, chains),
        _drop_inherited(ranges.layers, parent, ranges.kind),
        nearest(parent, ranges.kind == OP),
        nearest(parent, ranges.kind == COMPILING) >= 0,
    )


class _Sweep:
    """One pass over all ranges in order of thread and start; rows from `count` on are Python's."""

    def __init__(self, ranges: Columns, count: int) -> None:
        self._ranges = ranges
        self._count = count
        self.ends = ranges.end.tolist()
        self.parents = [-1] * count
        self.calls = [-1] * len(ranges.end)
        """The innermost Python call that each row began in; -1 for none."""
        self.free: list[int] = []
        """Rows that begin in another and go on after it."""

    def run(self, order: Int64Array) -> None:
        """Pass over all rows in this order."""
        ranges = self._ranges
        starts, threads = (column[order].tolist() for column in (ranges.start, ranges.thread))
        ends, parents, around, count = self.ends, self.parents, self.calls, self._count
        thread = -1
        outer: list[int] = []
        calls: list[int] = []
        for row, start, on in zip(order.tolist(), starts, threads, strict=True):
            if on != thread:
                thread, outer, calls = on, [], []
            while calls and ends[calls[-1]] <= start:
                calls.pop()
            if calls:
                around[row] = calls[-1]
            if row >= count:
                calls.append(row)
                continue
            while outer and ends[outer[-1]] <= start:
                outer.pop()
            goes_on = False
            if outer and ends[row] > ends[outer[-1]]:
                goes_on = self._fix_overhang(row, start, outer)
            if outer:
                parents[row] = outer[-1]
            if not goes_on:
                outer.append(row)

    def _fix_overhang(self, row: int, start: int, outer: list[int]) -> bool:
        """Fix a range that outlasts the one it began in; return whether it goes on after that.

        Such a range contains nothing.
        """
        ends, kind = self.ends, self._ranges.kind
        while outer and ends[row] > ends[outer[-1]]:
            around = outer[-1]
            over, shared = ends[row] - ends[around], ends[around] - start
            if shared <= min(SLACK_NS, over):  # they touch: the first had ended
                ends[around] = min(start, ends[around])
                outer.pop()
            elif over <= SLACK_NS:
                ends[row] = ends[around]
            else:
                free = row if kind[row] != OP else around
                if kind[free] != OP:
                    self.free.append(free)
                return free == row
        return False


def _frames(both: Columns, parent: Int64Array, call: Int64Array, chains: FrameChains) -> Int64Array:
    """Return the chain of the frames that began inside each range's parent; -1 for none.

    Ranges that are, or are inside, PyProf's own trace markers get none: their lines are more exact.
    """
    count = len(parent)
    frames, inner = np.full(count, -1), call[:count]
    if not (inner >= 0).any():
        return frames
    kind = both.kind[:count]
    around = nearest(parent, kind != MODULE)
    since = np.where(around < 0, -1, both.start[around])
    traced = (kind == MARKER) | (nearest(parent, kind == MARKER) >= 0)
    wanted = (inner >= 0) & (kind != MODULE) & (both.stack[:count] < 0) & ~traced
    rows = np.flatnonzero(wanted & (both.start[inner] >= since))
    frames[rows] = _chains(inner[rows], call, both.stack, chains)
    return frames


def _chains(of: Int64Array, call: Int64Array, frame: Int64Array, chains: FrameChains) -> list[int]:
    """Return the chains of frames of some Python calls; `call` is the one around each row."""
    outer, frames = call.tolist(), frame.tolist()
    chain_of = {-1: -1}
    for innermost in of.tolist():
        unknown, at = [], innermost
        while at not in chain_of:
            unknown.append(at)
            at = outer[at]
        for at in reversed(unknown):
            chain_of[at] = chains.longer(chain_of[outer[at]], frames[at])
    return [chain_of[innermost] for innermost in of.tolist()]


def _drop_inherited(number: Int64Array, parent: Int64Array, kind: Int64Array) -> Int64Array:
    """Return each op's number, such as a call stack's; -1 if equal to that of the op around."""
    around = nearest(parent, number >= 0)
    outer = np.where(around < 0, -1, number[around])
    return np.where((kind == OP) & (number != outer), number, -1)


def ops_named(ranges: Columns, chosen: Sequence[bool]) -> Mask:
    """Mark the ops whose name is chosen; `chosen` has one entry per name."""
    is_named: Mask = ranges.kind == OP
    is_named[is_named] = np.array(chosen, dtype=bool)[ranges.name[is_named]]
    return is_named


class _Rows(NamedTuple):
    """Rows to write: the range whose times each has, its depth at that range, and its text."""

    source: Int64Array
    position: Int64Array
    """Position in the source, in the order of ranges."""
    depth: Int64Array
    """Among the rows of one position: the smaller the further out."""
    text: Int64Array


def range_table(
    ranges: Ranges, nested: Nested, chains: FrameChains, forward: pa.Array, stopped: Int64Array
) -> pa.Table:
    """Return the rows of all ranges and of the markers written around them.

    The texts of `stopped` ops are marked as such.
    """
    columns = ranges.columns()
    written = _with_stopped(ranges.texts(), stopped)
    pool, offsets = _pool(written, ranges, chains, nested)
    order = nested.order
    if (columns.kind == MARKER).any():  # layers that the script named are better than modules
        notes = written.column("text").filter(pa.array(columns.kind == NOTE)).unique()
        if pc.any(pc.starts_with(notes.cast(pa.string()), "layer:")).as_py():
            order = order[columns.kind[order] != MODULE]
    rows = _rows(nested, order, offsets)
    source = rows.source
    end = nested.end[source]
    own = pa.array(rows.text < len(columns.start))
    return schema.table(
        schema.RANGES,
        {
            "start": columns.start[source],
            "end": pa.array(end, mask=end == OPEN),
            "thread": columns.thread[source].astype(np.int32),
            "style": nested.style[source].astype(np.int8),
            **{name: pool.column(name).take(pa.array(rows.text)) for name in pool.column_names},
            "forward_thread": pc.if_else(own, forward.take(pa.array(source)), None),
        },
    )


def launch_stacks(launches: pa.Table, ranges: Ranges, nesting: Nested) -> pa.Table:
    """Return markers with the frames around launches in no op, such as that of a Triton kernel."""
    python = ranges.python()
    launches = launches.filter(pa.array(_mark_alone(launches, ranges.columns(), python, nesting)))
    if not launches.num_rows:
        return schema.RANGES.empty_table()
    thread, start, end = (ints(launches.column(name)) for name in ("thread", "start", "end"))
    nothing = (np.full(len(start), -1),) * len(Columns._fields)
    called = Columns(*nothing)._replace(thread=thread, start=start, end=end)
    python = Columns(*(column[np.isin(python.thread, thread)] for column in python))
    chains, frames = FrameChains(), list(ranges.frames)
    used, code = np.unique(nested(called, python, chains).frames, return_inverse=True)
    stacks = [texts.trace(frames[f] for f in chains.frames(chain)) for chain in used.tolist()]
    written = templates.columns(pa.array(stacks, pa.string()))
    return schema.table(
        schema.RANGES,
        {
            **{name: launches.column(name) for name in ("start", "end", "thread")},
            "style": np.full(len(start), schema.NESTED, np.int8),
            **{name: column.take(pa.array(code)) for name, column in written.items()},
        },
    ).filter(pa.array(used[code] >= 0))


def _mark_alone(launches: pa.Table, ranges: Columns, python: Columns, nesting: Nested) -> Mask:
    """Mark launches by threads with Python frames that lie in no op and no marker."""
    thread, start, end = (ints(launches.column(name)) for name in ("thread", "start", "end"))
    alone = np.zeros(len(start), bool)
    stated = nesting.order[np.isin(ranges.kind[nesting.order], (OP, MARKER))]
    for each in np.unique(python.thread).tolist():
        rows, around = np.flatnonzero(thread == each), stated[ranges.thread[stated] == each]
        before = np.searchsorted(ranges.start[around], start[rows], side="right") - 1
        reached = np.append(np.maximum.accumulate(nesting.end[around]), -1)
        alone[rows] = reached[before] < end[rows]
    return alone


def _with_stopped(written: pa.Table, rows: Int64Array) -> pa.Table:
    if not len(rows):
        return written
    text = written.column("text").combine_chunks()
    chosen = np.zeros(len(text), dtype=bool)
    chosen[rows] = True
    values = text.dictionary
    both = pa.concat_arrays([values, pc.binary_join_element_wise(values, marker.STOPPED, "")])
    code = text.indices.to_numpy() + np.where(chosen, len(values), 0)
    marked = pa.DictionaryArray.from_arrays(pa.array(code, pa.int32()), both)
    return written.set_column(written.column_names.index("text"), "text", marked)


def _pool(
    written: pa.Table, ranges: Ranges, chains: FrameChains, nested: Nested
) -> tuple[pa.Table, dict[str, Int64Array]]:
    """Return all texts, and where those of each kind begin."""
    frames = list(ranges.frames)
    used = np.unique(nested.frames)
    used = used[used >= 0]
    chain_texts = [texts.trace(frames[f] for f in chains.frames(c)) for c in used.tolist()]
    stack_texts = list(ranges.stacks)
    layers = list(ranges.hierarchies)
    layer_texts = [text for group in layers for text in group]
    around = pa.array([*stack_texts, *chain_texts, *layer_texts], pa.string())
    more = pa.table(templates.columns(around))
    pool = pa.concat_tables([written, more]).unify_dictionaries().combine_chunks()
    count = written.num_rows
    index = np.full(int(used.max(initial=-1)) + 1, -1)
    index[used] = count + len(stack_texts) + np.arange(len(used))
    lengths = np.array([len(group) for group in layers], dtype=np.int64)
    first = count + len(stack_texts) + len(used) + np.cumsum(lengths) - lengths
    return pool, {"stack": np.array([count]), "frames": index, "layers": first, "depth": lengths}


def _rows(nested: Nested, order: Int64Array, offsets: dict[str, Int64Array]) -> _Rows:
    position = np.arange(len(order))
    parts = [_Rows(order, position, np.full(len(order), 1), order)]
    around = np.flatnonzero(nested.stack[order] >= 0)
    text = nested.stack[order[around]] + offsets["stack"][0]
    parts.append(_Rows(order[around], around, np.zeros(len(around), np.int64), text))
    around = np.flatnonzero(nested.frames[order] >= 0)
    text = offsets["frames"][nested.frames[order[around]]]
    parts.append(_Rows(order[around], around, np.zeros(len(around), np.int64), text))
    around = np.flatnonzero(nested.layers[order] >= 0)
    number = nested.layers[order[around]]
    depth = offsets["depth"][number]
    around, first = np.repeat(around, depth), np.repeat(offsets["layers"][number], depth)
    step = np.arange(len(around)) - np.repeat(np.cumsum(depth) - depth, depth)
    parts.append(_Rows(order[around], around, step - len(around) - 1, first + step))
    if not any(len(part.source) for part in parts[1:]):
        return parts[0]
    rows = _Rows(*(np.concatenate(column) for column in zip(*parts, strict=True)))
    inside = np.lexsort((rows.depth, rows.position))
    return _Rows(*(column[inside] for column in rows))
