"""Per row: PyTorch's own ranges with their numbers, the ops they name, and PyProf's counting."""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from pyprof.arrays import MISSING, texts_by_index
from pyprof.marker import Kind, templates
from pyprof.parse import launch_sites, launches
from pyprof.parse.ranges import range_stacks, texts
from pyprof.parse.ranges.nesting import by_value
from pyprof.records.records import DictionaryColumn, encode

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyprof.arrays import Int64Array, IntArray, Mask
    from pyprof.parse.launch_sites import LaunchSites
    from pyprof.parse.launches import Chains
    from pyprof.parse.ranges.sweep import Sweep
    from pyprof.records.records import Column
    from pyprof.schema import Capture


def columns(
    capture: Capture,
    sweep: Sweep,
    path: DictionaryColumn,
    chain: Chains,
    site: LaunchSites,
    *,
    raw: bool = True,
) -> dict[str, Column]:
    """Build the columns of the ops and of PyTorch's own ranges around each row.

    `path` is that of each row, without null. Without `raw`, texts are built only as templates,
    without their numbers.
    """
    kind = sweep.texts.kind.take(sweep.texts.code.take(chain.member))
    seqs, ops = chain.filter(kind == Kind.SEQ), chain.filter(kind == Kind.OP)
    # templates with a sequence number but no op_id, as before 2022
    old = np.array([said.has_seq and not said.has_op_id for said in sweep.texts.statements], bool)
    # whether ops come before PyTorch's own ranges in every row, as they nearly always do
    behind = (kind[1:] == Kind.OP) & (kind[:-1] == Kind.SEQ)
    calls = chain
    if old.any():
        seqs = _prune(sweep, seqs, old)
    if old.any() or (behind & ~chain.begins[1:]).any():
        calls = _concat_lists(ops, seqs)
    op_id = launches.last(ops)
    is_node = texts.matches(sweep.texts, Kind.SEQ, attrgetter("is_node"))
    for other in (launches.last(seqs.within(is_node)), launches.first(chain)):
        op_id = np.where(op_id == MISSING, other, op_id)
    call_ids = calls.member
    if site.instance.any():  # work captured once runs again
        call_ids = call_ids + (site.instance * len(sweep.row))[calls.owner]
    mods, names = _ops(sweep, path, seqs, old)
    backward = path.matches(attrgetter("backward"))
    numbers = _distinct_numbers(sweep, seqs, old)
    return {
        "opId": pa.array(op_id + site.instance * len(is_node), mask=op_id == MISSING),
        "callIds": calls.lists(pa.array(call_ids)),
        "mod": mods,
        "op": names,
        **_texts(capture, sweep, seqs, raw=raw),
        **_count(numbers, launch_sites.flow(site), names.index, backward),
    }


def _texts(capture: Capture, sweep: Sweep, seqs: Chains, *, raw: bool) -> dict[str, Column]:
    code, statements = sweep.texts.code.take(seqs.member), sweep.texts.statements
    coded = texts_by_index(code, [said.text for said in statements])
    built: dict[str, Column] = {"seqTemplate": encode(seqs.lists(coded))}
    if raw:
        texts = capture.ranges.select([*templates.NAMES]).unify_dictionaries()
        rows = pa.array(sweep.row[seqs.member], pa.int32())
        built["seqMarker"] = seqs.lists(templates.texts_of_table(texts.take(rows)))
    return built


def _count(numbers: Chains, flow: IntArray, op: IntArray, backward: Mask) -> dict[str, Column]:
    """Count as the original did: the current number, the others, the index within the op.

    `flow` numbers the groups of rows that are counted separately.
    """
    current, sub = np.full(len(op), MISSING), np.zeros(len(op), np.int64)
    counted = np.flatnonzero(np.diff(numbers.offset))
    for _, index in by_value(flow[counted]):
        rows = counted[index]
        current[rows], sub[rows] = _count_in_order(numbers, rows, op[rows], backward[rows])
    is_current = numbers.member == current.take(numbers.owner)
    chosen, others = numbers.filter(is_current), numbers.filter(~is_current)
    return {
        "seqId": chosen.lists(pa.array(chosen.member)),
        "altSeqId": others.lists(pa.array(others.member)),
        "subSeqId": pa.array(sub),
    }


def _count_in_order(
    numbers: Chains, rows: Int64Array, op: IntArray, backward: Mask
) -> tuple[Int64Array, Int64Array]:
    """Each kernel's sequence number on its thread, and its index among those of that number.

    A backward kernel's current number is its lowest. A forward kernel's is its first that is
    above the one before, else the one before. `numbers` are ascending; each row has some.
    """
    low, high = numbers.offset[rows], numbers.offset[rows + 1]
    lowest, highest = numbers.member[low], numbers.member[high - 1]
    # the running maximum, restarted at every backward kernel
    step = int(lowest.max(initial=0)) + 1
    lift = np.cumsum(backward) * step
    current = np.asarray(np.maximum.accumulate(lowest + lift) - lift)
    before = np.concatenate([[MISSING], current[:-1]])
    if (~backward & (lowest <= before) & (before < highest)).any():
        last = MISSING
        for row, (a, b) in enumerate(zip(low, high, strict=True)):
            entry = numbers.member[a:b].tolist()
            last = entry[0] if backward[row] else next((n for n in entry if n > last), last)
            current[row] = last
    new = np.ones(len(current), bool)
    new[1:] = (current[1:] != current[:-1]) | (op[1:] != op[:-1])
    index = np.arange(len(current))
    return current, index - np.maximum.accumulate(np.where(new, index, 0))


def _prune(sweep: Sweep, seqs: Chains, old: Mask) -> Chains:
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
            ranks = {number: rank for rank, number in enumerate(sorted(set(numbers[low:high])))}
            key = (tuple(codes[low:high]), tuple(ranks[number] for number in numbers[low:high]))
            if (positions := pruned.get(key)) is None:
                positions = pruned[key] = _prune_row([names[code] for code in key[0]], key[1])
            lengths[row] = len(positions)
            chosen.extend(members[low + index] for index in positions)
        else:
            chosen.extend(members[low:high])
    return launches.Chains(launches.offsets(lengths), np.array(chosen, np.int64))


def _prune_row(names: Sequence[str], numbers: Sequence[int]) -> list[int]:
    """Choose and order the ranges that the original listed, for texts without op_id.

    By number, then by name; of neighbours with one number, one whose name is part of
    the other's is left out. Returns positions.
    """
    order = sorted(range(len(names)), key=lambda i: (numbers[i], names[i]))
    chosen: list[int] = []
    for before, this in zip([None, *order], order, strict=False):
        similar = before is not None and (
            names[this] in names[before] or names[before] in names[this]
        )
        if not (similar and before is not None and numbers[this] == numbers[before]):
            chosen.append(this)
    return chosen


def _ops(
    sweep: Sweep, path: DictionaryColumn, seqs: Chains, old: Mask
) -> tuple[DictionaryColumn, DictionaryColumn]:
    """Name each row's ops, by its path; old texts are ordered by their numbers, row by row."""
    named_ops = path.map(lambda stack: range_stacks.ops(stack.ops, stack.naming))
    if old.any():
        named_ops = _ops_by_row(sweep, path, seqs)
    every = dict.fromkeys(map(tuple, named_ops.values))
    distinct = {entry: place for place, entry in enumerate(every)}
    index = named_ops.numpy(lambda entry: distinct[tuple(entry)], MISSING)
    return (
        DictionaryColumn(index, [[mod for mod, _ in entry] for entry in distinct]),
        DictionaryColumn(index, [[op for _, op in entry] for entry in distinct]),
    )


def _ops_by_row(sweep: Sweep, path: DictionaryColumn, seqs: Chains) -> DictionaryColumn:
    indices: dict[tuple[object, ...], int] = {}
    rows: list[int] = []
    named_ops: list[list[tuple[str, str]]] = []
    statements = sweep.texts.statements
    code = sweep.texts.code[seqs.member].tolist()
    offset = seqs.offset.tolist()
    for index, low, high in zip(path.index.tolist(), offset[:-1], offset[1:], strict=True):
        key = (index, *code[low:high])
        if key not in indices:
            indices[key] = len(named_ops)
            seen = [statements[index] for index in code[low:high]]
            named_ops.append(range_stacks.ops(path.values[index].ops, seen))
        rows.append(indices[key])
    return DictionaryColumn(np.array(rows, np.int64), named_ops)


def _distinct_numbers(sweep: Sweep, seqs: Chains, old: Mask) -> Chains:
    """The distinct sequence numbers of each row, ascending."""
    seqs = seqs.filter(sweep.texts.seq.take(seqs.member) >= 0)
    numbers = launches.Chains(seqs.offset, sweep.texts.seq.take(seqs.member))
    if old.any():  # in old texts 0 means "none" once there is a number
        some = np.bincount(numbers.owner[numbers.member > 0], minlength=len(seqs.offset) - 1) > 0
        none = old[sweep.texts.code[seqs.member]] & (numbers.member == 0)
        numbers = numbers.filter(~(none & some[numbers.owner]))
    begins = numbers.begins
    if ((numbers.member[1:] < numbers.member[:-1]) & ~begins[1:]).any():  # rarely
        order = np.lexsort((numbers.member, numbers.owner))
        numbers = launches.Chains(numbers.offset, numbers.member[order])
    keep = begins
    keep[1:] |= numbers.member[1:] != numbers.member[:-1]
    return numbers.filter(keep)


def _concat_lists(ops: Chains, seqs: Chains) -> Chains:
    both = np.empty(len(ops.member) + len(seqs.member), np.int32)
    both[np.arange(len(ops.member)) + seqs.offset[ops.owner]] = ops.member
    both[np.arange(len(seqs.member)) + ops.offset[1:][seqs.owner]] = seqs.member
    return launches.Chains(ops.offset + seqs.offset, both)
