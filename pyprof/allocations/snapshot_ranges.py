"""Layer, direction and step at each moment, from the ranges of a snapshot."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pyprof.allocations.history import Labels, label
from pyprof.arrays import MISSING
from pyprof.marker import (
    STEP_OF,
    Kind,
    classify,
    decode_annotation,
    direction,
    layer_name,
    range_name,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyprof.allocations.snapshot import Snapshot
    from pyprof.arrays import Int64Array

_MAX_DEPTH = 1000
"""Ranges inside more open ones than this do not count."""
_PARTS = {"fprop": "forward", "bprop": "backward", "optim": "optimizer"}


class _State(NamedTuple):
    layer: str | None
    direction: str | None


_OUTSIDE = _State(None, None)


def around(snapshot: Snapshot, device: int, time_ns: Int64Array) -> tuple[Labels, Labels]:
    """Find layer and direction of moments by the ranges around them; empty without times."""
    moments, states = _states(_sort_range_ends(snapshot, device))
    index = np.searchsorted(moments, time_ns, "right")
    index = np.where(time_ns == MISSING, 0, index)
    layer, direction = (label(list(column)).take(index) for column in zip(*states, strict=True))
    return layer, direction


def step_bounds(snapshot: Snapshot, device: int) -> tuple[str, Int64Array]:
    """Return what marks steps, and the moments at which one ends; none without marks.

    The beginning of a step's range ends the step before; the last ends where its range does.
    """
    named = _sort_range_ends(snapshot, device)
    steps = [(time, begins) for time, begins, text in named if classify(text) is Kind.STEP]
    if steps:
        moments = [time for time, begins in steps if begins][1:]
        moments += [time for time, begins in steps[-1:] if not begins]
        return "ranges of steps", np.array(moments, np.int64)
    ends = [time for time, begins, text in named if not begins and text.startswith(STEP_OF)]
    return "Optimizer.step", np.array(ends, np.int64)


def _sort_range_ends(snapshot: Snapshot, device: int) -> list[tuple[int, bool, str]]:
    """List the ends of ranges by time."""
    annotations = snapshot.annotations
    chosen = (annotations.device == device) & (annotations.name != MISSING)
    rows = np.flatnonzero(chosen & (annotations.time_ns != MISSING))
    rows = rows[np.argsort(annotations.time_ns[rows], kind="stable")]
    columns = (annotations.time_ns, annotations.begins, annotations.name)
    listed = zip(*(column[rows].tolist() for column in columns), strict=True)
    texts = [decode_annotation(text) for text in snapshot.texts]
    return [(time, begins, texts[name]) for time, begins, name in listed]


def _states(ends: Iterable[tuple[int, bool, str]]) -> tuple[Int64Array, list[_State]]:
    """Return the moments at which a range begins or ends, and the states before and after them."""
    opened: list[tuple[str, _State]] = []
    moments, states = [], [_OUTSIDE]
    for time, begins, text in ends:
        if begins:
            if len(opened) < _MAX_DEPTH:
                opened.append((text, _enter(opened[-1][1] if opened else _OUTSIDE, text)))
        else:
            _close(opened, text)
        moments.append(time)
        states.append(opened[-1][1] if opened else _OUTSIDE)
    return np.array(moments, np.int64), states


def _close(opened: list[tuple[str, _State]], text: str) -> None:
    """Close the innermost range of this name, and what was left open inside it."""
    for height in reversed(range(len(opened))):
        if opened[height][0] == text:
            del opened[height:]
            return


def _enter(around: _State, text: str) -> _State:
    kind = classify(text)
    if kind is Kind.LAYER:
        return around._replace(layer=layer_name(text))
    if kind is Kind.OPTIMIZER:
        return around._replace(direction="optimizer")
    if kind is Kind.USER:
        name = range_name(text)
        return _State(name, _PARTS.get(direction(name), around.direction))
    return around
