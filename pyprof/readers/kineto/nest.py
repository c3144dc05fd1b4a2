"""Ranges of a thread put inside one another, with the Python frames and modules around them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyprof import marker, schema
from pyprof.marker import templates
from pyprof.readers.kineto import texts
from pyprof.readers.kineto.op_texts import FRAME, MARKER, MODULE, NOTE, OP

if TYPE_CHECKING:
    from pyprof.arrays import Ints
    from pyprof.readers.kineto.ranges import Columns, Ranges

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


class FrameChains:
    """Chains of Python frames, each a longer one's beginning or end of line."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[int, int], int] = {}
        self._links: list[tuple[int, int]] = []

    def longer(self, chain: int, frame: int) -> int:
        """Give the number of a chain with one more frame inside."""
        key = (chain, frame)
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self._links)
            self._links.append(key)
        return number

    def frames(self, chain: int) -> list[int]:
        """Give a chain's frames, outermost first."""
        innermost_first = []
        while chain >= 0:
            chain, frame = self._links[chain]
            innermost_first.append(frame)
        return innermost_first[::-1]


def nested(ranges: Columns, python: Columns, chains: FrameChains) -> Nested:
    """Lay out the ranges of every thread. Rows of `python` only give them their frames."""
    count = len(ranges.start)
    both = type(ranges)(*(np.concatenate(pair) for pair in zip(ranges, python, strict=True)))
    end = np.where(both.end < 0, _FOREVER, both.end)
    # Equal boundaries: what began first lies outside; a frame lies outside of what it calls.
    order = np.lexsort((both.order, -end, both.start, both.thread))
    return _Sweep(both, end, count, chains).layout(order, count)


_Open = tuple[int, int, int, int, int, int, bool, int, int]
"""A range that has begun and not yet ended, as the sweep passes: its row, start, end and kind;
since when frames lie inside of it; the innermost op, itself included, or -1; whether a trace of
PyProf's own is around, which knows the lines better than the frames do; stack; layers. A plain
tuple: a trace has millions.
"""

_OUTSIDE: _Open = (-1, -1, _FOREVER, NOTE, -1, -1, False, -1, -1)


class _Sweep:
    """One pass over all ranges in order of thread and start."""

    def __init__(self, ranges: Columns, end: Ints, count: int, chains: FrameChains) -> None:
        self._ranges = ranges
        self._chains = chains
        self._ends = end.tolist()
        self._styles = [schema.NESTED] * count
        self._stacks, self._frames, self._layers, self._ops = ([-1] * count for _ in range(4))

    def layout(self, order: Ints, count: int) -> Nested:
        """Pass over all; rows from `count` on are those of Python."""
        self._run(order)
        ends = np.array(self._ends[:count], np.int64)
        columns = (self._styles, self._stacks, self._frames, self._layers, self._ops)
        return Nested(
            order[order < count],
            np.where(ends == _FOREVER, -1, ends),
            *(np.array(column, np.int64) for column in columns),
        )

    def _run(self, order: Ints) -> None:
        ranges, longer = self._ranges, self._chains.longer
        lists = (column[order].tolist() for column in (*ranges[:4], ranges.stack, ranges.layers))
        starts, _, threads, kinds, stacks, layers = lists
        end_of, op_of, frames_of = self._ends, self._ops, self._frames
        thread = -1
        outer: list[_Open] = []
        calls: list[tuple[int, int, int]] = []
        for row, start, on, kind, stack, layer in zip(
            order.tolist(), starts, threads, kinds, stacks, layers, strict=True
        ):
            if on != thread:
                thread, outer, calls = on, [], []
            while calls and calls[-1][1] <= start:
                calls.pop()
            end = end_of[row]
            if kind == FRAME:
                calls.append((start, end, longer(calls[-1][2] if calls else -1, stack)))
                continue
            while outer and outer[-1][2] <= start:
                outer.pop()
            if outer and end > outer[-1][2]:
                end = self._overhang(row, start, end, kind, outer)
            _, _, _, _, since, op, traced, outer_stack, outer_layer = (
                outer[-1] if outer else _OUTSIDE
            )
            op_of[row] = op
            if kind == OP:
                op = row
                self._note(row, stack, outer_stack, layer, outer_layer)
            traced = traced or kind == MARKER
            if kind != MODULE and stack < 0 and calls and calls[-1][0] >= since and not traced:
                frames_of[row] = calls[-1][2]
            outer.append(
                (
                    row,
                    start,
                    end,
                    kind,
                    since if kind == MODULE else start,
                    op,
                    traced,
                    outer_stack if stack < 0 else stack,
                    outer_layer if layer < 0 else layer,
                )
            )

    def _note(self, row: int, stack: int, outer_stack: int, layers: int, outer_layers: int) -> None:
        if stack != outer_stack:
            self._stacks[row] = stack
        if layers != outer_layers:
            self._layers[row] = layers

    def _overhang(self, row: int, start: int, end: int, kind: int, outer: list[_Open]) -> int:
        """Set right a range that goes on after the one it began in; give its end."""
        while outer and end > outer[-1][2]:
            around, _, around_end, *_ = outer[-1]
            over, shared = end - around_end, around_end - start
            if shared <= min(SLACK_NS, over):  # they touch: the first had ended
                self._ends[around] = min(start, around_end)
                outer.pop()
            elif over <= SLACK_NS:
                self._ends[row] = around_end
                return around_end
            else:
                free = row if kind != OP else around
                if self._ranges.kind[free] != OP:
                    self._styles[free] = schema.FREE
                break
        return end


# The table of ranges: each op with the trace and layers that belong around it, parents first.


class _Rows(NamedTuple):
    """Rows to write: whose times, in which place among those of the same range, which text."""

    source: Ints
    position: Ints
    """Of the source in the order of ranges."""
    depth: Ints
    """Among the rows of one position: the smaller the further out."""
    text: Ints


def range_table(
    ranges: Ranges, nested: Nested, chains: FrameChains, forward: pa.Array, stopped: Ints
) -> pa.Table:
    """Give the rows of all ranges and of what is written around them.

    Of ops that are `stopped` the texts say so.
    """
    columns = ranges.columns()
    written = _with_stopped(ranges.texts(), stopped)
    pool, offsets = _pool(written, ranges, chains, nested)
    order = nested.order
    if _own_layers(written, columns.kind):
        order = order[columns.kind[order] != MODULE]  # the model's own paths say more
    rows = _rows(nested, order, offsets)
    source = rows.source
    end = nested.end[source]
    own = pa.array(rows.text < len(columns.start))
    return schema.table(
        schema.RANGES,
        {
            "start": columns.start[source],
            "end": pa.array(end, mask=end < 0),
            "thread": columns.thread[source].astype(np.int32),
            "style": nested.style[source].astype(np.int8),
            **{name: pool.column(name).take(pa.array(rows.text)) for name in pool.column_names},
            "forward_thread": pc.if_else(own, forward.take(pa.array(source)), None),
        },
    )


def _with_stopped(written: pa.Table, rows: Ints) -> pa.Table:
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
) -> tuple[pa.Table, dict[str, Ints]]:
    """Give all texts there are, and where those of each kind are by number."""
    frames = list(ranges.frames.values())
    used = np.unique(nested.frames)
    used = used[used >= 0]
    chain_texts = [texts.trace(frames[f] for f in chains.frames(c)) for c in used.tolist()]
    stack_texts = list(ranges.stacks.values())
    layers = list(ranges.hierarchies.values())
    layer_texts = [text for group in layers for text in group]
    around = pa.array([*stack_texts, *chain_texts, *layer_texts], pa.string())
    more = pa.Table.from_struct_array(templates.split(around))
    pool = pa.concat_tables([written, more]).unify_dictionaries().combine_chunks()
    count = written.num_rows
    place = np.full(int(used.max(initial=-1)) + 1, -1)
    place[used] = count + len(stack_texts) + np.arange(len(used))
    lengths = np.array([len(group) for group in layers], dtype=np.int64)
    first = count + len(stack_texts) + len(used) + np.cumsum(lengths) - lengths
    return pool, {"stack": np.array([count]), "frames": place, "layers": first, "depth": lengths}


def _rows(nested: Nested, order: Ints, offsets: dict[str, Ints]) -> _Rows:
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
    rows = _Rows(*(np.concatenate(column) for column in zip(*parts, strict=True)))
    inside = np.lexsort((rows.depth, rows.position))
    return _Rows(*(column[inside] for column in rows))


def _own_layers(written: pa.Table, kind: Ints) -> bool:
    """Tell whether the script wrote markers and layers of PyProf's own."""
    if not (kind == MARKER).any():
        return False
    notes = written.column("text").filter(pa.array(kind == NOTE)).unique()
    return bool(pc.any(pc.starts_with(notes.cast(pa.string()), "layer:")).as_py())
