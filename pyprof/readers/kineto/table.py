"""The table of ranges: each op with the trace and layers that belong around it, parents first."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyprof import marker, schema
from pyprof.marker import numbered
from pyprof.readers.kineto import texts
from pyprof.readers.kineto.ranges import MARKER, MODULE, NOTE

if TYPE_CHECKING:
    from pyprof.readers.kineto.columns import Ints
    from pyprof.readers.kineto.nest import Chains, Nested
    from pyprof.readers.kineto.ranges import Ranges


class _Rows(NamedTuple):
    """Rows to write: whose times, in which place among those of the same range, which text."""

    source: Ints
    position: Ints
    """Of the source in the order of ranges."""
    depth: Ints
    """Among the rows of one position: the smaller the further out."""
    text: Ints


def range_table(
    ranges: Ranges, nested: Nested, chains: Chains, forward: pa.Array, stopped: Ints
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
    written: pa.Table, ranges: Ranges, chains: Chains, nested: Nested
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
    more = pa.Table.from_struct_array(numbered.split(around))
    pool = pa.concat_tables([written, more]).unify_dictionaries().combine_chunks()
    count = written.num_rows
    place = np.full(int(used.max(initial=-1)) + 1, -1)
    place[used] = count + len(stack_texts) + np.arange(len(used))
    lengths = np.array([len(group) for group in layers], dtype=np.int64)
    first = count + len(stack_texts) + len(used) + np.cumsum(lengths) - lengths
    return pool, {"stack": np.array([count]), "frames": place, "layers": first, "depth": lengths}


def _rows(nested: Nested, order: Ints, offsets: dict[str, Ints]) -> _Rows:
    position = np.arange(len(order))
    found = [_Rows(order, position, np.full(len(order), 1), order)]
    around = np.flatnonzero(nested.stack[order] >= 0)
    text = nested.stack[order[around]] + offsets["stack"][0]
    found.append(_Rows(order[around], around, np.zeros(len(around), np.int64), text))
    around = np.flatnonzero(nested.frames[order] >= 0)
    text = offsets["frames"][nested.frames[order[around]]]
    found.append(_Rows(order[around], around, np.zeros(len(around), np.int64), text))
    around = np.flatnonzero(nested.layers[order] >= 0)
    number = nested.layers[order[around]]
    depth = offsets["depth"][number]
    around, first = np.repeat(around, depth), np.repeat(offsets["layers"][number], depth)
    step = np.arange(len(around)) - np.repeat(np.cumsum(depth) - depth, depth)
    found.append(_Rows(order[around], around, step - len(around) - 1, first + step))
    rows = _Rows(*(np.concatenate(column) for column in zip(*found, strict=True)))
    inside = np.lexsort((rows.depth, rows.position))
    return _Rows(*(column[inside] for column in rows))


def _own_layers(written: pa.Table, kind: Ints) -> bool:
    """Tell whether the script wrote markers and layers of PyProf's own."""
    if not (kind == MARKER).any():
        return False
    notes = written.column("text").filter(pa.array(kind == NOTE)).unique()
    return bool(pc.any(pc.starts_with(notes.cast(pa.string()), "layer:")).as_py())
