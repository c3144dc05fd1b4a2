"""What would move the peak: the level without some blocks, or with smaller ones, at every moment.

Each change is reckoned over the whole recording, not at the peak alone: another moment may be next.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pyprof.arrays import NONE
from pyprof.memory.history import BEFORE

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyprof.arrays import Floats, Ints, Mask
    from pyprof.memory.history import History
    from pyprof.report.analysis.memory_time import LayerWork

_LEAST_SHARE = 0.01
"""Changes that move the peak by less are not worth a line."""
_MOST_LAYERS = 30


@dataclass(frozen=True, slots=True)
class PossibleChange:
    """Something that would lower the peak."""

    change: str
    """What to change."""
    peak_bytes: int
    """The peak then; the middle of the interval where only that is known."""
    saved_bytes: int
    """How much lower that is; below 0: how much higher."""
    assumes: str
    """What is taken for granted."""
    low_bytes: int | None = None
    """The peak then, at least; null where it follows without an interval."""
    high_bytes: int | None = None
    """The peak then, at most; null likewise."""


@dataclass(frozen=True, slots=True)
class CheckpointedLayer:
    """What checkpointing a layer would give back, and cost."""

    layer: str
    """Its path; layers inside it count."""
    held_bytes: int
    """Activations that it holds at the peak, but for the last that it made in each step."""
    peak_bytes: int
    """The peak then."""
    saved_bytes: int
    """How much lower that is."""
    recomputed_flops: float | None
    """FLOPs of its forward pass in a step, to be done again; null where they are unknown."""
    recomputed_ns: float | None
    """Their time; null without a trace of the same run."""


def possible_changes(history: History) -> tuple[PossibleChange, ...]:
    """List what would lower the peak, most first."""
    category = history.labels["category"]
    direction = history.labels["direction"]

    def in_category(kind: str) -> Mask:
        return _is(category.codes, category.names, kind)

    during_step = in_category("temporaries") & _is(direction.codes, direction.names, "optimizer")
    activations = in_category("activations")
    scaling = activations | (in_category("temporaries") & ~during_step)
    reckoned = [
        _change(history, "an optimizer that needs no temporaries (fused=True)", during_step, 1.0,
                "the fused optimizer updates in place"),
        _change(history, "half the batch", scaling, 0.5,
                "activations and temporaries are proportional to the batch"),
        _change(history, "optimizer state of half the width", in_category("optimizer state"), 0.5,
                "the state is float32, and the optimizer takes bfloat16"),
        _change(history, "gradients that are freed before the forward pass", _across(history), 1.0,
                "zero_grad(set_to_none=True) comes before the forward pass"),
    ]  # fmt: skip
    reckoned += bfloat16(history)
    least = _LEAST_SHARE * history.held(history.peak)
    worth = [each for each in reckoned if _moved(history, each) >= least]
    return tuple(sorted(worth, key=lambda each: -each.saved_bytes))


def _moved(history: History, change: PossibleChange) -> int:
    """Return how much a change may move the peak: of an interval, the end that is further away."""
    if change.low_bytes is None or change.high_bytes is None:
        return change.saved_bytes
    peak = history.held(history.peak)
    return max(peak - change.low_bytes, change.high_bytes - peak)


def _is(codes: Ints, names: tuple[str, ...], name: str) -> Mask:
    if name not in names:
        return np.zeros(len(codes), bool)
    return np.asarray(codes == names.index(name))


def _change(
    history: History, change: str, chosen: Mask, share: float, assumes: str
) -> PossibleChange:
    """Reckon with the chosen blocks smaller by a share."""
    less = (history.level_of(chosen) * share).astype(np.int64)
    start = int(history.blocks.bytes[history.blocks.live(BEFORE) & chosen].sum() * share)
    peak = max(int((history.level - less).max(initial=0)), history.start - start)
    return PossibleChange(change, peak, history.held(history.peak) - peak, assumes)


# --- bfloat16 -------------------------------------------------------------------------------------

_KEPT_FLOAT32 = 0.25
"""Of activations of a model in bfloat16, the most that is float32 after all: norms and softmax."""


def bfloat16(history: History) -> list[PossibleChange]:
    """Predict the peak under autocast, and of the model in bfloat16; nothing if 16 bits are in use.

    Autocast computes products in bfloat16 and norms, softmax and losses in float32. It leaves the
    weights as they are, and copies them; the copies live until it ends, and in the graph until the
    backward pass is done.
    """
    if history.half_precision:
        return []
    category = history.labels["category"]
    blocks = history.blocks

    def total(*names: str) -> Mask:
        return np.isin(category.codes, [category.names.index(n) for n in names])

    weights = total("parameters", "gradients", "optimizer state")
    activations, workspace = total("activations"), total("workspace")
    older = (blocks.allocated == BEFORE) & (category.codes == NONE)
    in_optimizer = _is(*history.labels["direction"], "optimizer")
    everything = np.ones(len(blocks), bool)
    changes = []
    copies = _copies(history, total("parameters") | older, total("gradients"))
    if copies is not None:
        passing = everything & ~(weights | workspace | older | in_optimizer)
        low = _peak(history, [(passing, -0.5)])
        high = _peak(history, [], copies)
        changes.append(
            _interval(history, "autocast to bfloat16", low, high,
                      "everything is float32 now; weights stay so, and up to all are copied")
        )  # fmt: skip
    low = _peak(history, [(everything & ~workspace, -0.5)])
    high = _peak(history, [(weights, -0.5), (activations, _KEPT_FLOAT32 - 0.5)])
    if weights.any() or activations.any():
        changes.append(
            _interval(history, "the model in bfloat16", low, high,
                      "everything is float32 now; the optimizer keeps its state in bfloat16")
        )  # fmt: skip
    return changes


def _interval(history: History, change: str, low: int, high: int, assumes: str) -> PossibleChange:
    middle = (low + high) // 2
    return PossibleChange(
        change, middle, history.held(history.peak) - middle, assumes, low, max(low, high)
    )


def _peak(history: History, parts: Sequence[tuple[Mask, float]], more: Floats | None = None) -> int:
    """Return the highest level with some blocks larger, or smaller, by a share."""
    level = np.append(history.start, history.level).astype(np.float64)
    for chosen, share in parts:
        start = int(history.blocks.bytes[history.blocks.live(BEFORE) & chosen].sum())
        level += share * np.append(start, history.level_of(chosen))
    return int((level if more is None else level + more).max())


def _copies(history: History, weights: Mask, gradients: Mask) -> Floats | None:
    """Return the most that copies of weights take before the first event and after each.

    Outside of the optimizer's step that is half of all weights, which are at least as large as
    their gradients. None if no weights are known.
    """
    start = int(history.blocks.bytes[history.blocks.live(BEFORE) & weights].sum())
    held = np.append(start, history.level_of(weights)).astype(np.float64)
    held = np.maximum(held, history.level_of(gradients).max(initial=0))
    if not held.any():
        return None
    direction = history.labels["direction"]
    allocated = history.blocks.allocated
    known = (allocated >= 0) & (direction.codes != NONE)
    code = np.full(len(held), NONE)
    code[allocated[known] + 1] = direction.codes[known]
    latest = np.maximum.accumulate(np.where(code == NONE, 0, np.arange(len(code))))
    copies: Floats = np.where(_is(code[latest], direction.names, "optimizer"), 0.0, held / 2)
    return copies


def _across(history: History) -> Mask:
    """Find the gradients that are live while the forward pass allocates what the peak holds."""
    category, direction = history.labels["category"], history.labels["direction"]
    gradients = _is(category.codes, category.names, "gradients")
    forward = history.blocks.allocated[_is(direction.codes, direction.names, "forward")]
    if history.peak not in forward:  # the peak is in another part of the step
        return np.zeros(len(gradients), bool)
    return gradients & history.blocks.live(history.peak)


# --- activation checkpointing ---------------------------------------------------------------------


def checkpoints(history: History, work: LayerWork | None) -> tuple[CheckpointedLayer, ...]:
    """Reckon with each layer that holds activations at the peak checkpointed, most saved first."""
    layer, category = history.labels["layer"], history.labels["category"]
    activations = _is(category.codes, category.names, "activations")
    live = history.blocks.live(history.peak)
    held = np.zeros(len(layer.names) + 1, np.int64)
    np.add.at(held, layer.codes[activations & live], history.blocks.bytes[activations & live])
    layers = []
    for path in _largest(layer.names, held):
        inside = np.array([_within(name, path) for name in (*layer.names, "")], bool)[layer.codes]
        layers.append(_checkpoint(history, path, activations & inside, work))
    worth = [each for each in layers if each.saved_bytes > 0]
    return tuple(sorted(worth, key=lambda each: -each.saved_bytes))


def _largest(names: Sequence[str], held: Ints) -> list[str]:
    """Give the paths inside of which most is held, those of containers included."""
    sums: dict[str, int] = {}
    for name, size in zip(names, held.tolist(), strict=False):
        for path in _outer(name) if size else ():
            sums[path] = sums.get(path, 0) + size
    return sorted(sums, key=lambda path: (-sums[path], path))[:_MOST_LAYERS]


def _outer(name: str) -> Iterator[str]:
    """Give a path and those that lead to it."""
    parts = name.split(".")
    yield from (".".join(parts[:end]) for end in range(1, len(parts) + 1))


def _within(name: str, path: str) -> bool:
    return name == path or name.startswith(f"{path}.")


def _checkpoint(
    history: History, path: str, chosen: Mask, work: LayerWork | None
) -> CheckpointedLayer:
    """Let a layer's activations live only in its own forward and backward pass."""
    blocks = history.blocks
    rows = np.flatnonzero(chosen & (blocks.allocated >= 0))
    rows = rows[np.argsort(blocks.allocated[rows], kind="stable")]
    passes = _passes(history, rows)
    outputs = rows[np.append(passes[1:] != passes[:-1], True)] if len(rows) else rows
    freed = np.zeros(len(blocks), bool)
    freed[rows] = True
    freed[outputs] = False  # what the next layer takes
    less = history.level_of(freed)
    less[_running(history, rows, passes)] = 0
    held = int(blocks.bytes[freed & blocks.live(history.peak)].sum())
    peak = max(int((history.level - less).max(initial=0)), history.start)
    flops, time_ns = work.forward(path) if work is not None else (None, None)
    return CheckpointedLayer(path, held, peak, history.held(history.peak) - peak, flops, time_ns)


def _passes(history: History, rows: Ints) -> Ints:
    """Number the forward passes of a layer: one ends where some of it was given back."""
    allocated, released = history.blocks.allocated[rows], history.blocks.released[rows]
    return np.searchsorted(np.sort(released), allocated, "right")


def _running(history: History, rows: Ints, passes: Ints) -> Mask:
    """Find the states in which a layer's forward or backward pass is at work."""
    change = np.zeros(len(history.time_ns) + 1, np.int64)
    last = len(history.time_ns)
    for number in np.unique(passes).tolist():
        own = rows[passes == number]
        for events in (history.blocks.allocated[own], history.blocks.released[own]):
            change[min(int(events.min()), last)] += 1
            change[min(int(events.max()) + 1, last)] -= 1
    running: Mask = np.cumsum(change)[:-1] > 0
    return running
