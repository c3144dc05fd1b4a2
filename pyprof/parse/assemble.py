"""The steps of parsing, in order: texts, nesting, launches, autograd, columns."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyprof import schema
from pyprof.arrays import NONE, ints, used
from pyprof.cores import executor
from pyprof.marker import Kind
from pyprof.parse import (
    backward_nodes,
    collectives,
    evidence,
    forward_backward,
    launch_layers,
    launches,
    paths,
    profiler_windows,
    range_names,
    recomputation,
    record_columns,
    result_sizes,
    samples,
    sequence,
    serving_steps,
    sites,
    texts,
    user_ranges,
)
from pyprof.parse import ranges as nesting
from pyprof.parse.graphs import attribution
from pyprof.parse.records import Records, narrowed
from pyprof.parse.steps import columns as step_columns
from pyprof.parse.sweep import DescribedSweep, NestedTexts, Sweep, without_ends
from pyprof.readers.order import in_order

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from concurrent.futures import Future

    from numpy.typing import NDArray

    from pyprof.arrays import Integers, Ints
    from pyprof.parse.ranges import Nest
    from pyprof.parse.records import Column
    from pyprof.schema import Capture

_TIEBREAK = np.zeros(len(Kind), np.int64)
for _place, _kind in enumerate(
    (
        *(Kind.STEP, Kind.USER, Kind.LAYER, Kind.OPTIMIZER, Kind.TRACE, Kind.MODULE, Kind.OP),
        *(Kind.SEQ, Kind.CONTEXT),
    )
):
    _TIEBREAK[_kind] = _place  # of ranges with equal bounds: which encloses which


def assemble(capture: Capture, *, kernels_only: bool = False, raw: bool = True) -> Records:
    """Turn a capture into records; of one that nobody else holds, what is used up is let go of.

    Without `raw` the texts of PyTorch's own ranges are kept without their numbers alone.
    """
    capture, inferred = attribution.attributed(capture, _sweep)
    with executor(1) as beside:  # NumPy and Arrow work outside Python's lock
        nesting_ranges = beside.submit(_nested, capture)
        sweeping = beside.submit(_swept_once, nesting_ranges)
        activities = _ordered(capture.activities, kernels_only=kernels_only)
        windows = profiler_windows.recording_windows(capture)
        launch, doubted = evidence.launches(capture, activities, windows)
        site = sites.find(capture, activities, launch)
        columns = narrowed(record_columns.of_work(capture, activities, launch))
        if windows:
            of_row = profiler_windows.of_rows(capture, activities, launch, windows)
            columns["window"] = pa.array(of_row)
        capture = replace(capture, activities=schema.ACTIVITIES.empty_table())
        activities = activities.select(_LEFT)
        stepping = beside.submit(_steps, capture, activities, launch, dict(columns))
        nested = nesting_ranges.result()
        ops = _counted(nested.texts)
        leaf, range_doubts = evidence.ranges_of(activities, nested.nest, ops, site)
        most = max(_LEAST, _NAMES // max(1, len(activities)))
        chain = launches.chains(nested.nest.parent, ops, leaf, most)
        leaf, chain = _graphs_outside_ops(activities, nested.nest, leaf, chain)
        free = launch_layers.free(capture, site, most)
        sweep = sweeping.result()
        columns |= narrowed(stepping.result())
        del nested, nesting_ranges, sweeping, stepping
        around = (
            np.full(len(launch), NONE)
            if range_doubts
            else user_ranges.around(capture, sweep, launch, site)
        )
        doubted = (
            *inferred,
            *doubted,
            *sites.doubts(activities, site),
            *range_doubts,
            *sweep.doubts,
            *_too_deep(sweep, leaf, most, free),
        )
        called = record_columns.Called(site.via, site.replay, sites.flow(site))
        caller, instance = site.caller, site.instance
        capture = _without(capture, _USED_UP)
        sweep = without_ends(sweep)
        del launch, site
        numbering = beside.submit(sequence.number, capture, sweep, chain, instance, raw=raw)
        partner = forward_backward.partners(
            capture, sweep, leaf, chain, caller, activities, windows
        )
        around = np.where(partner.outer == NONE, around, partner.outer)
        described = _described(sweep, (leaf, partner.op, partner.place, around), most)
        sizes = result_sizes.of_rows(sweep, leaf)
        around_rows = record_columns.Around(
            described.path(leaf),
            described.path(partner.op),
            described.path(partner.place),
            described.path(around),
            free,
            partner.engine,
            called,
            numbering,
        )
        del sweep, chain, partner, leaf, around, numbering  # as long as ranges are many
        capture = _without(capture, schema.RANGES.names)
        columns |= narrowed(record_columns.build(activities, described, around_rows, beside))
    if sizes is not None:
        columns["resultSize"] = sizes
    columns |= samples.counters(capture, columns)
    return Records(
        rows=len(activities),
        columns=columns,
        devices=capture.devices,
        warnings=(*capture.warnings, *doubted),
    )


_LEFT = ["kind", "start", "end", "pid", "device", "name", "collective"]
"""Columns of activities that are asked for once those of the work itself are built."""
_USED_UP = ("start", "end", "thread", "style", "domain")
"""Columns of ranges that are not asked for once it is known what lies in them."""


def _without(capture: Capture, columns: Sequence[str]) -> Capture:
    """Let go of calls, and of some columns of ranges."""
    return replace(
        capture,
        calls=schema.CALLS.empty_table(),
        ranges=capture.ranges.drop_columns([*set(columns) & set(capture.ranges.column_names)]),
    )


def _steps(
    capture: Capture, activities: pa.Table, launch: Ints, columns: Mapping[str, Column]
) -> dict[str, Column]:
    """Build the columns that tell of steps."""
    serving = serving_steps.of_rows(capture, activities, launch)
    stepped = step_columns(Records(len(activities), columns), capture)
    return stepped if serving is None else {"servingStep": serving, **stepped}


def doubts(capture: Capture) -> tuple[str, ...]:
    """Say what is wrong with what ties work to ops, as records that are made of it would."""
    capture, inferred = attribution.attributed(capture, _sweep)
    activities = _ordered(capture.activities, kernels_only=False)
    sweep = _sweep(capture)
    launch, of_launches = evidence.launches(
        capture, activities, profiler_windows.recording_windows(capture)
    )
    site = sites.find(capture, activities, launch)
    _, of_ranges = evidence.ranges_of(activities, sweep.nest, _counted(sweep.texts), site)
    replayed = sites.doubts(activities, site)
    return (*inferred, *of_launches, *replayed, *of_ranges, *sweep.doubts)


def _graphs_outside_ops(
    activities: pa.Table, nest: Nest, leaf: Ints, chain: launches.Chains
) -> tuple[Ints, launches.Chains]:
    """Take what was launched as a whole graph out of the ops around the launch.

    Layers around those are where it was launched, and so its; the ops are others.
    """
    graph = ints(activities.column("kind")) == schema.GRAPH
    if not graph.any():
        return leaf, chain
    op = np.where(graph, launches.first(chain), NONE)
    around = np.append(nest.parent, NONE)[op]
    return np.where(op == NONE, leaf, around), chain.filter(~graph[chain.owner])


_NAMES, _LEAST = 1 << 22, 128
"""Ranges that all rows together list around them, and that each may list in any case."""


def _described(sweep: Sweep, ranges: Sequence[Integers], most: int) -> DescribedSweep:
    """Describe the paths of some ranges, and those in which DDP says what its group is."""
    ddp = np.flatnonzero(texts.tell(sweep.texts, Kind.OP, collectives.is_ddp))
    named = used([*ranges, ddp], len(sweep.paths.of_range))
    wanted = used([sweep.paths.of_range[named]], len(sweep.paths.parent))
    place = np.full(len(sweep.paths.parent), NONE, np.int32)
    place[wanted] = np.arange(len(wanted))
    described = [*sweep.paths.describe(sweep.texts, wanted, most), paths.NOWHERE]
    return DescribedSweep(sweep.texts, sweep.paths, sweep.row, described, place)


def _too_deep(
    sweep: Sweep, leaf: Ints, most: int, free: Mapping[int, Sequence[str]]
) -> Iterator[str]:
    """Say where not all ranges around a row are listed."""
    cut = np.zeros(len(leaf), bool)
    if sweep.nest.depth.max(initial=0) >= most:
        cut = np.append(sweep.nest.depth >= most, [False])[leaf]
    cut[[row for row, names in free.items() if len(names) >= most]] = True
    if deep := cut.sum():
        yield (
            f"{deep} rows are nested in more than {most} ranges: only the innermost {most} of "
            "their layers, ops and lines are kept"
        )


def _ordered(activities: pa.Table, *, kernels_only: bool) -> pa.Table:
    if kernels_only:
        activities = activities.filter(
            pc.is_in(activities.column("kind"), pa.array(_KERNELS, pa.int8()))
        )
    return in_order(activities)


_KERNELS = (schema.KERNEL, schema.CPU)


def _sweep(capture: Capture) -> Sweep:
    """Nest the ranges of a capture, and number what is around them."""
    return _swept(_nested(capture))


def _nested(capture: Capture) -> NestedTexts:
    """Nest the ranges that mean something."""
    ranges = capture.ranges
    read = texts.read_texts(ranges)
    kind = texts.kinds(read)
    if (of_library := range_names.of_library(ranges)).any():
        kind[of_library] = Kind.CONTEXT
    thread = np.asarray(pc.fill_null(ranges.column("thread"), NONE))
    start, end = (ints(ranges.column(name)) for name in ("start", "end"))
    if (still_open := end == NONE).any():
        end = np.where(still_open, _last(capture), end)
    nested = np.asarray(pc.fill_null(ranges.column("style"), NONE)) == schema.NESTED
    leaked = nesting.leaked(thread, start, kind, still_open)
    endless = nesting.too_many(thread, kind, still_open & nested & ~leaked)
    from_first = nested & (start == start.min(initial=_NEVER)) & (end > start)
    startless = nesting.too_many(thread, kind, from_first)
    wanted = (kind != Kind.CONTEXT) & nested & ~leaked & ~endless & ~startless
    row = np.flatnonzero(wanted).astype(np.int32)
    bounds = (thread, start, end) if wanted.all() else (thread[row], start[row], end[row])
    nest = nesting.nest(*bounds, lambda: _tiebreaks(read, kind, row))
    del thread, start, end, bounds  # as long as all ranges are many
    row = row[nest.order]
    chosen = texts.select(read, row)
    nest = replace(nest, order=row)
    return NestedTexts(nest, chosen, row, tuple(evidence.ranges(read, endless, startless)))


def _swept_once(nesting_ranges: Future[NestedTexts]) -> Sweep:
    return _swept(nesting_ranges.result())


def _swept(nested: NestedTexts) -> Sweep:
    """Number the paths of ranges."""
    nest, read, row, doubted = nested
    begins = recomputation.begins(nest, read)
    interned = paths.intern(nest.parent, nest.depth, range_names.codes(read), begins)
    backward = interned.backward(read)
    return Sweep(nest, read, interned, backward, interned.again(read, backward), row, doubted)


_NEVER = np.iinfo(np.int64).max


def _tiebreaks(read: texts.Texts, kind: NDArray[np.int8], row: Integers) -> Ints:
    """Rank ranges by kind, then by text, so that the order of rows decides nothing."""
    ranks = np.argsort(np.argsort(np.array(read.templates, dtype=object), kind="stable"))
    return _TIEBREAK[kind[row]] * len(read.templates) + ranks[read.code[row]]


def _last(capture: Capture) -> int:
    """Give the last instant of the capture, ns."""
    frames = (capture.activities, capture.calls, capture.ranges)
    ends = [pc.max(frame.column("end")).as_py() for frame in frames]
    return max((end for end in ends if end is not None), default=0)


def _counted(read: texts.Texts) -> NDArray[np.bool_]:
    return texts.tell(read, Kind.OP, paths.counts) | texts.tell_name(
        read, lambda name: not backward_nodes.is_checkpoint(name)
    )
