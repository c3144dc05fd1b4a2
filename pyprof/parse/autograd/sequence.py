"""Per row: PyTorch's own ranges with their numbers, the ops they name, and PyProf's counting."""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

from pyprof.arrays import MISSING
from pyprof.marker import Kind, templates
from pyprof.parse import launches
from pyprof.parse.autograd import backward_nodes
from pyprof.parse.ranges import range_stacks, texts
from pyprof.parse.ranges.nesting import by_value
from pyprof.records.records import DictionaryColumn, encode

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pyprof.arrays import Int64Array, IntArray
    from pyprof.parse.launches import Chains
    from pyprof.parse.ranges.sweep import DescribedSweep, Sweep
    from pyprof.records.records import Column
    from pyprof.schema import Capture


class Numbered(NamedTuple):
    """Sequence numbers and calls from the ranges around each row, whatever their paths."""

    numbers: Chains
    """The distinct sequence numbers of each row, ascending."""
    old_seqs: Chains | None
    """PyTorch's own ranges, if some text has the format used before 2022; else None."""
    columns: dict[str, Column]


def number(
    capture: Capture, sweep: Sweep, chain: Chains, instance: Int64Array, *, raw: bool = True
) -> Numbered:
    """Split the ranges around each row by kind; build the columns of their texts and calls.

    Without `raw`, texts are built only as templates, without their numbers.
    """
    kind = sweep.texts.kind.take(sweep.texts.code.take(chain.member))
    seqs, ops = chain.filter(kind == Kind.SEQ), chain.filter(kind == Kind.OP)
    # templates with a sequence number but no op_id, as before 2022
    old = np.array([said.has_seq and not said.has_op_id for said in sweep.texts.statements], bool)
    # whether ops come before PyTorch's own ranges in every row, as they nearly always do
    behind = (kind[1:] == Kind.OP) & (kind[:-1] == Kind.SEQ)
    calls = chain if (not (behind & ~chain.begins[1:]).any()) else None
    if old.any():
        seqs, calls = _pruned(sweep, seqs, old), None
    numbers = _distinct_numbers(sweep, seqs, old)
    op_id = launches.last(ops)
    is_node = texts.matches(sweep.texts, Kind.SEQ, attrgetter("is_node"))
    for other in (launches.last(seqs.within(is_node)), launches.first(chain)):
        op_id = np.where(op_id == MISSING, other, op_id)
    op_ids = pa.array(op_id + instance * len(is_node), mask=op_id == MISSING)
    calls = calls or _together(ops, seqs)
    call_ids = calls.member
    if instance.any():  # work captured once runs again
        call_ids = call_ids + (instance * len(sweep.row))[calls.owner]
    columns: dict[str, Column] = {
        "opId": op_ids,
        "callIds": calls.lists(pa.array(call_ids)),
        "seqTemplate": encode(seqs.lists(_templates(sweep.texts, seqs))),
    }
    if raw:
        columns["seqMarker"] = seqs.lists(_texts(capture, sweep.row[seqs.member]))
    return Numbered(numbers, seqs if old.any() else None, columns)


def count(
    sweep: DescribedSweep, numbered: Numbered, path: IntArray, flow: IntArray
) -> dict[str, Column]:
    """Build the columns that depend on sequence numbers, those of their texts included.

    `path` has no MISSING; `flow` numbers the groups of rows that are counted separately.
    """
    mods, names = _ops(sweep, path, numbered)
    backward = np.array([entry.backward for entry in sweep.described])[path]
    # Count as the original did: the current number, the others, the index within the op.
    current, sub = np.full(len(names.index), MISSING), np.zeros(len(names.index), np.int64)
    counted = np.flatnonzero(numbered.numbers.offset[1:] > numbered.numbers.offset[:-1])
    for _, index in by_value(flow[counted]):
        rows = counted[index]
        current[rows], sub[rows] = backward_nodes.count_in_order(
            numbered.numbers, rows, names.index[rows], backward[rows]
        )
    is_current = numbered.numbers.member == current.take(numbered.numbers.owner)
    chosen, others = numbered.numbers.filter(is_current), numbered.numbers.filter(~is_current)
    numbers = {
        "seqId": chosen.lists(pa.array(chosen.member)),
        "altSeqId": others.lists(pa.array(others.member)),
        "subSeqId": pa.array(sub),
    }
    return {
        "mod": mods,
        "op": names,
        **numbered.columns,
        **numbers,
    }


def _texts(capture: Capture, row: IntArray) -> pa.StructArray:
    texts = capture.ranges.select([*templates.NAMES]).unify_dictionaries()
    return templates.texts_of_table(texts.take(pa.array(row, pa.int32())))


def _templates(read: texts.Texts, seqs: Chains) -> pa.Array:
    distinct = pa.array([said.text for said in read.statements], pa.string())
    return pa.DictionaryArray.from_arrays(pa.array(read.code.take(seqs.member)), distinct)


def _pruned(sweep: Sweep, seqs: Chains, old: NDArray[np.bool_]) -> Chains:
    """Choose and order the ranges of rows with old texts as the original did."""
    code = sweep.texts.code[seqs.member]
    affected = np.bincount(seqs.owner[old[code]], minlength=len(seqs.offset) - 1) > 0
    members, codes = seqs.member.tolist(), code.tolist()
    numbers = np.maximum(sweep.texts.seq[seqs.member], 0).tolist()
    names = [said.name.split(",", 1)[0] for said in sweep.texts.statements]
    pruned: dict[tuple[tuple[int, ...], tuple[int, ...]], list[int]] = {}
    chosen: list[int] = []
    lengths, offset = np.diff(seqs.offset), seqs.offset.tolist()
    bounds = zip(affected.tolist(), offset[:-1], offset[1:], strict=True)
    for row, (is_old, low, high) in enumerate(bounds):
        if is_old and high - low > 1:
            key = (tuple(codes[low:high]), _ranks(numbers[low:high]))
            if (positions := pruned.get(key)) is None:
                positions = pruned[key] = backward_nodes.prune(
                    [names[code] for code in key[0]], key[1]
                )
            lengths[row] = len(positions)
            chosen.extend(members[low + index] for index in positions)
        else:
            chosen.extend(members[low:high])
    return launches.Chains(launches.offsets(lengths), np.array(chosen, np.int64))


def _ranks(numbers: list[int]) -> tuple[int, ...]:
    """Each number's rank among the distinct ones."""
    index = {number: rank for rank, number in enumerate(sorted(set(numbers)))}
    return tuple(index[number] for number in numbers)


def _ops(
    sweep: DescribedSweep, path: IntArray, numbered: Numbered
) -> tuple[DictionaryColumn, DictionaryColumn]:
    """Name each row's ops: by its path alone, except for old texts, which numbers put in order."""
    named_ops = [range_stacks.ops(entry.ops, entry.naming) for entry in sweep.described]
    if numbered.old_seqs is not None:
        path, named_ops = _ops_by_row(sweep, path, numbered.old_seqs)
    distinct = {entry: place for place, entry in enumerate(dict.fromkeys(map(tuple, named_ops)))}
    index = np.array([distinct[tuple(entry)] for entry in named_ops], np.int32).take(path)
    named_ops = [list(entry) for entry in distinct]
    return (
        DictionaryColumn(index, [[mod for mod, _ in entry] for entry in named_ops]),
        DictionaryColumn(index, [[op for _, op in entry] for entry in named_ops]),
    )


def _ops_by_row(
    sweep: DescribedSweep, path: IntArray, seqs: Chains
) -> tuple[Int64Array, list[list[tuple[str, str]]]]:
    indices: dict[tuple[object, ...], int] = {}
    rows: list[int] = []
    named_ops: list[list[tuple[str, str]]] = []
    statements = sweep.texts.statements
    code = sweep.texts.code[seqs.member].tolist()
    bounds = zip(path.tolist(), seqs.offset[:-1].tolist(), seqs.offset[1:].tolist(), strict=True)
    for index, low, high in bounds:
        key = (index, *code[low:high])
        if key not in indices:
            indices[key] = len(named_ops)
            seen = [statements[index] for index in code[low:high]]
            named_ops.append(range_stacks.ops(sweep.described[index].ops, seen))
        rows.append(indices[key])
    return np.array(rows, np.int64), named_ops


def _distinct_numbers(sweep: Sweep, seqs: Chains, old: NDArray[np.bool_]) -> Chains:
    """The distinct sequence numbers of each row, ascending."""
    seqs = seqs.filter(sweep.texts.seq.take(seqs.member) >= 0)
    numbers = launches.Chains(seqs.offset, sweep.texts.seq.take(seqs.member))
    if old.any():  # in old texts 0 means "none" once there is a number
        some = np.bincount(numbers.owner[numbers.member > 0], minlength=len(seqs.offset) - 1) > 0
        none = old[sweep.texts.code[seqs.member]] & (numbers.member == 0)
        numbers = numbers.filter(~(none & some[numbers.owner]))
    begins = numbers.begins
    if ((numbers.member[1:] < numbers.member[:-1]) & ~begins[1:]).any():  # seldom
        order = np.lexsort((numbers.member, numbers.owner))
        numbers = launches.Chains(numbers.offset, numbers.member[order])
    keep = begins
    keep[1:] |= numbers.member[1:] != numbers.member[:-1]
    return numbers.filter(keep)


def _together(ops: Chains, seqs: Chains) -> Chains:
    """Concatenate two list columns row by row."""
    both = np.empty(len(ops.member) + len(seqs.member), np.int32)
    both[np.arange(len(ops.member)) + seqs.offset[ops.owner]] = ops.member
    both[np.arange(len(seqs.member)) + ops.offset[1:][seqs.owner]] = seqs.member
    return launches.Chains(ops.offset + seqs.offset, both)
