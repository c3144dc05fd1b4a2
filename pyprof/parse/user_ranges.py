"""The user's own ranges: which are theirs, and which is around a backward pass."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from pyprof import marker
from pyprof.arrays import NONE, ints
from pyprof.marker import Kind
from pyprof.parse import texts
from pyprof.parse.ranges import innermost, nest

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

    from pyprof.arrays import Ints, Mask
    from pyprof.parse.sites import Sites
    from pyprof.parse.sweep import Sweep
    from pyprof.schema import Capture

_LAYERS = (Kind.LAYER, Kind.USER)


def of_library(ranges: pa.Table) -> Mask:
    """Tell which ranges are in an NVTX domain of a library's own."""
    found = np.zeros(len(ranges), bool)
    if ranges.column("domain").null_count == len(ranges):
        return found
    domain = ranges.column("domain").combine_chunks()
    theirs = [name is not None and marker.is_library_domain(name)
              for name in domain.dictionary.to_pylist()]  # fmt: skip
    return np.asarray(np.append(np.array(theirs, bool), [False])[ints(domain.indices)])


def named(ranges: pa.Table) -> Mask:
    """Tell which of some ranges name a layer.

    Only their own texts are looked at: they may be few among many long ones.
    """
    text = ranges.column("text").combine_chunks()
    used, index = np.unique(ints(text.indices), return_inverse=True)
    spelt = text.dictionary.take(pa.array(used)).to_pylist()
    layer = np.array([marker.classify(name) in _LAYERS for name in spelt], bool)
    return layer[index] & ~of_library(ranges)


def name(text: str, kind: Kind | None = None) -> str:
    """Give the layer, or the loop, that a range names."""
    return _NAME[marker.classify(text) if kind is None else kind](text)


_NAME: Mapping[Kind, Callable[[str], str]] = {
    Kind.LAYER: marker.layer_name,
    Kind.USER: marker.range_name,
    Kind.STEP: marker.step_name,
}
NAMED = frozenset(_NAME)
"""Kinds of ranges that name a part of the program."""


def says(name: str, kind: Kind) -> str:
    """Give the direction that a named range says; "" for none.

    A layer may be a module of a backward RNN: only one that is named so and no more says it.
    """
    return "" if kind == Kind.LAYER and name.lower() not in _PARTS else marker.direction(name)


_PARTS = frozenset({"forward", "backward", "optimizer"})


def codes(read: texts.Texts) -> NDArray[np.int32]:
    """Give the template of each range; of ranges that say the same, such as steps, one for all.

    Else what lies in them would have a path of its own in each step.
    """
    shared = np.arange(len(read.templates), dtype=np.int32)
    first: dict[tuple[int, str], int] = {}
    for place in np.flatnonzero(np.isin(read.kind, (Kind.USER, Kind.STEP))).tolist():
        kind = Kind(int(read.kind[place]))
        shared[place] = first.setdefault((kind, name(read.templates[place], kind)), place)
    return shared[read.code] if len(read.code) else read.code


def around(capture: Capture, sweep: Sweep, launch: Ints, site: Sites) -> Ints:
    """Find the range whose layers count where those of the site's ops say nothing; NONE for none.

    For what a graph replays, that around the launch of the graph; else that around a backward pass.
    """
    found = _around_backward(capture, sweep, launch)
    rows = np.flatnonzero((site.row != launch) & (launch != NONE))
    if len(rows):
        at_launch = innermost(sweep.nest, *_launches(capture, launch[rows]))
        found[rows] = np.where(at_launch == NONE, found[rows], at_launch)
    return found


def _launches(capture: Capture, rows: Ints) -> tuple[Ints, Ints, Ints]:
    """Give the threads, starts and ends of API calls."""
    thread, start, end = (
        ints(capture.calls.column(name))[rows] for name in ("thread", "start", "end")
    )
    return thread, start, end


def _around_backward(capture: Capture, sweep: Sweep, launch: Ints) -> Ints:
    """Find the user's range around the backward pass in which a row was launched; NONE for none.

    PyTorch runs that on a thread of its own while the caller waits: of a thread that has no named
    ranges, a launch is in the range of another one that says so. Only one thread of a process may
    have such ranges, else nothing tells which of them is meant.
    """
    found = np.full(len(launch), NONE)
    backward = np.flatnonzero(np.any([_backward(sweep, kind) for kind in _LAYERS], axis=0))
    rows = np.flatnonzero(launch != NONE)
    if not len(backward) or not len(rows):
        return found
    pid = np.append(ints(capture.threads.column("pid")), NONE)
    thread, start, end = _launches(capture, launch[rows])
    caller = sweep.nest.thread[backward]
    alone = ~np.isin(pid[caller], _of_several(pid[caller], caller))
    backward, caller = backward[alone], caller[alone]
    kind = texts.kinds(sweep.texts)
    other = ~np.isin(thread, sweep.nest.thread[np.isin(kind, [*NAMED])])
    ranges = nest(pid[caller], sweep.nest.start[backward], sweep.nest.end[backward], backward)
    inside = innermost(ranges, pid[thread[other]], start[other], end[other])
    found[rows[other]] = np.append(backward[ranges.order], NONE)[inside]
    return found


def _backward(sweep: Sweep, kind: Kind) -> Mask:
    return texts.tell(
        sweep.texts, kind, lambda text: says(name(text, kind), kind) == marker.BACKWARD
    )


def _of_several(pid: Ints, thread: Ints) -> Ints:
    """Give the processes of which several threads occur."""
    pairs = np.unique(np.stack([pid, thread]), axis=1)[0]
    return np.asarray(pairs[1:][pairs[1:] == pairs[:-1]])
