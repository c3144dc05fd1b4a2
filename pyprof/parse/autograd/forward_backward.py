"""The forward op that each row's backward work belongs to, and the one whose place it shares."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

from pyprof import marker
from pyprof.arrays import NONE, distinct_values, ints, numbered, used
from pyprof.marker import Kind
from pyprof.parse import launches
from pyprof.parse.autograd import backward_nodes
from pyprof.parse.autograd.recomputation import HERE
from pyprof.parse.ranges import texts

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pyprof.arrays import Integers, Ints
    from pyprof.parse.ranges.sweep import Sweep
    from pyprof.parse.steps.profiler_windows import RecordingWindows
    from pyprof.schema import Capture


class Partners(NamedTuple):
    """Per row: ranges of the sweep; NONE where there is none."""

    op: Integers
    """The forward op whose backward pass the row is part of, of the node's own name."""
    place: Integers
    """The forward op whose layer and line are the row's: that, or the one whose backward node made
    the gradient that the row adds to another."""
    outer: Integers
    """Of recomputed work in no module, and of its own backward pass, a forward op whose layer was
    around it at first: that of the node that ran it again."""
    engine: NDArray[np.bool_]
    """Rows launched on a thread of the engine, outside of its nodes."""


def partners(
    capture: Capture,
    sweep: Sweep,
    leaf: Integers,
    chain: launches.Chains,
    caller: Integers,
    activities: pa.Table,
    windows: RecordingWindows,
) -> Partners:
    """Find, per activity, the forward range of the innermost backward node around it.

    Recomputed work is no part of the node's. `leaf` is the innermost range around each activity,
    `caller` is the thread that launched each; NONE where it is not known.
    """
    node = texts.tell_name(sweep.texts, backward_nodes.is_node)
    engine = texts.tell_name(sweep.texts, backward_nodes.is_engine)
    numbered = node & (sweep.texts.seq >= 0)
    innermost = launches.last(chain, numbered | engine)
    innermost = _numbered_node(sweep, numbered, engine & (sweep.texts.seq < 0), innermost)
    between = _on_engine(capture, sweep, numbered, caller) & (innermost == NONE)
    maker = _maker(sweep, numbered, chain, between)
    maker = np.where(innermost == NONE, maker, innermost)
    again = _again(sweep, leaf)
    innermost[again], maker[again] = NONE, NONE
    checkpoint = _checkpoints(sweep, numbered)
    nodes = used([maker, checkpoint], len(node))
    device = _main_device(capture, caller, activities)
    forward, same_name = _forward(capture, sweep, node | engine, nodes, device, windows)
    forward_range = np.full(len(node) + 1, NONE, np.int32)  # the last is that of no node
    forward_range[nodes] = forward
    place = forward_range.take(maker)
    recomputed = np.where(again, leaf, np.where(_again(sweep, place), place, NONE))
    outer = forward_range.take(np.append(checkpoint, NONE).take(recomputed))
    forward_range[nodes[~same_name]] = NONE
    return Partners(forward_range.take(innermost), place, outer, between)


def _again(sweep: Sweep, ranges: Integers) -> NDArray[np.bool_]:
    """Mark the ranges of recomputed work; NONE is not marked."""
    again: NDArray[np.bool_] = np.append(sweep.again.take(sweep.paths.of_range) > 0, [False])
    return again[ranges]


def _in_backward(sweep: Sweep) -> NDArray[np.bool_]:
    """Mark the paths whose ops are no forward op of any node.

    Reentrant checkpointing goes back over the ops that it ran again.
    """
    return np.asarray(sweep.backward & (sweep.again != HERE), bool)


def _checkpoints(sweep: Sweep, numbered: NDArray[np.bool_]) -> Integers:
    """Find the node in which each range was run again; NONE for others, or if modules say more.

    A module that was run again is around its ops. An op in no module may have been in fewer than
    the op of the node: that is not looked into.
    """
    node = np.full(len(numbered), NONE, np.int32)
    ranges = np.flatnonzero(sweep.again.take(sweep.paths.of_range))
    if len(ranges) and not (texts.kinds(sweep.texts)[ranges] == Kind.LAYER).any():
        node[ranges] = launches.nearest(sweep.nest.parent, numbered).take(ranges)
    return node


def _on_engine(
    capture: Capture, sweep: Sweep, node: NDArray[np.bool_], caller: Integers
) -> NDArray[np.bool_]:
    """Tell which rows are of threads whose nodes all go back over ops of other threads."""
    column = capture.ranges.column("forward_thread")
    if column.null_count == len(column):
        return np.zeros(len(caller), bool)
    thread = sweep.nest.thread
    forward = ints(column)[sweep.row]
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
    adds = np.where(between & (adds == NONE), launches.first(chain), adds)
    maker = np.full(len(adds), NONE)
    rows = np.flatnonzero(adds != NONE)
    adds, nodes = adds[rows], np.append(np.flatnonzero(node), NONE)
    before = nodes[np.searchsorted(nodes[:-1], adds) - 1]
    thread = sweep.nest.thread
    same_thread = np.flatnonzero(before != NONE)
    before, adds, rows = before[same_thread], adds[same_thread], rows[same_thread]
    maker[rows] = np.where(thread[before] == thread[adds], before, NONE)
    return maker


def _numbered_node(
    sweep: Sweep, node: NDArray[np.bool_], engine: NDArray[np.bool_], innermost: Ints
) -> Ints:
    """Put, for an engine's range that has no number, the node that it evaluates.

    The engine itself sums up the gradient of a broadcast operand, a bias say, after the node.
    """
    asking = np.flatnonzero(np.append(engine, [False])[innermost])
    if not len(asking):
        return innermost
    rows = np.flatnonzero(node)
    evaluated = np.full(len(node) + 1, NONE)
    evaluated[sweep.nest.parent[rows]] = rows
    evaluated[NONE] = NONE
    innermost[asking] = evaluated[innermost[asking]]
    return innermost


def _forward(
    capture: Capture,
    sweep: Sweep,
    node: NDArray[np.bool_],
    nodes: Ints,
    device: Ints,
    windows: RecordingWindows,
) -> tuple[Ints, NDArray[np.bool_]]:
    """Find the forward range of each of some nodes, and tell whether it has the node's name."""
    rows = _numbered_rows(sweep, nodes)
    ranges = _seq_ranges(capture, sweep, rows, node, device, windows)
    place = np.searchsorted(rows, nodes)
    forward = backward_nodes.forward_of(ranges, place)
    same_name = (forward != NONE) & (ranges.name[forward] == ranges.name[place])
    return np.append(rows, NONE)[forward], same_name


def _numbered_rows(sweep: Sweep, nodes: Ints) -> Ints:
    """Choose the ranges that a node's forward op may be, and the nodes."""
    chosen = sweep.texts.seq >= 0
    chosen &= ~_in_backward(sweep).take(sweep.paths.of_range)
    chosen[nodes] = True
    return np.flatnonzero(chosen)


def _seq_ranges(
    capture: Capture,
    sweep: Sweep,
    rows: Ints,
    node: NDArray[np.bool_],
    device: Ints,
    windows: RecordingWindows,
) -> backward_nodes.SeqRanges:
    pid, device = _apart(capture, device)
    thread, start = sweep.nest.thread[rows], sweep.nest.start[rows]
    forward_thread = capture.ranges.column("forward_thread")
    return backward_nodes.SeqRanges(
        name=_names(sweep.texts)[sweep.texts.code[rows]],
        backward=node[rows],
        inside_backward=_in_backward(sweep)[sweep.paths.of_range[rows]],
        seq=sweep.texts.seq[rows],
        start=start,
        thread=thread,
        pid=pid[thread],
        window=windows.at(pid[thread], start),
        device=device[thread],
        forward_thread=ints(forward_thread.take(pa.array(sweep.row[rows]))),
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
    """Number the ops' names by template, an op's and its backward node's alike; else NONE."""
    codes = np.full(len(read.templates), NONE)
    codes_by_name: dict[str, int] = {}
    base_name = cache(backward_nodes.base_name)
    for template in np.flatnonzero(read.kind == Kind.SEQ).tolist():
        name = base_name(marker.decode_name(read.templates[template]))
        codes[template] = codes_by_name.setdefault(name, len(codes_by_name))
    return codes


def _main_device(capture: Capture, caller: Integers, activities: pa.Table) -> Ints:
    """Find the device on which each thread launches most; NONE where it launches nothing."""
    threads = len(capture.threads)
    main = np.full(threads, NONE)
    if len(only := distinct_values(ints(activities.column("device")))) <= 1:
        callers = distinct_values(caller)
        main[callers[callers != NONE]] = only[0] if len(only) else NONE
        return main
    launched = np.flatnonzero(caller != NONE)
    thread = caller[launched].astype(np.int64)
    devices, place = numbered(ints(activities.column("device"))[launched])
    pairs, which = numbered(thread * len(devices) + place)
    thread, device = pairs // max(1, len(devices)), devices[pairs % max(1, len(devices))]
    rising = np.lexsort((-device, np.bincount(which), thread))  # of equals, the first counts
    main[thread[rising]] = device[rising]
    return main
