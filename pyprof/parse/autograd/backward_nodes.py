"""Sequence numbers: which forward op a backward kernel belongs to, and PyProf's counting of both.

A forward op and the autograd node it makes carry the same sequence number. Numbers count up per
forward thread, so they repeat between threads and processes; ops that make no node show the
number that the next node will get, so several forward ops can show one number, too.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pyprof.arrays import MISSING, latest_before
from pyprof.records.records import distinct, number_combinations

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from pyprof.arrays import Int64Array, IntArray
    from pyprof.parse.launches import Chains

_NODE = re.compile(r"Backwards?\d*(?=(?:_copy)?$)")


@dataclass(frozen=True, slots=True, kw_only=True)
class SeqRanges:
    """PyTorch's own ranges in sweep order (one entry per range of the sweep)."""

    name: NDArray[np.int64]
    """Code of the op's name, the same for an op and its backward node; else MISSING."""
    backward: NDArray[np.bool_]
    """A node of the backward pass."""
    inside_backward: NDArray[np.bool_]
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


def base_name(name: str) -> str:
    """The name an op and its backward node have in common: `addmm`, `nativelayernorm`.

    torchgen names the node after the op: native_layer_norm -> NativeLayerNormBackward0.
    """
    return _NODE.sub("", name.rpartition("::")[2]).replace("_", "").lower()


def forward_of(ranges: SeqRanges, nodes: Int64Array) -> Int64Array:
    """Find the forward range of each backward node; MISSING if the capture does not hold it.

    Of the forward ops with the node's name and number, the last to start before it, which is the
    one of this iteration. Where several threads have such an op: that of the thread that the tool
    names, else of the node's own thread, else of a thread that works on the same device. Last, an
    op of another name with that number, in the same window: the last op of a window may show the
    number of one that ran after it, unrecorded. That match gives a position, not an op: it may be
    an op that made no node, before one without a number.
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
        hit = latest_before(ours, ranges.start[candidates], theirs, ranges.start[node])
        if one_thread:
            thread = ranges.thread[candidates]
            first, number = distinct(ours)
            on_several = np.unique(ours[thread != thread[first[number]]])
            hit[np.isin(theirs, on_several)] = MISSING
        forward[left] = np.where(hit == MISSING, MISSING, candidates[hit])
    return forward


def prune(names: Sequence[str], numbers: Sequence[int]) -> list[int]:
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


def count_in_order(
    numbers: Chains, rows: Int64Array, op: IntArray, backward: NDArray[np.bool_]
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
        current = _one_by_one(
            [numbers.member[a:b].tolist() for a, b in zip(low, high, strict=True)],
            backward,
        )
    new = np.ones(len(current), bool)
    new[1:] = (current[1:] != current[:-1]) | (op[1:] != op[:-1])
    index = np.arange(len(current))
    return current, index - np.maximum.accumulate(np.where(new, index, 0))


def _one_by_one(numbers: Sequence[Sequence[int]], backward: NDArray[np.bool_]) -> Int64Array:
    """Count one kernel at a time, where the running maximum of the lowest numbers is wrong."""
    chosen, current = [], MISSING
    for entry, is_backward in zip(numbers, backward.tolist(), strict=True):
        current = entry[0] if is_backward else next((n for n in entry if n > current), current)
        chosen.append(current)
    return np.array(chosen, np.int64)
