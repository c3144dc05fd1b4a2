"""What happens between ops that were timed on the CPU: loading, ops without work, Python.

Each instant has one cause, so that causes add up to the idle time.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyprof import ops
from pyprof.analysis.summary.host_ops import op_ranges
from pyprof.analysis.time.idle import DISPATCH, DISPATCH_NS, HOST, LOADING, OPS
from pyprof.analysis.time.intervals import EMPTY, union, union_of
from pyprof.arrays import MISSING, ints
from pyprof.marker import Call, Kind
from pyprof.marker.model import NODE
from pyprof.parse.ranges import nesting, texts
from pyprof.parse.ranges.range_stacks import user_line
from pyprof.parse.ranges.texts import map_texts, of_kinds
from pyprof.records.records import DictionaryColumn

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyprof.analysis.time.intervals import Intervals
    from pyprof.arrays import Int64Array, Mask
    from pyprof.schema import Capture


@dataclass(frozen=True, slots=True)
class OpCalls:
    """Calls of ops that are not inside another op's call."""

    start: Int64Array
    end: Int64Array
    thread: Int64Array
    """The row of the capture's table of threads."""
    name: DictionaryColumn
    line: DictionaryColumn
    """The user's source line of each; null if the capture has no stack of it."""
    computes: Mask
    """Whether it, or an op inside, may compute: not of views, however long a subclass takes."""
    around: list[str]
    """Names of what runs Python code, which may do anything, and so is not a call of an op."""

    def without_work(self, free: Intervals) -> Mask:
        """Mask of the calls during which no op worked, such as views and `.item()`."""
        length = self.end - self.start
        return np.asarray((free.length_within(self.start, self.end) == length) & (length > 0))


_NOTHING = np.zeros(0, np.int64)
_NO_TEXTS = DictionaryColumn(_NOTHING, [])
NO_CALLS = OpCalls(_NOTHING, _NOTHING, _NOTHING, _NO_TEXTS, _NO_TEXTS, np.zeros(0, bool), [])


def outermost_calls(capture: Capture) -> OpCalls:
    """Find the outermost ranges of ops."""
    ranges = op_ranges(capture)
    nest, named = ranges.nest, ranges.name.index != MISSING
    python, named = named & ranges.in_python, named & ~ranges.in_python
    inside = np.zeros(len(named), bool)
    levels = [rows for _, rows in nesting.by_value(nest.depth)][1:]
    for rows in levels:  # each from the one above it
        inside[rows] = inside[nest.parent[rows]] | named[nest.parent[rows]]
    computes = named & ranges.name.matches(_may_compute)
    for rows in reversed(levels):
        computes[nest.parent[rows[computes[rows]]]] = True
    rows = np.flatnonzero(named & ~inside)
    return OpCalls(
        start=nest.start[rows],
        end=nest.end[rows],
        thread=nest.thread[rows].astype(np.int64),
        name=ranges.name.take(rows),
        line=ranges.line.take(rows),
        computes=computes[rows],
        around=[ranges.name.values[each] for each in np.unique(ranges.name.index[python])],
    )


_NODE = re.compile(rf"evaluate_function: |(?:{NODE}|AccumulateGrad)$")
"""Names of autograd's nodes: what computes is inside them."""


def _may_compute(op: str) -> bool:
    model = ops.find(Call("", op))
    return _NODE.match(op) is None and (model is None or model.work)


def causes(free: Intervals, capture: Capture | None) -> Mapping[str, Intervals]:
    """Split the time in which no op worked by cause, into disjoint sets that cover it.

    Without the capture, a pause between two ops is classified by its length alone.
    """
    loading = without_work = in_ops = EMPTY
    if capture is not None:
        loading = union(union_of(*bounds) for bounds in loading_ranges(capture).values())
        calls = outermost_calls(capture)
        idle = calls.without_work(free)
        without_work = free & union_of(calls.start[idle], calls.end[idle]) - loading
        in_ops = union_of(calls.start, calls.end)
    rest = free - loading - without_work
    between, inside = rest - in_ops, rest & in_ops
    short, short_inside = (each.end - each.start <= DISPATCH_NS for each in (between, inside))
    return {
        LOADING: free & loading,
        OPS: without_work | inside[~short_inside],
        DISPATCH: between[short] | inside[short_inside],
        HOST: between[~short],
    }


_NAMES = (Kind.CONTEXT, Kind.LAYER, Kind.USER, Kind.STEP)
_LOADING = r"(?i)data_?loader|next_?batch|get_?batch|(?:load|fetch)_?(?:data|batch)"


def loading_ranges(capture: Capture) -> dict[str, tuple[Int64Array, Int64Array]]:
    """Return starts and ends, by name, of the ranges whose names suggest data loading."""
    named, compiles = (text_matches(capture.ranges, "text", each) for each in (_LOADING, COMPILING))
    # AOTAutogradCache.inductor_load_data: compile_id=0/0 is of the compiler
    ranges = capture.ranges.filter(pc.and_not(named, compiles))
    # not a stack or an op in a file of such a name
    ranges = ranges.filter(pa.array(of_kinds(ranges, _NAMES)))
    text = ranges.column("text").unify_dictionaries().combine_chunks()
    index = text.indices.to_numpy()
    start, end = (np.asarray(pc.fill_null(ranges.column(name), -1)) for name in ("start", "end"))
    return {
        text.dictionary[code].as_py(): (start[index == code], end[index == code])
        for code in np.unique(index).tolist()
    }


def text_matches(table: pa.Table, column: str, pattern: str) -> pa.ChunkedArray:
    """Whether each row's text in a column contains a match of a pattern."""
    return map_texts(table.column(column), partial(pc.match_substring_regex, pattern=pattern))


COMPILING = r"\(dynamo_timed\)$|_data: .*\bcompile_id="
"""The texts of the ranges of torch.compile's work, one inside another."""


def ranges_named(capture: Capture, pattern: str) -> tuple[Int64Array, Int64Array]:
    """Return starts and ends of the ranges whose texts match a pattern."""
    ranges = capture.ranges.filter(text_matches(capture.ranges, "text", pattern))
    return ints(ranges.column("start")), ints(ranges.column("end"))


_COMPILATION = r"(?:\bcompile_id=|^Torch-Compiled Region: )(?:!\d+/)?\d+/"
"""Followed by how often the same code was compiled before."""


def compiles_again(capture: Capture) -> bool | None:
    """Whether torch.compile compiled some code a second time; None if no range has its number."""
    numbered, again = (
        pc.any(text_matches(capture.ranges, "text", pattern)).as_py()
        for pattern in (_COMPILATION, f"{_COMPILATION}[1-9]")
    )
    return bool(again) if numbered else None


def longest_line(capture: Capture, start: Int64Array, end: Int64Array) -> str | None:
    """Return the line that takes most of some ranges' time; None if not recorded.

    Stacks inside, such as those of ops and collate_fn, have their own lines; the rest of the time
    belongs to the stack around them, which ends in the dataset.
    """
    read = texts.read_texts(capture.ranges)
    rows = np.flatnonzero(texts.kinds(read) == Kind.TRACE)
    begins, ends = (ints(capture.ranges.column(name)) for name in ("start", "end"))
    rows = rows[np.lexsort((-ends[rows], begins[rows]))]
    begins, ends = begins[rows], ends[rows]
    lines = [user_line(read.statements[code].frames) for code in read.code[rows].tolist()]
    order = np.argsort(start, kind="stable")
    index = order[np.maximum(np.searchsorted(start, begins, sorter=order, side="right") - 1, 0)]
    inside = np.flatnonzero((begins >= start[index]) & (ends <= end[index]))
    reached = np.maximum.accumulate(np.append(0, ends[inside]))[:-1]
    outermost = inside[begins[inside] >= reached]
    longest = int(np.argmax(end - start))
    around = np.flatnonzero((begins <= start[longest]) & (ends >= end[longest]))
    ns_of_line: dict[str | None, int] = {}
    for row in outermost.tolist():
        ns_of_line[lines[row]] = ns_of_line.get(lines[row], 0) + int(ends[row] - begins[row])
    loader = lines[around[-1]] if len(around) else None
    rest = int((end - start).sum()) - sum(ns_of_line.values())
    ns_of_line[loader] = ns_of_line.get(loader, 0) + rest
    return max(ns_of_line, key=lambda line: ns_of_line[line])
