"""The steps of parsing, in order: launches, nesting, autograd, texts, columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyprof import schema
from pyprof.arrays import MISSING, ints
from pyprof.marker import Kind
from pyprof.parse import launch_sites, launches, link_checks, record_columns, result_sizes
from pyprof.parse.autograd import forward_backward, sequence
from pyprof.parse.ranges import launch_layers, texts
from pyprof.parse.ranges.sweep import describe_paths, sweep_ranges
from pyprof.parse.steps import profiler_windows
from pyprof.parse.steps.loop_steps import columns as step_columns
from pyprof.quantities import counted
from pyprof.readers.validate import in_order
from pyprof.records.records import DictionaryColumn, Records

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pyprof.arrays import Int64Array, Mask
    from pyprof.parse.launch_sites import LaunchSites
    from pyprof.parse.launches import Chains
    from pyprof.parse.ranges.sweep import Sweep
    from pyprof.parse.steps.profiler_windows import RecordingWindows
    from pyprof.records.records import Column
    from pyprof.schema import Capture


def assemble(capture: Capture, *, kernels_only: bool = False, raw: bool = True) -> Records:
    """Turn a capture into records, one for each activity, in the order of GPU starts.

    Without `raw`, texts of PyTorch's own ranges are kept only as templates, without their numbers.
    """
    work = _trace_causes(capture, kernels_only=kernels_only)
    capture, activities, sweep = work.capture, work.activities, work.sweep
    max_names = max(_MIN_NAMES, _MAX_NAMES // max(1, len(activities)))
    leaf, chain = _ops_around(work, max_names)
    around = _around(work, leaf, chain, max_names)

    columns = record_columns.of_work(capture, activities, work.launch)
    columns |= sequence.columns(capture, sweep, around.path, chain, work.site, raw=raw)
    columns |= record_columns.build(activities, around, columns)
    columns |= result_sizes.column(sweep, leaf)
    columns |= _steps(work, columns)
    if capture.samples.num_rows:
        from pyprof.parse.counters import samples  # noqa: PLC0415 - most captures have none

        columns |= samples.counters(capture, columns)
    warnings = (*capture.warnings, *work.doubts, *_too_deep(sweep, leaf, around.free, max_names))
    return Records(len(activities), columns, capture.devices, warnings)


_MAX_NAMES, _MIN_NAMES = 1 << 22, 128
"""Limit of the ranges that all rows together list, and the number that each may always list."""


class _Work(NamedTuple):
    """The activities of a capture, in order, with the call and the range that each came from."""

    capture: Capture
    """Includes the graph nodes that were inferred."""
    activities: pa.Table
    windows: RecordingWindows
    launch: Int64Array
    """Per activity: row of the API call that launched it; MISSING if unknown."""
    site: LaunchSites
    sweep: Sweep
    ops: Mask
    """Per range of the sweep: it names an op."""
    leaf: Int64Array
    """Per activity: the innermost range around its site; MISSING if unknown."""
    ranges_fit: bool
    """Nothing suggests that ranges and calls belong to different clocks or threads."""
    doubts: tuple[str, ...]
    """Notes and warnings about these links, as sentences for the user."""


def _trace_causes(capture: Capture, *, kernels_only: bool = False) -> _Work:
    inferred: tuple[str, ...] = ()
    if launch_sites.any_graph(capture):
        from pyprof.parse.graphs import attribution  # noqa: PLC0415 - most captures have no graphs

        capture, inferred = attribution.attribute_nodes(capture)
    activities = capture.activities
    if kernels_only:
        kinds = pa.array((schema.KERNEL, schema.CPU), pa.int8())
        activities = activities.filter(pc.is_in(activities.column("kind"), kinds))
    activities = in_order(activities)
    windows = profiler_windows.recording_windows(capture)
    launch, of_launches = link_checks.launches(capture, activities, windows)
    site = launch_sites.find(capture, activities, launch)
    sweep = sweep_ranges(capture)
    ops = texts.matches(sweep.texts, Kind.OP, lambda said: said.names_op) | texts.matches(
        sweep.texts, Kind.SEQ, lambda said: not said.is_checkpoint
    )
    leaf, of_ranges = link_checks.ranges_of(activities, sweep.nest, ops, site)
    replayed = launch_sites.doubts(activities, site)
    doubts = (*inferred, *of_launches, *replayed, *of_ranges, *sweep.doubts)
    return _Work(
        capture, activities, windows, launch, site, sweep, ops, leaf, not of_ranges, doubts
    )


def doubts(capture: Capture) -> tuple[str, ...]:
    """Return the warnings about links from work to ops that the capture's records would have."""
    return _trace_causes(capture).doubts


def _ops_around(work: _Work, max_names: int) -> tuple[Int64Array, Chains]:
    """Find the innermost range around each activity, and the chain of ops.

    A whole graph belongs to none of the ops around its launch: it contains other ops. It does
    belong to the layers around those ops, since it was launched there.
    """
    leaf, parent = work.leaf, work.sweep.nest.parent
    chain = launches.chains(parent, work.ops, leaf, max_names)
    graph = ints(work.activities.column("kind")) == schema.GRAPH
    if not graph.any():
        return leaf, chain
    op = np.where(graph, launches.first(chain), MISSING)
    around = np.append(parent, MISSING)[op]
    return np.where(op == MISSING, leaf, around), chain.filter(~graph[chain.owner])


def _around(work: _Work, leaf: Int64Array, chain: Chains, max_names: int) -> record_columns.Around:
    """Describe the ranges around each activity, and those of its forward op."""
    capture, sweep = work.capture, work.sweep
    partner = forward_backward.partners(
        capture, sweep, leaf, chain, work.site.caller, work.activities, work.windows
    )
    # the range whose layers apply to an activity if its ops are in none
    user_range = np.full(len(work.launch), MISSING)
    if work.ranges_fit:
        user_range = launch_layers.around(capture, sweep, work.launch, work.site)
    user_range = np.where(partner.outer == MISSING, user_range, partner.outer)
    ranges = leaf, partner.op, partner.place, user_range
    path, forward, place, user_path = describe_paths(sweep, ranges, max_names)
    no_range = len(path.values) - 1
    return record_columns.Around(
        DictionaryColumn(np.where(path.index < 0, no_range, path.index), path.values),
        forward,
        place,
        user_path,
        partner.engine,
        forward_backward.precedes(partner, chain, len(sweep.row)),
        launch_layers.free(capture, work.site, max_names),
        work.site,
    )


def _steps(work: _Work, columns: Mapping[str, Column]) -> dict[str, Column]:
    """Build the columns of windows and steps; `columns` are those of the work itself."""
    built: dict[str, Column] = {}
    if work.windows.begun:
        of_row = profiler_windows.of_rows(work.capture, work.activities, work.launch, work.windows)
        built["window"] = pa.array(of_row)
    serving = profiler_windows.serving_step_of_rows(work.capture, work.activities, work.launch)
    if serving is not None:
        built["servingStep"] = serving
    return built | step_columns(Records(len(work.activities), {**columns, **built}), work.capture)


def _too_deep(
    sweep: Sweep, leaf: Int64Array, free: Mapping[int, Sequence[str]], max_names: int
) -> Iterator[str]:
    """Warn if rows are in more ranges than they list."""
    cut = np.zeros(len(leaf), bool)
    if sweep.nest.depth.max(initial=0) >= max_names:
        cut = np.append(sweep.nest.depth >= max_names, [False])[leaf]
    cut[[row for row, names in free.items() if len(names) >= max_names]] = True
    if deep := cut.sum():
        yield (
            f"{counted(deep, 'row')} nested in more than {max_names} ranges: only the innermost "
            f"{max_names} layers, ops and lines are kept"
        )
