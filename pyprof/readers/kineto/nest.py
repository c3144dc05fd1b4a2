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
from pyprof.readers.kineto.columns import Interned
from pyprof.readers.kineto.op_texts import COMPILING, MARKER, MODULE, NOTE, OP
from pyprof.readers.kineto.ranges import OPEN, Columns

if TYPE_CHECKING:
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
    chains: list[tuple[int, int]]
    """By number of a chain: the chain around its innermost frame, -1 for none, and that frame."""
    layers: Int64Array
    """By row: number of the module hierarchy to be written around it; -1 for none."""
    op: IntArray
    """By row: the row of the op that it lies in; -1 for none."""
    compiling: Mask
    """By row: whether it lies in what torch.compile does before a model runs."""


def nested(ranges: Columns, python: Columns) -> Nested:
    """Nest the ranges of every thread. Rows of `python` only contribute frames."""
    count = len(ranges.start)
    both = type(ranges)(*(np.concatenate(pair) for pair in zip(ranges, python, strict=True)))
    # With equal bounds, the first to begin is outside; a frame is outside its callees.
    order = np.lexsort((both.order, -both.end, both.start, both.thread))
    ends, parents, calls, free = _sweep(both, count, order)
    parent, call = np.array(parents, np.int64), np.array(calls, np.int64)
    style = np.full(count, schema.NESTED)
    style[free] = schema.FREE
    frames, chains = _frames(both, parent, call)
    return Nested(
        order[order < count],
        np.array(ends[:count], np.int64),
        style,
        _drop_inherited(ranges.stack, parent, ranges.kind),
        frames,
        chains,
        _drop_inherited(ranges.layers, parent, ranges.kind),
        nearest(parent, ranges.kind == OP),
        nearest(parent, ranges.kind == COMPILING) >= 0,
    )


def _sweep(
    ranges: Columns, count: int, order: Int64Array
) -> tuple[list[int], list[int], list[int], list[int]]:
    """Pass over all ranges in `order`, by thread and start; rows from `count` on are Python's.

    Returns the end of each row, the row that each lies in, the innermost Python call that each
    began in, -1 for none, and the rows that begin in another and go on after it.
    """
    starts, threads = (column[order].tolist() for column in (ranges.start, ranges.thread))
    ends, parents, around = ranges.end.tolist(), [-1] * count, [-1] * len(order)
    free: list[int] = []
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
            goes_on = _fix_overhang(row, start, outer, ends, ranges.kind, free)
        if outer:
            parents[row] = outer[-1]
        if not goes_on:
            outer.append(row)
    return ends, parents, around, free


def _fix_overhang(
    row: int, start: int, outer: list[int], ends: list[int], kind: Int64Array, free: list[int]
) -> bool:
    """Fix a range that outlasts the one it began in; return whether it goes on after that.

    Such a range contains nothing.
    """
    while outer and ends[row] > ends[outer[-1]]:
        around = outer[-1]
        over, shared = ends[row] - ends[around], ends[around] - start
        if shared <= min(SLACK_NS, over):  # they touch: the first had ended
            ends[around] = min(start, ends[around])
            outer.pop()
        elif over <= SLACK_NS:
            ends[row] = ends[around]
        else:
            longer = row if kind[row] != OP else around
            if kind[longer] != OP:
                free.append(longer)
            return longer == row
    return False


def _frames(
    both: Columns, parent: Int64Array, call: Int64Array
) -> tuple[Int64Array, list[tuple[int, int]]]:
    """Return the chain of the frames that began inside each range's parent, and all chains.

    Ranges that are, or are inside, PyProf's own trace markers get none: their lines are more exact.
    """
    count = len(parent)
    frames, inner = np.full(count, -1), call[:count]
    if not (inner >= 0).any():
        return frames, []
    kind = both.kind[:count]
    around = nearest(parent, kind != MODULE)
    since = np.where(around < 0, -1, both.start[around])
    traced = (kind == MARKER) | (nearest(parent, kind == MARKER) >= 0)
    wanted = (inner >= 0) & (kind != MODULE) & (both.stack[:count] < 0) & ~traced
    rows = np.flatnonzero(wanted & (both.start[inner] >= since))
    # `call` is the Python call around each row
    outer, frame_of = call.tolist(), both.stack.tolist()
    chains, chain_of = Interned(), {-1: -1}
    for innermost in inner[rows].tolist():
        unknown, at = [], innermost
        while at not in chain_of:
            unknown.append(at)
            at = outer[at]
        for at in reversed(unknown):
            chain_of[at] = chains[chain_of[outer[at]], frame_of[at]]
    frames[rows] = [chain_of[innermost] for innermost in inner[rows].tolist()]
    return frames, list(chains)


def _trace(chain: int, chains: list[tuple[int, int]], frames: list[tuple[str, str]]) -> str:
    """Write the trace marker of a chain of frames."""
    innermost_first = []
    while chain >= 0:
        chain, frame = chains[chain]
        innermost_first.append(frames[frame])
    return texts.trace(reversed(innermost_first))


def _drop_inherited(number: Int64Array, parent: Int64Array, kind: Int64Array) -> Int64Array:
    """Return each op's number, such as a call stack's; -1 if equal to that of the op around."""
    around = nearest(parent, number >= 0)
    outer = np.where(around < 0, -1, number[around])
    return np.where((kind == OP) & (number != outer), number, -1)


def range_table(ranges: Ranges, nested: Nested, forward: pa.Array, stopped: Int64Array) -> pa.Table:
    """Return the rows of all ranges and of the markers written around them.

    The texts of `stopped` ops are marked as such.
    """
    columns = ranges.columns()
    written = _with_stopped(ranges.texts(), stopped)
    pool, offsets = _pool(written, ranges, nested)
    order = nested.order
    if (columns.kind == MARKER).any():  # layers that the script named are better than modules
        notes = written.column("text").filter(pa.array(columns.kind == NOTE)).unique()
        if pc.any(pc.starts_with(notes.cast(pa.string()), "layer:")).as_py():
            order = order[columns.kind[order] != MODULE]
    position, text = _rows(nested, order, offsets)
    source = order[position]
    end = nested.end[source]
    own = pa.array(text < len(columns.start))
    return schema.table(
        schema.RANGES,
        {
            "start": columns.start[source],
            "end": pa.array(end, mask=end == OPEN),
            "thread": columns.thread[source].astype(np.int32),
            "style": nested.style[source].astype(np.int8),
            **{name: pool.column(name).take(pa.array(text)) for name in pool.column_names},
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
    layout, frames = nested(called, python), list(ranges.frames)
    used, code = np.unique(layout.frames, return_inverse=True)
    stacks = [_trace(chain, layout.chains, frames) for chain in used.tolist()]
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
    written: pa.Table, ranges: Ranges, nested: Nested
) -> tuple[pa.Table, dict[str, Int64Array]]:
    """Return all texts, and the row of each kind's texts by number; "depth" is that of layers."""
    frames = list(ranges.frames)
    used = np.unique(nested.frames)
    used = used[used >= 0]
    chain_texts = [_trace(chain, nested.chains, frames) for chain in used.tolist()]
    stack_texts = list(ranges.stacks)
    layers = list(ranges.hierarchies)
    layer_texts = [text for group in layers for text in group]
    around = pa.array([*stack_texts, *chain_texts, *layer_texts], pa.string())
    more = pa.table(templates.columns(around))
    pool = pa.concat_tables([written, more]).unify_dictionaries().combine_chunks()
    count = written.num_rows
    stack_rows = count + np.arange(len(stack_texts))
    chain_rows = np.full(int(used.max(initial=-1)) + 1, -1)
    chain_rows[used] = count + len(stack_texts) + np.arange(len(used))
    lengths = np.array([len(group) for group in layers], dtype=np.int64)
    first = count + len(stack_texts) + len(used) + np.cumsum(lengths) - lengths
    rows = {"stack": stack_rows, "frames": chain_rows, "layers": first, "depth": lengths}
    return pool, rows


def _rows(
    nested: Nested, order: Int64Array, offsets: dict[str, Int64Array]
) -> tuple[Int64Array, Int64Array]:
    """Return the rows to write: for each the position of its range in `order`, and its text."""
    # position, depth (the smaller, the further out), text
    parts = [(np.arange(len(order)), np.ones(len(order), np.int64), order)]
    for number, text_rows in ((nested.stack, offsets["stack"]), (nested.frames, offsets["frames"])):
        around = np.flatnonzero(number[order] >= 0)
        text = text_rows[number[order[around]]]
        parts.append((around, np.zeros(len(around), np.int64), text))
    around = np.flatnonzero(nested.layers[order] >= 0)
    number = nested.layers[order[around]]
    depth = offsets["depth"][number]
    around, first = np.repeat(around, depth), np.repeat(offsets["layers"][number], depth)
    step = np.arange(len(around)) - np.repeat(np.cumsum(depth) - depth, depth)
    parts.append((around, step - len(around) - 1, first + step))
    position, depth, text = (np.concatenate(column) for column in zip(*parts, strict=True))
    if len(position) == len(order):
        return position, text
    inside = np.lexsort((depth, position))
    return position[inside], text[inside]
