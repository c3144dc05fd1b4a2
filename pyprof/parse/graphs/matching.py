"""Which launch of a capture each kernel of a replay is, by names and order. Pure functions.

A kernel is known by keys of several levels, the finest first: its whole name with grid and block,
the name alone, the function without its template arguments. Both sides are compared at the finest
level at which they are alike; equal keys are matched in their order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pyprof.arrays import NONE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyprof.arrays import Ints, Mask

LEAST = 0.75
"""The share of both sides that has to be alike where some of it was lost; less is another graph."""


class Kernels(NamedTuple):
    """The launches of a capture in their order, or the kernels of a replay in that of the nodes."""

    levels: tuple[Ints, ...]
    """Keys, the finest level first; NONE where something is not known."""
    stream: Ints

    def __len__(self) -> int:
        return len(self.stream)

    def take(self, rows: Ints) -> Kernels:
        """Choose rows."""
        return Kernels(tuple(level[rows] for level in self.levels), self.stream[rows])


def share(launches: Kernels, kernels: Kernels) -> float:
    """Give the share of both that is alike by the coarsest key; 1 where all is."""
    longer = max(len(launches), len(kernels))
    return common(launches, kernels) / longer if longer else 0.0


def common(launches: Kernels, kernels: Kernels) -> int:
    """Count the kernels that both have, by the coarsest key; 0 where one of them is not known."""
    ours, theirs = kernels.levels[-1], launches.levels[-1]
    if (ours == NONE).any() or (theirs == NONE).any():
        return 0
    keys, both = np.unique(np.concatenate([ours, theirs]), return_inverse=True)
    mine, other = both[: len(ours)], both[len(ours) :]
    counts = (np.bincount(part, minlength=len(keys)) for part in (mine, other))
    return int(np.minimum(*counts).sum())


def places(launches: Kernels, kernels: Kernels) -> Ints:
    """Give the launch of each kernel, as its place in the capture; NONE where that is not sure.

    Where both hold each key as often, each kernel has one. Where some were lost, only keys that
    are there as often count, and only if `LEAST` of all remains.
    """
    for theirs, ours in zip(launches.levels, kernels.levels, strict=True):
        if _equal(theirs, ours):
            return _in_order(_paired(theirs, ours, np.ones(len(ours), bool)), kernels.stream)
    best = np.full(len(kernels), NONE)
    for theirs, ours in zip(launches.levels, kernels.levels, strict=True):
        launch_of_kernel = _paired(theirs, ours, _as_often(theirs, ours))
        if (launch_of_kernel != NONE).sum() > (best != NONE).sum():
            best = launch_of_kernel
    best = _in_order(best, kernels.stream)
    enough = (best != NONE).sum() >= LEAST * max(len(launches), len(kernels))
    return best if enough else np.full(len(kernels), NONE)


def _equal(one: Ints, other: Ints) -> bool:
    if len(one) != len(other) or (one == NONE).any() or (other == NONE).any():
        return False
    return bool((np.sort(one) == np.sort(other)).all())


def _as_often(launches: Ints, kernels: Ints) -> Mask:
    """Tell which kernels have a key that is there as often among the launches."""
    keys, both = np.unique(np.concatenate([kernels, launches]), return_inverse=True)
    ours, theirs = both[: len(kernels)], both[len(kernels) :]
    same = np.bincount(ours, minlength=len(keys)) == np.bincount(theirs, minlength=len(keys))
    same[keys == NONE] = False
    return np.asarray(same[ours], bool)


def _paired(launches: Ints, kernels: Ints, wanted: Mask) -> Ints:
    """Match the wanted kernels with the launches of their key, the first with the first."""
    launch_of_kernel = np.full(len(kernels), NONE)
    rows = np.flatnonzero(wanted)
    theirs = np.flatnonzero(np.isin(launches, kernels[rows]))
    order = rows[np.argsort(kernels[rows], kind="stable")]
    launch_of_kernel[order] = theirs[np.argsort(launches[theirs], kind="stable")]
    return launch_of_kernel


def _in_order(place: Ints, stream: Ints) -> Ints:
    """Leave out what stands on its stream in another order than it was captured in.

    A stream keeps the order of launches: of two that are the other way round one is not what its
    name says.
    """
    in_order = place.copy()
    for number in np.unique(stream).tolist():
        rows = np.flatnonzero((stream == number) & (place != NONE))
        at = place[rows]
        before = np.maximum.accumulate(np.concatenate([[NONE], at]))[:-1]
        behind = np.minimum.accumulate(np.concatenate([[_FAR], at[::-1]]))[:-1][::-1]
        in_order[rows[(before > at) | (behind < at)]] = NONE
    return in_order


_FAR = np.iinfo(np.int64).max


def unnamed(launches: Ints, kernels: Ints) -> Ints:
    """Give the launch of each kernel by order alone; NONE where kinds and numbers do not fit.

    Both are kinds of work, in the order in which the nodes were made. The same kinds in the same
    order say that nothing was lost.
    """
    if len(launches) != len(kernels) or (launches != kernels).any():
        return np.full(len(kernels), NONE)
    return np.arange(len(kernels))


def twins(sequence: Sequence[int], within: Ints) -> Ints:
    """Find where a sequence of keys stands in another one, as the places where it begins."""
    wanted = np.asarray(sequence, np.int64)
    if not len(wanted) or len(wanted) > len(within) or (wanted == NONE).any():
        return np.zeros(0, np.int64)
    starts = np.flatnonzero(within[: len(within) - len(wanted) + 1] == wanted[0])
    for place in _rarest_first(wanted, within):
        starts = starts[within[starts + place] == wanted[place]]
        if not len(starts):
            break
    return starts


def _rarest_first(wanted: Ints, within: Ints) -> list[int]:
    """Order places so that few beginnings are left soon."""
    keys, inverse = np.unique(wanted, return_inverse=True)
    ordered = np.sort(within)
    often = np.searchsorted(ordered, keys, "right") - np.searchsorted(ordered, keys, "left")
    return [int(place) for place in np.argsort(often[inverse], kind="stable")]
