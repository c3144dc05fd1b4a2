"""Steps without any mark of their own: the period with which kernels, or ops on a CPU, repeat."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pyprof import schema
from pyprof.records.records import number_combinations, number_lists

if TYPE_CHECKING:
    from pyprof.arrays import Int64Array
    from pyprof.records.records import Records


_TIMES = 3
"""Fewer repetitions prove nothing."""
_ALIKE = 0.9
"""Share of the kernels that must be what they were a period before."""
_NEARLY = 0.98
"""A shorter period counts only if it fits nearly as well: a layer repeats within a step."""
_CANDIDATES = 50
_MIN_CPU_STEP_NS = 1_000_000
"""What repeats faster on a CPU is a turn of a loop over small ops, such as one over rows."""


def repetition(records: Records, launched: Int64Array) -> tuple[str, Int64Array, Int64Array] | None:
    """Find what repeats: its name, and its starts and ends in ns by launch; None if nothing does.

    Only the kernels of the busiest device and stream, or the ops of a CPU's busiest thread, are
    compared, in the order of their launch. What a CUDA graph replays is one launch, whether
    recorded as one row or kernel by kernel: it repeats as a whole. A repetition that a pause of the
    profiler cuts is left out.
    """
    rows = _busiest(records)
    rows = rows[np.argsort(launched[rows], kind="stable")]
    replay = records.numpy("replay")[rows]
    # the first position of each launch: a row outside graphs, or the rows of one replay
    begins = np.flatnonzero((replay < 0) | (np.diff(replay, prepend=-2) != 0))
    # layers of a model may run the same kernels: what repeats is known by its layer, too
    name, layer = records.dictionary("kLongName"), records.dictionary("layer")
    number = number_combinations(name.index[rows], number_lists(layer)[rows])
    code = _codes(number.astype(np.int64), begins)
    size = np.diff(begins, append=len(rows))
    of_graph = (replay >= 0) | records.of_kind(schema.GRAPH)[rows]
    mostly_graphs = 2 * int(of_graph.sum()) > len(rows)
    period = _period(code, size, least=1 if mostly_graphs else 2)
    if period is None:
        return None
    rows = rows[begins]
    first, count = _longest_run(code, size, period)
    if count < _TIMES * period:
        return None
    moment = launched[rows]
    pause = np.diff(moment, prepend=moment[0])[first : first + count // period * period]
    if first == 0:
        pause[0] = pause[period]  # nothing is known about what ran before the first
    phase = int(np.median(pause.reshape(-1, period), axis=0).argmax())
    cuts = np.arange(first + phase, first + count + 1, period)
    edges = np.append(moment, moment[-1] + 1)[cuts]
    window = records.numpy("window", 0)[rows]
    uncut = window[cuts[:-1]] == window[cuts[1:] - 1]
    uncut &= edges[:-1] < edges[1:]  # repetitions within one graph launch are layers of a step
    if uncut.sum() < _TIMES:
        return None
    count = int(np.median(np.add.reduceat(size, cuts[:-1])))
    on_cpu = records.of_kind(schema.CPU)[rows].any()
    # without layers, the equal layers of one pass look like the steps of a loop
    in_layers = layer.matches()[rows].any()
    if on_cpu and not (in_layers and np.median(np.diff(edges)[uncut]) >= _MIN_CPU_STEP_NS):
        return None
    what = "ops" if on_cpu else "kernels"
    return f"repetition of {count} {what}", edges[:-1][uncut], edges[1:][uncut]


def _busiest(records: Records) -> Int64Array:
    rows = np.flatnonzero(records.of_kind(schema.KERNEL, schema.GRAPH, schema.CPU))
    keys = np.stack([records.numpy(name)[rows] for name in ("pid", "device", "stream")])
    _, lane = np.unique(keys, axis=1, return_inverse=True)
    lane = lane.reshape(-1)
    return rows[lane == np.bincount(lane).argmax()] if len(rows) else rows


def _codes(name: Int64Array, first: Int64Array) -> Int64Array:
    """Number launches by the names of their kernels, in their order."""
    if len(first) == len(name):
        return name
    index = np.arange(len(name)) - np.repeat(first, np.diff(first, append=len(name)))
    powers = np.cumprod(np.full(int(index.max()) + 1, _BASE, np.uint64))
    digests = np.add.reduceat((name.astype(np.uint64) + np.uint64(1)) * powers[index], first)
    return np.asarray(np.unique(digests, return_inverse=True)[1]).astype(np.int64)


_BASE = 0x9E3779B97F4A7C15
"""Odd, so that multiplying by its powers in 64 bits keeps different numbers different."""


def _period(code: Int64Array, size: Int64Array, least: int = 2) -> int | None:
    """Find the period that fits best; if several fit about as well, the shortest."""
    fits = {period: _alike(code, size, period) for period in _candidates(code, least)}
    best = max(fits.values(), default=0.0)
    if best < _ALIKE:
        return None
    return min(period for period, fit in fits.items() if fit >= best * _NEARLY)


def _candidates(code: Int64Array, least: int) -> list[int]:
    """The distances, from `least` on, at which the rarest repeated kernels recur."""
    _, inverse, count = np.unique(code, return_inverse=True, return_counts=True)
    order = np.argsort(inverse, kind="stable")
    ends = np.cumsum(count)
    periods = set()
    rarest = [name for name in np.argsort(count, kind="stable") if count[name] >= _TIMES]
    for name in rarest[:_CANDIDATES]:
        indices = order[ends[name] - count[name] : ends[name]]
        distances, times = np.unique(np.diff(indices), return_counts=True)
        periods |= {int(distances[times.argmax()]), int(np.median(np.diff(indices)))}
    return sorted(period for period in periods if least <= period <= len(code) // _TIMES)


def _alike(code: Int64Array, size: Int64Array, period: int) -> float:
    """The share of kernels that equal the kernel a period before.

    What runs before the loop does not count: the first half of the kernels may differ.
    """
    same, kernels = code[period:] == code[:-period], size[period:]
    tail = 2 * np.cumsum(kernels) > kernels.sum()
    return float(np.average(same[tail], weights=kernels[tail])) if len(same) else 0.0


def _longest_run(code: Int64Array, size: Int64Array, period: int) -> tuple[int, int]:
    """Find the stretch of whole periods, resembling the one before, that has most kernels."""
    same = (code[period:] == code[:-period]).astype(np.int64)
    window = np.cumsum(np.concatenate([[0], same]))
    alike = window[period:] - window[:-period] >= _ALIKE * period
    edges = np.flatnonzero(np.diff(np.concatenate([[0], alike.astype(np.int64), [0]])))
    if not len(edges):
        return 0, 0
    start, end = edges[::2], edges[1::2]
    kernels = np.append(0, np.cumsum(size))
    index = int((kernels[end] - kernels[start]).argmax())
    return int(start[index]), int(end[index] - start[index]) - 1 + 2 * period
