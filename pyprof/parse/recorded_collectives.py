"""Fields of collectives: from the tool, else from the marker of the call that launched them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from pyprof import marker, schema
from pyprof.records.records import DictionaryColumn, encode, number_combinations, number_lists

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa

    from pyprof.arrays import Int64Array
    from pyprof.parse.ranges.range_stacks import RangeStack

_AMOUNTS = frozenset({"dtype", "in", "out"})
"""Fields that belong together, stated for a call and not for each of its kernels."""

CollectiveFields: TypeAlias = "Mapping[str, str | int]"


def collective_column(
    by_tool: pa.ChunkedArray, path: DictionaryColumn, call: Int64Array, comm: Int64Array
) -> DictionaryColumn:
    """What is known of each row's collective, as JSON of `schema.COLLECTIVE`.

    `by_tool` is what the tool recorded, which takes precedence over the marker; `path` that of each
    row, `call` its op call (negative for none), `comm` the rows that communicate.
    """
    column = encode(by_tool.combine_chunks())
    # what DDP records of its process group, if all its records in the capture agree
    ddp_calls = (stack.markers[-1].call for stack in path.values if stack.ops[-1:] == (marker.DDP,))
    groups = [called.collective for called in ddp_calls if called]
    ddp = groups[0] if groups and all(each == groups[0] for each in groups) else {}
    marked = path.map(lambda stack: _read_path(stack) or _describe_reducer(stack, ddp))
    rows = comm[marked.matches()[comm] & (call[comm] >= 0)]
    # one op call may hold several of DDP's reductions, each with an amount of its own
    fields = number_lists(marked.map(lambda known: known.items()))
    which = number_combinations(call[rows], fields[rows])
    several = np.bincount(which)[which] > 1
    keys = np.stack([column.index[rows], marked.index[rows], several], axis=1)
    distinct, place = np.unique(keys, axis=0, return_inverse=True)
    values = []
    for index, at, is_one_of_several in distinct.tolist():
        tool = json.loads(column.values[index]) if index >= 0 else {}
        left_out = _AMOUNTS if is_one_of_several or not _AMOUNTS.isdisjoint(tool) else ()
        added = {key: value for key, value in marked.values[at].items() if key not in left_out}
        values.append(json.dumps(added | tool))
    index_of_row = column.index.copy()
    index_of_row[rows] = len(column.values) + place.reshape(-1)
    return DictionaryColumn(index_of_row, column.values + values)


def _read_path(path: RangeStack) -> CollectiveFields:
    """What the innermost enclosing collective records, by name; {} if there is none."""
    for said in reversed(path.markers):
        call = said.call
        if call is not None and call.collective:
            fields = {
                key: call.collective[key] for key in schema.COLLECTIVE if key in call.collective
            }
            return {"name": call.op, **fields}
    return {}


def _describe_reducer(path: RangeStack, ddp: CollectiveFields) -> CollectiveFields:
    """What is known of DDP's reductions and broadcasts in C++; {} for any other work."""
    for called in reversed(path.seqs if ddp else ()):
        if called.name == _BROADCAST:  # of buffers of any type
            return {"name": "broadcast"} | {key: ddp[key] for key in ddp if key != "dtype"}
        if called.name == _REDUCED and path.backward and called.call is not None:
            count = sum(tensor.numel for tensor in called.call.tensors)
            return {"name": "allreduce", **ddp} | ({"in": count, "out": count} if count else {})
    return {}


_REDUCED, _BROADCAST = "c10d::allreduce_", "c10d::broadcast_"
