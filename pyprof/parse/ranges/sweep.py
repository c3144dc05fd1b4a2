"""The ranges of a capture, nested, and what their texts say: what the steps of parsing share."""

from __future__ import annotations

from dataclasses import dataclass, replace
from operator import attrgetter
from typing import TYPE_CHECKING

import numpy as np
import pyarrow.compute as pc

from pyprof import schema
from pyprof.arrays import MISSING, ints, referenced_rows
from pyprof.marker import Kind
from pyprof.parse import link_checks
from pyprof.parse.autograd import recomputation
from pyprof.parse.ranges import nesting, texts
from pyprof.parse.ranges import range_stacks as paths
from pyprof.records.records import DictionaryColumn

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from pyprof.arrays import Int64Array, IntArray, Mask
    from pyprof.parse.ranges.nesting import Nest
    from pyprof.schema import Capture


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweep:
    """The ranges that count, nested, in sweep order, and what their texts state."""

    nest: Nest
    texts: texts.Texts
    paths: paths.RangeStacks
    backward: Mask
    """Per path: whether it belongs to the backward pass."""
    recomputed: NDArray[np.int8]
    """Per path: forward work that the backward pass runs again, as `find_recomputed` marks it."""
    row: NDArray[np.int32]
    """Row of each range in the capture."""
    doubts: tuple[str, ...]
    """Warnings about ranges, as sentences for the user."""


def sweep_ranges(capture: Capture) -> Sweep:
    """Nest the ranges of a capture, and number the paths to them."""
    ranges = capture.ranges
    read = texts.read_texts(ranges)
    kind = texts.kinds(read)
    if (of_library := texts.of_library(ranges)).any():
        kind[of_library] = Kind.CONTEXT
    thread = np.asarray(pc.fill_null(ranges.column("thread"), MISSING))
    start, end = (ints(ranges.column(name)) for name in ("start", "end"))
    if (still_open := end == MISSING).any():
        frames = (capture.activities, capture.calls, capture.ranges)
        ends = [pc.max(frame.column("end")).as_py() for frame in frames]
        last_ns = max((each for each in ends if each is not None), default=0)
        end = np.where(still_open, last_ns, end)
    nested = np.asarray(pc.fill_null(ranges.column("style"), MISSING)) == schema.NESTED
    leaked = nesting.leaked(thread, start, kind, still_open)
    endless = nesting.mark_unbounded(thread, kind, still_open & nested & ~leaked)
    first_ns = start.min(initial=np.iinfo(np.int64).max)
    from_first = nested & (start == first_ns) & (end > start)
    startless = nesting.mark_unbounded(thread, kind, from_first)
    wanted = (kind != Kind.CONTEXT) & nested & ~leaked & ~endless & ~startless
    row = np.flatnonzero(wanted).astype(np.int32)
    bounds = (thread, start, end) if wanted.all() else (thread[row], start[row], end[row])
    op_id = ints(ranges.column("op_id"), MISSING)
    nest = nesting.nest(*bounds, lambda: _tiebreaks(read, kind, op_id)[row])
    row = row[nest.order]
    doubts = tuple(link_checks.ranges(read, endless, startless))  # of all, before some are left out
    nest, read = replace(nest, order=row), replace(read, code=read.code[row], seq=read.seq[row])
    begins = recomputation.begins(nest, read)
    interned = paths.intern(nest.parent, nest.depth, texts.codes(read), begins)
    backward = interned.backward(read)
    return Sweep(
        nest=nest,
        texts=read,
        paths=interned,
        backward=backward,
        recomputed=interned.find_recomputed(read, backward),
        row=row,
        doubts=doubts,
    )


_OUTSIDE_IN = (
    *(Kind.STEP, Kind.USER, Kind.LAYER, Kind.OPTIMIZER, Kind.TRACE, Kind.MODULE, Kind.OP),
    *(Kind.SEQ, Kind.CONTEXT),
)
"""How ranges with equal bounds nest, outermost first."""


def _tiebreaks(read: texts.Texts, kind: NDArray[np.int8], op_id: Int64Array) -> Int64Array:
    """Rank ranges by kind, then as PyTorch numbered its ops when they began, then by text.

    So the order of rows decides nothing.
    """
    written = np.array([said.text for said in read.statements], dtype=object)
    ranks = np.argsort(np.argsort(written, kind="stable"))
    rank_of_kind = np.zeros(len(Kind), np.int64)
    rank_of_kind[[*_OUTSIDE_IN]] = np.arange(len(_OUTSIDE_IN))
    return np.argsort(np.lexsort((ranks[read.code], op_id, rank_of_kind[kind])))


def describe_paths(
    sweep: Sweep, ranges: Sequence[IntArray], max_names: int
) -> list[DictionaryColumn]:
    """Describe the path of each range, null for MISSING.

    Their values are the same list: all these paths, those in which DDP states its group, and last
    the one of no range.
    """
    ddp = np.flatnonzero(texts.matches(sweep.texts, Kind.OP, attrgetter("is_ddp")))
    named = referenced_rows([*ranges, ddp], len(sweep.paths.of_range))
    wanted = referenced_rows([sweep.paths.of_range[named]], len(sweep.paths.parent))
    index = np.full(len(sweep.paths.parent), MISSING, np.int32)
    index[wanted] = np.arange(len(wanted))
    described = [
        *sweep.paths.describe(sweep.texts, sweep.recomputed, wanted, max_names),
        paths.EMPTY_STACK,
    ]
    of_range = np.append(index.take(sweep.paths.of_range), np.int32(MISSING))
    return [DictionaryColumn(of_range.take(each), described) for each in ranges]
