"""Host time by op: its calls, its own time, and its time with the ops called inside.

This needs a capture: records only hold what ran on the GPU. Ops go by their own names at any depth,
as in `key_averages()` of torch.profiler: `linear` is a call, and the `addmm` inside it is another.
A range that is alone inside one of the same name is the same call; so is PyTorch's own range inside
a marker of the same name.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyprof import schema
from pyprof.answers.summary_answer import HostOp
from pyprof.arrays import MISSING, ints, referenced_rows
from pyprof.marker import Kind, Statement
from pyprof.parse.launches import launch_bounds
from pyprof.parse.ranges import nesting, texts
from pyprof.parse.ranges.range_stacks import mod_and_op, user_line, user_trace
from pyprof.prof.op_names import op_name
from pyprof.records.merging import add_up
from pyprof.records.records import DictionaryColumn, match_combinations

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyprof.arrays import Int64Array, IntArray, Mask
    from pyprof.inputs.source import Source
    from pyprof.parse.ranges.nesting import Nest
    from pyprof.records.records import Records
    from pyprof.schema import Capture

SUMS = {"cpu_calls": "sum", "cpu_self": "sum", "cpu_total": "sum", "launches": "sum"}
"""What is added up for each op, times in ns."""

_KEYS = ["op", "line"]

NOTHING = pa.schema(
    {**dict.fromkeys(_KEYS, pa.string()), **dict.fromkeys(SUMS, pa.int64())}
).empty_table()
"""Sums without any op."""

WHY_UNKNOWN = "only captures with ranges of ops tell it"
"""Why the host's time is unknown."""

_ENGINE = "evaluate_function: "
"""Prefix of the names of autograd's nodes, for what the engine does around them."""
_OPS = (Kind.OP, Kind.SEQ, Kind.OPTIMIZER)
_RANK = np.full(len(Kind), MISSING, np.int8)
for _place, _kind in enumerate((Kind.STEP, Kind.USER, Kind.OP, Kind.OPTIMIZER, Kind.SEQ)):
    _RANK[_kind] = _place  # of ranges with equal bounds, the lower encloses the higher


class _Ranges(NamedTuple):
    """Ranges of ops and those that the user named, nested."""

    nest: Nest
    kind: IntArray
    name: DictionaryColumn
    """The op's name; null for a range that is not an op."""
    line: DictionaryColumn
    """The line that called it; null if unknown."""
    in_python: Mask
    """Whether it runs Python code: an optimizer's step, or an autograd function."""


def host_ops(source: Source, within: tuple[int, int] | None = None) -> pa.Table | None:
    """Total the calls of each op, or those that began in a span; None if no range names an op.

    Returns what `SUMS` names for each `op` and `line` that called it, small enough to send;
    `launches` counts the rows that these calls launched, even if a row counts for another op.
    """
    if source.capture is None:
        return None
    ranges = op_ranges(source.capture)
    if not ranges.name.values:
        return None
    nest, number = ranges.nest, ranges.name.index
    launches = _count_launches(nest, source.table.records, source.capture)
    if within is not None:
        inside = (nest.start >= within[0]) & (nest.start < within[1])
        number = np.where(inside, number, np.int32(MISSING))
    once = ~_mark_repeats(ranges)
    length = nest.end - nest.start
    own = np.append(length, 0)  # the last is the parent, -1, of those at the top
    np.subtract.at(own, nest.parent, length)
    calls = pa.table(
        {
            "op": DictionaryColumn(number, ranges.name.values).dictionary_array(),
            "line": ranges.line.dictionary_array(),
            "cpu_calls": once.astype(np.int64),
            "cpu_self": own[:-1],
            "cpu_total": length * once,
            "launches": launches.astype(np.int64),
        }
    )
    return add_up(calls.filter(pa.array(number != MISSING)), _KEYS, SUMS)


def by_op(host: pa.Table) -> pa.Table:
    """Total the result of `host_ops` by op alone; `line` is where most of its own time is."""
    order = [("cpu_self", "descending"), ("line", "ascending")]
    line_of_op: dict[str, str | None] = {}
    for row in host.select(["op", "line", "cpu_self"]).sort_by(order).to_pylist():
        line_of_op.setdefault(row["op"], row["line"])
    ops = add_up(host.drop_columns(["line"]), ["op"], SUMS)
    lines = [line_of_op[op] for op in ops.column("op").to_pylist()]
    return ops.append_column("line", pa.array(lines, pa.string()))


def host_op_times(host: pa.Table) -> tuple[HostOp, ...]:
    """Each op of `host_ops`, the most time of its own first."""
    order = [("cpu_self", "descending"), ("op", "ascending")]
    return tuple(
        HostOp(
            op=row["op"],
            calls=row["cpu_calls"],
            self_ns=row["cpu_self"],
            total_ns=row["cpu_total"],
            line=row["line"],
            launches=row["launches"],
        )
        for row in by_op(host).sort_by(order).to_pylist()
    )


def op_ranges(capture: Capture) -> _Ranges:
    """Read the ranges of ops, and what the user named around them, and nest them."""
    ranges = capture.ranges
    read = texts.read_texts(ranges)
    code, statements = read.code, read.statements
    kind = np.where(texts.of_library(ranges), np.int8(Kind.CONTEXT), read.kind[code])
    start, end = (ints(ranges.column(name)) for name in ("start", "end"))
    nested = np.asarray(pc.fill_null(ranges.column("style"), MISSING)) == schema.NESTED
    timed = nested & (end >= start)
    rows = np.flatnonzero((_RANK[kind] != MISSING) & timed).astype(np.int32)
    stacks = np.flatnonzero((kind == Kind.TRACE) & timed).astype(np.int32)
    thread = np.asarray(pc.fill_null(ranges.column("thread"), MISSING))
    nest = nesting.nest(
        thread.take(rows),
        start.take(rows),
        end.take(rows),
        lambda: _ranks(ints(ranges.column("op_id"))[rows], _RANK[kind[rows]]),
    )
    around = nesting.nest(
        thread.take(stacks), start.take(stacks), end.take(stacks), lambda: np.arange(len(stacks))
    )
    line_of_template = _names(
        statements,
        referenced_rows([code.take(stacks)], len(statements)),
        lambda said: user_line(user_trace(said.frames)),
    )
    code_of_stack = np.append(code.take(stacks.take(around.order)), MISSING)  # of no stack
    leaf = nesting.innermost(around, nest.thread, nest.start, nest.end)
    line = line_of_template.take(code_of_stack.take(leaf))
    rows = rows.take(nest.order)
    kind, code = kind.take(rows), code.take(rows)
    used = referenced_rows([code], len(statements))
    used = used[np.isin(read.kind[used], _OPS)]
    in_python = np.zeros(len(statements) + 1, bool)
    in_python[used] = [_runs_python(statements[index]) for index in used.tolist()]
    name = _names(statements, used, _name).take(code.astype(np.int64))
    return _Ranges(nest, kind, name, line, in_python.take(code))


def _names(
    statements: list[Statement], used: Int64Array, name_of: Callable[[Statement], str | None]
) -> DictionaryColumn:
    """The names of the statements that are used; null for one without a name, and at the end."""
    numbers: dict[str, int] = {}
    number_of_template = np.full(len(statements) + 1, MISSING, np.int32)
    for index in used.tolist():
        name = name_of(statements[index])
        if name is not None:
            number_of_template[index] = numbers.setdefault(name, len(numbers))
    return DictionaryColumn(number_of_template, [*numbers])


def _ranks(op_id: Int64Array, rank: IntArray) -> Int64Array:
    """Rank ranges by their kind, then by their ids, which rise inward."""
    tiebreak = np.empty(len(rank), np.int64)
    tiebreak[np.lexsort((op_id, rank))] = np.arange(len(rank))
    return tiebreak


def _name(said: Statement) -> str | None:
    """Name an op as the column `op` does; None if the range names no op."""
    if said.kind == Kind.SEQ:
        name = op_name(*mod_and_op(said.node))
        return name if said.node == said.name else f"{_ENGINE}{name}"
    if said.kind == Kind.OPTIMIZER:
        return said.optimizer or None
    return op_name(said.call.mod, said.call.op) if said.call and said.names_op else None


_FUNCTION = re.compile(r"_*[A-Z]\w*(?<!\d)")
"""A user's torch.autograd.Function, or its backward pass; nodes in C++ end in a digit."""


def _runs_python(said: Statement) -> bool:
    function = said.kind == Kind.SEQ and _FUNCTION.fullmatch(said.node) is not None
    return function or said.kind == Kind.OPTIMIZER


def _mark_repeats(ranges: _Ranges) -> Mask:
    """Mask of the ranges that are the same call as the range around them."""
    parent = ranges.nest.parent
    inside = parent != MISSING
    alone = (np.bincount(parent[inside], minlength=len(parent)) == 1)[parent]
    marked = (ranges.kind[parent] == Kind.OP) & (ranges.kind != Kind.OP)
    name = ranges.name.index
    same = (name == name[parent]) & (name != MISSING)
    return np.asarray(inside & same & (alone | marked), bool)


def _count_launches(nest: Nest, records: Records, capture: Capture) -> IntArray:
    """Count the rows that were launched in each range, at any depth."""
    begin, end = launch_bounds(records)
    # the row of `threads` that launched each row
    captured = [ints(capture.threads.column(name)) for name in ("pid", "tid")]
    thread = match_combinations(captured, [records.numpy(name) for name in ("pid", "tid")])
    launched = (begin != MISSING) & (thread != MISSING)
    if not launched.all():
        thread, begin, end = thread[launched], begin[launched], end[launched]
    leaf = nesting.innermost(nest, thread, begin, end)
    count = np.bincount(leaf[leaf != MISSING], minlength=len(nest.parent)).astype(np.int32)
    levels = [ranges for _, ranges in nesting.by_value(nest.depth)]
    for level in reversed(levels[1:]):
        np.add.at(count, nest.parent[level], count[level])
    return count
