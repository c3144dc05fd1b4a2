"""The forward op that each row's backward work belongs to, and the one whose place it shares."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pyprof import marker
from pyprof.arrays import NONE, ints
from pyprof.marker import Kind
from pyprof.parse import backward_nodes, launches, texts

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    from pyprof.arrays import Ints
    from pyprof.parse.profiler_windows import RecordingWindows
    from pyprof.parse.sites import Sites
    from pyprof.parse.sweep import Sweep
    from pyprof.schema import Capture


class Partners(NamedTuple):
    """Per row: ranges of the sweep; NONE where there is none."""

    op: Ints
    """The forward op whose backward pass the row is part of, of the node's own name."""
    place: Ints
    """The forward op whose layer and line are the row's: that, or the one whose backward node made
    the gradient that the row adds to another."""
    engine: NDArray[np.bool_]
    """Rows launched on a thread of the engine, outside of its nodes."""


def partners(
    capture: Capture,
    sweep: Sweep,
    chain: launches.Chains,
    site: Sites,
    activities: pa.Table,
    windows: RecordingWindows,
) -> Partners:
    """Find, per activity, the forward range of the innermost backward node around it."""
    node = texts.tell_name(sweep.texts, backward_nodes.is_node)
    engine = texts.tell_name(sweep.texts, backward_nodes.is_engine)
    numbered = sweep.texts.seq >= 0
    innermost = launches.last(chain, (node & numbered) | engine)
    innermost = _numbered_node(sweep, node & numbered, engine & ~numbered, innermost)
    between = _on_engine(capture, sweep, node & numbered, site.caller) & (innermost == NONE)
    maker = np.where(innermost == NONE, _maker(sweep, node & numbered, chain, between), innermost)
    used = np.unique(maker[maker != NONE])
    device = _main_device(capture, site.caller, activities)
    ranges = _seq_ranges(capture, sweep, node | engine, device, windows)
    forward = backward_nodes.forward_of(ranges, used)
    op_range = np.where(ranges.name[forward] == ranges.name[used], forward, NONE)
    op, place = _taken(op_range, used, innermost), _taken(forward, used, maker)
    return Partners(op, place, between)


def _taken(forward: Ints, used: Ints, nodes: Ints) -> Ints:
    """Give the forward range of each node, `forward` being those of the nodes `used`."""
    forward_range = np.full(len(nodes), NONE)
    inside = nodes != NONE
    forward_range[inside] = forward[np.searchsorted(used, nodes[inside])]
    return forward_range


def _on_engine(
    capture: Capture, sweep: Sweep, node: NDArray[np.bool_], caller: Ints
) -> NDArray[np.bool_]:
    """Tell which rows are of threads whose nodes all go back over ops of other threads."""
    thread = sweep.nest.thread
    forward = ints(capture.ranges.column("forward_thread"))[sweep.row]
    foreign = (forward != NONE) & (forward != thread)
    count = len(capture.threads) + 1  # NONE is the last one
    some, others = (
        np.bincount(thread[rows], minlength=count) for rows in (node & foreign, node & ~foreign)
    )
    on_engine: NDArray[np.bool_] = ((some > 0) & (others == 0))[caller]
    return on_engine


def _maker(
    sweep: Sweep, node: NDArray[np.bool_], chain: launches.Chains, between: NDArray[np.bool_]
) -> Ints:
    """Find, for what adds to a gradient, the node that made what is added.

    It is the last one before it on the thread: the engine adds up what a node gave right after it,
    and takes the accumulation of a parameter's gradient before all else.
    """
    adds = launches.last(chain, texts.tell_name(sweep.texts, backward_nodes.accumulates))
    anything = np.ones(len(node), bool)
    adds = np.where(between & (adds == NONE), launches.first(chain, anything), adds)
    rows = np.append(np.flatnonzero(node), NONE)
    before = rows[np.searchsorted(rows[:-1], adds) - 1]
    thread = sweep.nest.thread
    same_thread = (adds != NONE) & (before != NONE)
    same_thread[same_thread] = thread[before[same_thread]] == thread[adds[same_thread]]
    return np.where(same_thread, before, NONE)


def _numbered_node(
    sweep: Sweep, node: NDArray[np.bool_], engine: NDArray[np.bool_], innermost: Ints
) -> Ints:
    """Put, for an engine's range that has no number, the node that it evaluates.

    The engine itself sums up the gradient of a broadcast operand, a bias say, after the node.
    """
    rows = np.flatnonzero(node)
    inside = sweep.nest.parent[rows]
    evaluated = np.full(len(node) + 1, NONE)
    evaluated[inside[inside != NONE]] = rows[inside != NONE]
    asks = innermost != NONE
    asks[asks] = engine[innermost[asks]]
    return np.where(asks, evaluated[innermost], innermost)


def _seq_ranges(
    capture: Capture, sweep: Sweep, node: NDArray[np.bool_], device: Ints, windows: RecordingWindows
) -> backward_nodes.SeqRanges:
    backward = sweep.backward[sweep.paths.of_range]
    pid, device = _apart(capture, device)
    thread = sweep.nest.thread
    return backward_nodes.SeqRanges(
        name=_names(sweep.texts),
        backward=node,
        inside_backward=backward,
        seq=sweep.texts.seq,
        start=sweep.nest.start,
        thread=thread,
        pid=pid[thread],
        window=windows.at(pid[thread], sweep.nest.start),
        device=device[thread],
        forward_thread=ints(capture.ranges.column("forward_thread"))[sweep.row],
    )


def _apart(capture: Capture, device: Ints) -> tuple[Ints, Ints]:
    """Give each thread's process and device; a recording of graphs' capture has its own.

    Sequence numbers of another recording, which may be of the same process, are other numbers.
    """
    recording = np.full(len(capture.threads), NONE)
    if capture.graph_captures is not None:
        first = capture.graph_captures.recordings.column("first_thread").drop_null()
        recording = np.searchsorted(ints(first), np.arange(len(recording)), side="right") - 1
    pid = np.where(recording == NONE, ints(capture.threads.column("pid")), -2 - recording)
    return pid, np.where(recording == NONE, device, -2 - recording)


def _names(read: texts.Texts) -> Ints:
    """Number the ops' names, an op's and its backward node's alike; NONE for other ranges."""
    codes = np.full(len(read.templates) + 1, NONE)
    codes_by_name: dict[str, int] = {}
    base_name = cache(backward_nodes.base_name)
    for template in np.flatnonzero(read.kind == Kind.SEQ).tolist():
        name = base_name(marker.decode_name(read.templates[template]))
        codes[template] = codes_by_name.setdefault(name, len(codes_by_name))
    return codes[read.code]


def _main_device(capture: Capture, caller: Ints, activities: pa.Table) -> Ints:
    """Find the device on which each thread launches most; NONE where it launches nothing."""
    threads = len(capture.threads)
    main = np.full(threads, NONE)
    launched = caller != NONE
    thread = caller[launched]
    device = ints(activities.column("device"))[launched]
    pairs, counts = np.unique(np.stack([thread, device], axis=1), axis=0, return_counts=True)
    rising = np.lexsort((-pairs[:, 1], counts, pairs[:, 0]))  # of equals, the first device counts
    main[pairs[rising, 0]] = pairs[rising, 1]
    return main
