"""The forward op that each row's backward work belongs to, and the one whose layer it has.

A forward op and the autograd node it makes carry the same sequence number. Numbers count up per
forward thread, so they repeat between threads and processes; ops that make no node show the
number that the next node will get, so several forward ops can show one number, too.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

from pyprof.arrays import MISSING, ints, latest_before, nearest, referenced_rows
from pyprof.marker import Kind
from pyprof.parse import launches
from pyprof.parse.autograd.recomputation import HERE
from pyprof.parse.ranges import texts
from pyprof.records.records import combinations, distinct, number_combinations

if TYPE_CHECKING:
    from pyprof.arrays import Int64Array, IntArray, Mask
    from pyprof.parse.ranges.sweep import Sweep
    from pyprof.parse.steps.profiler_windows import RecordingWindows
    from pyprof.schema import Capture


class Partners(NamedTuple):
    """Per row: ranges of the sweep; MISSING if there is none."""

    op: IntArray
    """The forward op, of the node's own name, whose backward pass the row is part of."""
    place: IntArray
    """The forward op whose layer and line are the row's: that, or the one whose backward node made
    the gradient that the row adds to another."""
    outer: IntArray
    """For recomputed work in no module, and for its backward pass, a forward op in whose layer it
    first ran: that of the node that ran it again.
    """
    engine: Mask
    """Rows launched on a thread of the engine, outside of its nodes."""


def partners(
    capture: Capture,
    sweep: Sweep,
    leaf: IntArray,
    chain: launches.Chains,
    caller: IntArray,
    activities: pa.Table,
    windows: RecordingWindows,
) -> Partners:
    """Find, per activity, the forward range of the innermost backward node around it.

    Recomputed work does not belong to the node. `leaf` is the innermost range around each
    activity, `caller` the thread that launched it; MISSING if unknown.
    """
    node = texts.matches(sweep.texts, Kind.SEQ, attrgetter("is_node"))
    engine = texts.matches(sweep.texts, Kind.SEQ, attrgetter("is_engine"))
    numbered = node & (sweep.texts.seq >= 0)
    innermost = launches.last(chain.within(numbered | engine))
    innermost = _replace_engine_range(sweep, numbered, engine & (sweep.texts.seq < 0), innermost)
    between = _mark_engine_rows(capture, sweep, numbered, caller) & (innermost == MISSING)
    maker = _find_maker(sweep, numbered, chain, between)
    maker = np.where(innermost == MISSING, maker, innermost)
    is_recomputed = _mark_recomputed(sweep, leaf)
    innermost[is_recomputed], maker[is_recomputed] = MISSING, MISSING
    checkpoint = _checkpoints(sweep, numbered)
    nodes = referenced_rows([maker, checkpoint], len(node))
    device = _main_device(capture, caller, activities)
    forward, same_name = _find_forward(capture, sweep, node | engine, nodes, device, windows)
    forward_range = np.full(len(node) + 1, MISSING, np.int32)  # the last entry stands for no node
    forward_range[nodes] = forward
    index = forward_range.take(maker)
    recomputed = np.where(
        is_recomputed, leaf, np.where(_mark_recomputed(sweep, index), index, MISSING)
    )
    outer = forward_range.take(np.append(checkpoint, MISSING).take(recomputed))
    forward_range[nodes[~same_name]] = MISSING
    return Partners(forward_range.take(innermost), index, outer, between)


def precedes(partner: Partners, chain: launches.Chains, count: int) -> Mask:
    """Mark the rows of forward ops whose backward pass was recorded; there are `count` ranges."""
    has_node = np.zeros(count, bool)
    has_node[partner.op[partner.op != MISSING]] = True
    return np.diff(chain.within(has_node).offset) > 0


def _mark_recomputed(sweep: Sweep, ranges: IntArray) -> Mask:
    """Mark the ranges of recomputed work; MISSING is not marked."""
    recomputed: Mask = np.append(sweep.recomputed.take(sweep.paths.of_range) > 0, [False])
    return recomputed[ranges]


def _checkpoints(sweep: Sweep, numbered: Mask) -> IntArray:
    """Find the node in which each range was recomputed; MISSING if none, or if any module was.

    Recomputed modules are around their ops already. An op in no module may have run in fewer
    modules than the op of the node: that is not checked.
    """
    node = np.full(len(numbered), MISSING, np.int32)
    ranges = np.flatnonzero(sweep.recomputed.take(sweep.paths.of_range))
    if len(ranges) and not (texts.kinds(sweep.texts)[ranges] == Kind.LAYER).any():
        node[ranges] = nearest(sweep.nest.parent, numbered).take(ranges)
    return node


def _mark_engine_rows(capture: Capture, sweep: Sweep, node: Mask, caller: IntArray) -> Mask:
    """Mask of rows launched on threads whose nodes all belong to forward ops of other threads."""
    column = capture.ranges.column("forward_thread")
    if column.null_count == len(column):
        return np.zeros(len(caller), bool)
    thread = sweep.nest.thread
    forward = ints(column)[sweep.row]
    foreign = (forward != MISSING) & (forward != thread)
    count = len(capture.threads) + 1  # MISSING is the last one
    some, others = (
        np.bincount(thread[rows], minlength=count) for rows in (node & foreign, node & ~foreign)
    )
    on_engine: Mask = ((some > 0) & (others == 0))[caller]
    return on_engine


def _find_maker(sweep: Sweep, node: Mask, chain: launches.Chains, between: Mask) -> Int64Array:
    """Find, for each addition to a gradient, the node that made the addend.

    It is the last node before it on the thread: the engine adds up a node's results right after it,
    and runs the accumulation of a parameter's gradient before anything else.
    """
    accumulates = texts.matches(sweep.texts, Kind.SEQ, attrgetter("accumulates"))
    adds = launches.last(chain.within(accumulates))
    adds = np.where(between & (adds == MISSING), launches.first(chain), adds)
    maker = np.full(len(adds), MISSING)
    rows = np.flatnonzero(adds != MISSING)
    adds, nodes = adds[rows], np.append(np.flatnonzero(node), MISSING)
    before = nodes[np.searchsorted(nodes[:-1], adds) - 1]
    thread = sweep.nest.thread
    same_thread = np.flatnonzero(before != MISSING)
    before, adds, rows = before[same_thread], adds[same_thread], rows[same_thread]
    maker[rows] = np.where(thread[before] == thread[adds], before, MISSING)
    return maker


def _replace_engine_range(
    sweep: Sweep, node: Mask, engine: Mask, innermost: Int64Array
) -> Int64Array:
    """Replace an engine's range that has no number by the node that it evaluates.

    The engine itself sums up the gradient of a broadcast operand, a bias say, after the node.
    """
    asking = np.flatnonzero(np.append(engine, [False])[innermost])
    if not len(asking):
        return innermost
    rows = np.flatnonzero(node)
    evaluated = np.full(len(node) + 1, MISSING)
    evaluated[sweep.nest.parent[rows]] = rows
    evaluated[MISSING] = MISSING
    innermost[asking] = evaluated[innermost[asking]]
    return innermost


def _find_forward(
    capture: Capture,
    sweep: Sweep,
    node: Mask,
    nodes: Int64Array,
    device: Int64Array,
    windows: RecordingWindows,
) -> tuple[Int64Array, Mask]:
    """Find the forward range of each of some nodes, and whether it has the node's name."""
    # The backward pass of reentrant checkpointing covers the ops that it recomputed.
    in_backward = (sweep.backward & (sweep.recomputed != HERE)).take(sweep.paths.of_range)
    chosen = (sweep.texts.seq >= 0) & ~in_backward
    chosen[nodes] = True
    rows = np.flatnonzero(chosen)
    pid, device = _owners(capture, device)
    thread, start = sweep.nest.thread[rows], sweep.nest.start[rows]
    forward_thread = capture.ranges.column("forward_thread")
    ranges = _SeqRanges(
        name=_names(sweep.texts)[sweep.texts.code[rows]],
        backward=node[rows],
        inside_backward=in_backward[rows],
        seq=sweep.texts.seq[rows],
        start=start,
        thread=thread,
        pid=pid[thread],
        window=windows.at(pid[thread], start),
        device=device[thread],
        forward_thread=ints(forward_thread.take(pa.array(sweep.row[rows]))),
    )
    index = np.searchsorted(rows, nodes)
    forward = _forward_of(ranges, index)
    same_name = (forward != MISSING) & (ranges.name[forward] == ranges.name[index])
    return np.append(rows, MISSING)[forward], same_name


@dataclass(frozen=True, slots=True, kw_only=True)
class _SeqRanges:
    """PyTorch's own ranges in sweep order (one entry per range of the sweep)."""

    name: Int64Array
    """Code of the op's name, the same for an op and its backward node; else MISSING."""
    backward: Mask
    """A node of the backward pass."""
    inside_backward: Mask
    seq: IntArray
    start: Int64Array
    thread: IntArray
    pid: Int64Array
    window: Int64Array
    """The window of the capture in which the range began."""
    device: Int64Array
    """The device on which the range's thread launches most; MISSING if unknown."""
    forward_thread: Int64Array
    """For a backward node, the thread of its forward op if recorded; else MISSING."""


def _forward_of(ranges: _SeqRanges, nodes: Int64Array) -> Int64Array:
    """Find the forward range of each backward node; MISSING if the capture does not hold it.

    Of the forward ops with the node's name and number, the last to start before it, which is the
    one of this iteration. Where several threads have such an op: that of the thread that the tool
    names, else of the node's own thread, else of a thread that works on the same device; none if
    several such threads had theirs since the last node with this number. Last, an op of another
    name with that number, in the same window: the last op of a window may show the number of one
    that ran after it, unrecorded. That match gives a position, not an op: it may be an op that made
    no node, before one without a number.
    """
    usable = (
        (ranges.name != MISSING) & (ranges.seq >= 0) & ~ranges.backward & ~ranges.inside_backward
    )
    candidates = np.flatnonzero(usable)
    forward = np.full(len(nodes), MISSING)
    threads = np.where(ranges.forward_thread != MISSING, ranges.forward_thread, ranges.thread)
    rungs = (
        # key of a candidate, key of a node, what else both must have in common, and whether all
        # candidates must be on one thread
        (ranges.pid, ranges.pid, ranges.name, True),
        (ranges.thread, threads, ranges.name, False),
        (ranges.device, ranges.device, ranges.name, False),
        (ranges.pid, ranges.pid, ranges.name, False),
        (ranges.thread, threads, ranges.window, False),
        (ranges.pid, ranges.pid, ranges.window, False),
    )
    for where, whose, name, one_thread in rungs:
        left = np.flatnonzero(forward == MISSING)
        if not len(left) or not len(candidates):
            break
        node = nodes[left]
        keys = number_combinations(
            np.concatenate([where[candidates], whose[node]]),
            np.concatenate([name[candidates], name[node]]),
            np.concatenate([ranges.seq[candidates], ranges.seq[node]]),
        )
        ours, theirs = keys[: len(candidates)], keys[len(candidates) :]
        began, ran = ranges.start[candidates], ranges.start[node]
        hit = latest_before(ours, began, theirs, ran)
        thread = ranges.thread[candidates]
        doubtful = np.isin(theirs, _on_several_threads(ours, thread))
        if not one_thread and doubtful.any():
            waiting = number_combinations(ours, latest_before(theirs, ran, ours, began))
            doubtful &= np.isin(waiting, _on_several_threads(waiting, thread))[hit]
        hit[doubtful] = MISSING
        forward[left] = np.where(hit == MISSING, MISSING, candidates[hit])
    return forward


def _on_several_threads(keys: IntArray, thread: IntArray) -> IntArray:
    """Return the keys that occur on several threads."""
    first, number = distinct(keys)
    return np.unique(keys[thread != thread[first[number]]])


def _owners(capture: Capture, device: Int64Array) -> tuple[Int64Array, Int64Array]:
    """Each thread's process and device; a recording of graph captures counts as one of its own.

    Sequence numbers of different recordings are unrelated, even if the process is the same.
    """
    recording = np.full(len(capture.threads), MISSING)
    if capture.graph_captures is not None:
        first = capture.graph_captures.recordings.column("first_thread").drop_null()
        recording = np.searchsorted(ints(first), np.arange(len(recording)), side="right") - 1
    # below MISSING (-1), where no process and no device is
    pid = np.where(recording == MISSING, ints(capture.threads.column("pid")), -2 - recording)
    return pid, np.where(recording == MISSING, device, -2 - recording)


_NODE = re.compile(r"Backwards?\d*(?=(?:_copy)?$)")
"""The suffix that torchgen adds to an op's name; `_copy`, of the op itself, stays behind it."""


def base_name(name: str) -> str:
    """The name an op and its backward node have in common: `addmm`, `nativelayernorm`.

    torchgen names the node after the op: native_layer_norm -> NativeLayerNormBackward0.
    """
    return _NODE.sub("", name.rpartition("::")[2]).replace("_", "").lower()


def _names(read: texts.Texts) -> Int64Array:
    """Number the ops' names by template, an op and its backward node equally; else MISSING."""
    codes = np.full(len(read.statements), MISSING)
    codes_by_name: dict[str, int] = {}
    cached_name = cache(base_name)  # many templates share a name
    for template in np.flatnonzero(read.kind == Kind.SEQ).tolist():
        name = cached_name(read.statements[template].node)
        codes[template] = codes_by_name.setdefault(name, len(codes_by_name))
    return codes


def _main_device(capture: Capture, caller: IntArray, activities: pa.Table) -> Int64Array:
    """Find the device on which each thread launches most; MISSING if it launches nothing."""
    main = np.full(len(capture.threads), MISSING)
    launched = np.flatnonzero(caller != MISSING)
    thread, device = caller[launched], ints(activities.column("device"))[launched]
    first, which = combinations(thread, device)
    thread, device = thread[first], device[first]
    rising = np.lexsort((-device, np.bincount(which), thread))  # on a tie, the lowest device wins
    main[thread[rising]] = device[rising]
    return main
