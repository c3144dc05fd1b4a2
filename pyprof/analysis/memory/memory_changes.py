"""What would move the peak: the level without some blocks, or with smaller ones, at every moment.

Each change applies to the whole recording, not to the peak alone: the new peak may be elsewhere.
"""

from __future__ import annotations

import re
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np

from pyprof.allocations.history import BEFORE, Labels
from pyprof.answers.memory_answer import CheckpointedLayer, PossibleChange
from pyprof.arrays import MISSING, sum_if_known

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyprof.allocations.history import History
    from pyprof.analysis.memory.memory_time import LayerWork
    from pyprof.arrays import Floats, Int64Array, Mask

_MIN_SHARE = 0.01
"""Changes that move the peak by less are not worth a line."""
_MAX_LAYERS = 30
_NUMBERED_CLASS = re.compile(r"[A-Z]\w*_\d+")
"""A module as torch.profiler names it, `Block_0`: the name does not tell which are inside it."""


def possible_changes(history: History) -> tuple[PossibleChange, ...]:
    """List what would lower the peak, the largest effect first."""
    category = history.labels["category"]
    temporaries = _mask(category, "temporaries")
    during_step = temporaries & _mask(history.labels["direction"], "optimizer")
    scaling = _mask(category, "activations") | (temporaries & ~during_step)
    reckoned = [
        _change(history, "an optimizer that needs no temporaries (fused=True)", during_step, 1.0,
                "the fused optimizer updates in place"),
        _half_batch(history, scaling),
        _change(history, "optimizer state of half the width",
                _mask(category, "optimizer state"), 0.5,
                "the state is float32, and the optimizer takes bfloat16"),
        _change(history, "gradients that are freed before the forward pass",
                _gradients(history), 1.0,
                "zero_grad(set_to_none=True) comes before the forward pass"),
    ]  # fmt: skip
    reckoned += bfloat16(history)
    least = _MIN_SHARE * history.held(history.peak)
    worth = [each for each in reckoned if _largest_move(history, each) >= least]
    return tuple(sorted(worth, key=lambda each: -each.saved_bytes))


def _largest_move(history: History, change: PossibleChange) -> int:
    """Return how much a change may move the peak: of an interval, the end that is further away."""
    if change.low_bytes is None or change.high_bytes is None:
        return change.saved_bytes
    peak = history.held(history.peak)
    return max(peak - change.low_bytes, change.high_bytes - peak)


def _mask(labels: Labels, *names: str) -> Mask:
    """Mask of the blocks that have one of these names."""
    codes = [code for code, name in enumerate(labels.names) if name in names]
    return np.asarray(np.isin(labels.codes, codes))


def _change(
    history: History, change: str, chosen: Mask, share: float, assumes: str
) -> PossibleChange:
    """Predict the peak with the chosen blocks smaller by a share."""
    less = (history.levels_of(chosen) * share).astype(np.int64)
    peak = int((np.append(history.start, history.level) - less).max())
    return PossibleChange(
        change=change,
        peak_bytes=peak,
        saved_bytes=history.held(history.peak) - peak,
        assumes=assumes,
    )


def _half_batch(history: History, scaling: Mask) -> PossibleChange:
    """Predict the peak of half the batch; what has no category may be part of it, as inputs are."""
    name, assumes = "half the batch", "activations and temporaries scale with the batch"
    low = _peak(history, [(scaling | _unknown(history), -0.5)])
    high = _peak(history, [(scaling, -0.5)])
    if not low < high < history.held(history.peak):
        return _change(history, name, scaling, 0.5, assumes)
    return _interval(history, name, low, high, f"{assumes}, perhaps the unknown, too")


def _unknown(history: History) -> Mask:
    """Mask of the blocks of no category that were allocated while events were recorded."""
    known = history.labels["category"].codes != MISSING
    return np.asarray(~known & (history.blocks.allocated != BEFORE))


_KEPT_FLOAT32 = 0.25
"""The most of a bfloat16 model's activations that stays float32: norms and softmax."""


def bfloat16(history: History) -> list[PossibleChange]:
    """Predict the peak under autocast, and of the model in bfloat16; nothing if 16 bits are in use.

    Autocast computes products in bfloat16 and norms, softmax and losses in float32. It leaves the
    weights as they are, and copies them; the copies live until it ends, and in the graph until the
    backward pass is done.
    """
    if history.half_precision:
        return []
    category = history.labels["category"]
    weights = _mask(category, "parameters", "gradients", "optimizer state")
    activations, workspace = _mask(category, "activations"), _mask(category, "workspace")
    older = (history.blocks.allocated == BEFORE) & (category.codes == MISSING)
    direction = history.labels["direction"]
    passing = activations | (_mask(direction, "forward", "backward") & ~(weights | workspace))
    changes = []
    copies = _copies(history, _mask(category, "parameters") | older, _mask(category, "gradients"))
    if copies is not None and passing.any():
        low = _peak(history, [(passing | _unknown(history), -0.5)])
        high = _peak(history, [], copies)
        changes.append(
            _interval(history, "autocast to bfloat16", low, high,
                      "everything is float32 now; weights stay so; some or all are copied")
        )  # fmt: skip
    low = _peak(history, [(~workspace, -0.5)])
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
        change=change,
        peak_bytes=middle,
        saved_bytes=history.held(history.peak) - middle,
        assumes=assumes,
        low_bytes=low,
        high_bytes=max(low, high),
    )


def _peak(history: History, parts: Sequence[tuple[Mask, float]], more: Floats | None = None) -> int:
    """Return the highest level with some blocks larger, or smaller, by a share."""
    level = np.append(history.start, history.level).astype(np.float64)
    for chosen, share in parts:
        level += share * history.levels_of(chosen)
    return int((level if more is None else level + more).max())


def _copies(history: History, weights: Mask, gradients: Mask) -> Floats | None:
    """Return the most that copies of weights take before the first event and after each.

    Outside of the optimizer's step that is half of all weights, which are at least as large as
    their gradients. None if no weights are known.
    """
    held = history.levels_of(weights).astype(np.float64)
    held = np.maximum(held, history.levels_of(gradients)[1:].max(initial=0))
    if not held.any():
        return None
    direction = history.labels["direction"]
    allocated = history.blocks.allocated
    known = (allocated >= 0) & (direction.codes != MISSING)
    code = np.full(len(held), MISSING)
    code[allocated[known] + 1] = direction.codes[known]
    latest = np.maximum.accumulate(np.where(code == MISSING, 0, np.arange(len(code))))
    in_optimizer = _mask(Labels(code[latest], direction.names), "optimizer")
    copies: Floats = np.where(in_optimizer, 0.0, held / 2)
    return copies


def _gradients(history: History) -> Mask:
    """Find the gradients that are live at the peak, if the peak is in a forward pass."""
    category, direction = history.labels["category"], history.labels["direction"]
    gradients = _mask(category, "gradients")
    forward = history.blocks.allocated[_mask(direction, "forward")]
    if history.peak not in forward:  # the peak is in another part of the step
        return np.zeros(len(gradients), bool)
    return gradients & history.blocks.live(history.peak)


def checkpoints(history: History, work: LayerWork | None) -> tuple[CheckpointedLayer, ...]:
    """Predict what checkpointing layers that hold activations at the peak saves, the largest first.

    That is each layer, all blocks of a list at once, such as `h.0` to `h.11`, and all lists.
    """
    layer, category = history.labels["layer"], history.labels["category"]
    activations = _mask(category, "activations")
    live = history.blocks.live(history.peak)
    held = np.zeros(len(layer.names) + 1, np.int64)
    np.add.at(held, layer.codes[activations & live], history.blocks.bytes[activations & live])
    chosen = [(path, [path]) for path in _largest_paths(layer.names, held)]
    lists = _lists(layer.names, held)
    chosen += [(_all_blocks_of(prefix), blocks) for prefix, blocks in lists.items()]
    if len(lists) > 1:
        chosen.append(
            (", ".join(map(_all_blocks_of, lists)), [*chain.from_iterable(lists.values())])
        )
    layers = [_checkpoint(history, name, paths, activations, work) for name, paths in chosen]
    worth = [each for each in layers if each.saved_bytes > 0]
    return tuple(sorted(worth, key=lambda each: -each.saved_bytes))


def _lists(names: Sequence[str], held: Int64Array) -> dict[str, list[str]]:
    """Group blocks that hold activations by the path of the list of modules they belong to."""
    lists: dict[str, dict[str, None]] = {}
    for name, size in zip(names, held.tolist(), strict=False):
        parts = name.split(".")
        number = next((at for at, part in enumerate(parts) if part.isdecimal()), None)
        if size and number is not None:
            block = ".".join(parts[: number + 1])
            lists.setdefault(".".join(parts[:number]), {})[block] = None
    return {prefix: [*blocks] for prefix, blocks in lists.items() if len(blocks) > 1}


def _all_blocks_of(prefix: str) -> str:
    return f"{prefix}.*" if prefix else "*"


def _largest_paths(names: Sequence[str], held: Int64Array) -> list[str]:
    """The paths inside which most is held, those of containers included."""
    sums: dict[str, int] = {}
    for name, size in zip(names, held.tolist(), strict=False):
        for path in _prefixes(name) if size else ():
            sums[path] = sums.get(path, 0) + size
    paths = [path for path in sums if not _NUMBERED_CLASS.fullmatch(path)]
    return sorted(paths, key=lambda path: (-sums[path], path))[:_MAX_LAYERS]


def _prefixes(name: str) -> Iterator[str]:
    """Yield a path and all its prefixes."""
    parts = name.split(".")
    yield from (".".join(parts[:end]) for end in range(1, len(parts) + 1))


def _checkpoint(
    history: History, name: str, paths: Sequence[str], activations: Mask, work: LayerWork | None
) -> CheckpointedLayer:
    """Predict the peak if layers keep activations only during their own passes."""
    blocks = history.blocks
    freed = np.zeros(len(blocks), bool)
    change = np.zeros(len(history.time_ns) + 1, np.int64)
    for rows in _by_path(history, paths, activations):
        inside, saved = _between_passes(history, rows)
        freed[inside] = True
        change += saved
    held = int(blocks.bytes[freed & blocks.live(history.peak)].sum())
    level = history.level - np.cumsum(change)[:-1]
    peak = max(int(level.max(initial=0)), history.start)
    passes = None if work is None else [work.forward(path) for path in paths]
    return CheckpointedLayer(
        layer=name,
        block_count=len(paths),
        held_bytes=held,
        peak_bytes=peak,
        saved_bytes=history.held(history.peak) - peak,
        recomputed_flops=None if passes is None else sum_if_known([flops for flops, _ in passes]),
        recomputed_ns=None if passes is None else sum_if_known([time_ns for _, time_ns in passes]),
    )


def _by_path(history: History, paths: Sequence[str], activations: Mask) -> list[Int64Array]:
    """List the activations of each layer and the layers inside it, in the order of allocation."""
    layer, allocated = history.labels["layer"], history.blocks.allocated
    number = {path: index for index, path in enumerate(paths)}
    of_name = [
        next((number[path] for path in _prefixes(name) if path in number), MISSING)
        for name in layer.names
    ]
    of_block = np.array([*of_name, MISSING], np.int64)[layer.codes]
    rows = np.flatnonzero(activations & (allocated >= 0) & (of_block != MISSING))
    rows = rows[np.lexsort((allocated[rows], of_block[rows]))]
    return np.split(rows, np.flatnonzero(np.diff(of_block[rows])) + 1)


def _between_passes(history: History, rows: Int64Array) -> tuple[Int64Array, Int64Array]:
    """Return blocks that a checkpointed layer does not keep, and the change in free bytes by event.

    They are free from the end of a forward pass to the beginning of its backward pass, which is
    when the pass's first block is released. Its last block is kept: the next layer's input.
    """
    blocks, change = history.blocks, np.zeros(len(history.time_ns) + 1, np.int64)
    if not len(rows):
        return rows, change
    # number the forward passes of a layer: a pass ends when some of its memory is freed
    allocated, released = history.blocks.allocated[rows], history.blocks.released[rows]
    passes = np.searchsorted(np.sort(released), allocated, "right")
    last = np.append(passes[1:] != passes[:-1], True)
    first = np.flatnonzero(np.append(True, last[:-1]))
    sizes = np.add.reduceat(np.where(last, 0, blocks.bytes[rows]), first)
    done = blocks.allocated[rows[last]] + 1
    again = np.minimum.reduceat(blocks.released[rows], first)
    np.add.at(change, done, sizes)
    np.add.at(change, np.maximum(again, done), -sizes)
    return rows[~last], change
