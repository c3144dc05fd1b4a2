"""What is held at the peak: blocks, and groups of them."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pyprof.allocations.history import BEFORE
from pyprof.analysis.memory.growth import growth
from pyprof.answers.memory_answer import HeldBlock, HeldMemory, HeldStack
from pyprof.answers.summary_answer import MemoryPeak
from pyprof.arrays import MISSING
from pyprof.records.records import totals

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pyprof.allocations.history import History, Labels, RecordedDevice
    from pyprof.allocations.read import Recorded
    from pyprof.arrays import Floats, Int64Array, Mask


class Moment(NamedTuple):
    """A chosen moment: the state after the last event until then, or after an event."""

    time_ns: float | None
    """Since the first event; None if an event is chosen."""
    event_id: int = -1
    """Number of the event, from 0; -1: before the first."""


def grouped(history: History, state: int) -> dict[str, tuple[HeldMemory, ...]]:
    """Sum up what is live in a state by each label of the blocks, and by size."""
    byte_ns = _byte_ns(history)
    live = history.blocks.live(state)
    given_back = history.given_back_by
    groups = {
        key: _groups(history, live, labels.codes, labels.names, byte_ns, given_back.get(key))
        for key, labels in history.labels.items()
    }
    sizes, codes = np.unique(history.blocks.bytes, return_inverse=True)
    names = [str(size) for size in sizes.tolist()]
    return groups | {"size": _groups(history, live, codes, names, byte_ns)}


def _byte_ns(history: History) -> Floats | None:
    """Bytes times ns of each block, as far as it was recorded."""
    if (since := history.since_first_ns) is None:
        return None
    blocks = history.blocks
    moments = np.append(since, since[-1])
    begun = np.where(blocks.allocated == BEFORE, 0, moments[blocks.allocated])
    ended = np.where(blocks.released == BEFORE, 0, moments[blocks.released])
    held: Floats = blocks.bytes.astype(np.float64) * (ended - begun)
    return held


def _groups(
    history: History,
    live: Mask,
    codes: Int64Array,
    names: Sequence[str],
    byte_ns: Floats | None = None,
    given_back_by: Labels | None = None,
) -> tuple[HeldMemory, ...]:
    """Sum up blocks by code, the one with most live bytes first."""
    blocks = history.blocks
    rows = len(names) + 1  # the last for what is unknown
    index = np.where(codes == MISSING, rows - 1, codes)
    held = totals(index, blocks.bytes * live, rows)
    made = totals(index, blocks.bytes * (blocks.allocated != BEFORE), rows)
    counts = np.bincount(index, live, rows).astype(np.int64)
    lasted = np.bincount(index, byte_ns, rows) if byte_ns is not None else None
    net = None
    if given_back_by is not None:
        freed = np.where(given_back_by.codes == MISSING, rows - 1, given_back_by.codes)
        inside = (blocks.released != BEFORE) & (blocks.released < len(history.time_ns))
        net = made - totals(freed, blocks.bytes * inside, rows)
    used = np.flatnonzero(np.bincount(index, minlength=rows) | (net if net is not None else 0))
    order = used[np.lexsort((-made[used], -held[used]))]
    return tuple(
        HeldMemory(
            name=names[row] if row < len(names) else None,
            bytes=int(held[row]),
            block_count=int(counts[row]),
            allocated_bytes=int(made[row]),
            net_bytes=int(net[row]) if net is not None else None,
            byte_ns=float(lasted[row]) if lasted is not None else None,
        )
        for row in order.tolist()
    )


def held_blocks(history: History, state: int, most: int | None = None) -> Iterator[HeldBlock]:
    """Yield the blocks that are live in a state, or the `most` largest, the largest first."""
    rows = np.flatnonzero(history.blocks.live(state))
    rows = rows[np.argsort(-history.blocks.bytes[rows], kind="stable")][:most]
    names = ("category", "evidence", "layer", "line", "op", "direction")
    texts = {name: history.labels[name].at(rows) for name in names}
    age: list[int | None] = [None] * len(rows)
    if (since := history.since_first_ns) is not None and state >= 0:
        allocated = history.blocks.allocated[rows]
        ages = since[state] - since[np.maximum(allocated, 0)]
        age = [None if at == BEFORE else int(ns)
               for at, ns in zip(allocated.tolist(), ages.tolist(), strict=True)]  # fmt: skip
    sizes = history.blocks.bytes[rows].tolist()
    yield from itertools.starmap(HeldBlock, zip(sizes, *texts.values(), age, strict=True))


def held_stacks(device: RecordedDevice, state: int) -> tuple[HeldStack, ...]:
    """Sum up what is live in a state by call stack and op, the largest first."""
    history = device.history
    rows = np.flatnonzero(history.blocks.live(state))
    stacks, ops = device.call_stacks(rows), history.labels["op"]
    pairs, index = np.unique(np.stack([stacks.codes, ops.codes[rows]]), axis=1, return_inverse=True)
    index = index.reshape(-1)
    held = totals(index, history.blocks.bytes[rows], pairs.shape[1])
    counts = np.bincount(index, minlength=pairs.shape[1])
    sums: dict[tuple[str, ...], tuple[int, int]] = {}
    for stack, op, size, count in zip(*pairs.tolist(), held.tolist(), counts.tolist(), strict=True):
        frames = stacks.names[stack].split("\n") if stack != MISSING else []
        frames += [ops.names[op]] if op != MISSING else []
        before = sums.get(tuple(frames), (0, 0))
        sums[tuple(frames)] = (before[0] + size, before[1] + count)
    listed = [HeldStack(frames, *held) for frames, held in sums.items()]
    return tuple(sorted(listed, key=lambda each: (-each.bytes, each.frames)))


def highest_peak(recordings: Iterable[Recorded]) -> MemoryPeak | None:
    """Describe the highest peak of any device of some recordings; None without devices."""
    devices = [(each.rank, device) for each in recordings for device in each.devices]
    if not devices:
        return None
    rank, device = max(devices, key=lambda each: each[1].history.held(each[1].history.peak))
    history, peak = device.history, device.history.peak
    live = history.blocks.live(peak)
    categories, lines = (
        {
            group.name or "": group.bytes
            for group in _groups(history, live, labels.codes, labels.names)
            if group.bytes
        }
        for labels in (history.labels["category"], history.labels["line"])
    )
    grown = growth(history, *device.steps)
    leak = grown.leaks[0] if grown is not None and grown.leaks else None
    return MemoryPeak(
        device=history.device,
        rank=rank,
        peak_bytes=history.held(peak),
        peak_time_ns=history.time_of(peak),
        peak_reserved_bytes=history.reserved_in(peak),
        categories_bytes=categories,
        lines_bytes=lines,
        growing_line=None if leak is None else leak.line,
        growth_bytes_per_step=None if leak is None else leak.bytes_per_step,
    )
