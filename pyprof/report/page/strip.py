"""Steps as strips of time: how busy the GPU is in each short bin, and with what."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pyprof.report.intervals import complement
from pyprof.report.text import duration

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pyprof.report.intervals import Intervals
    from pyprof.report.overview import Overview
    from pyprof.report.source import Source
    from pyprof.report.steps import Steps
    from pyprof.report.timeline import DeviceTime

    Ints = NDArray[np.int64]
    Floats = NDArray[np.float64]

_BINS = 600
_MOST_ROWS = 24
_MOST_STEPS = 12
_MOST_DEVICES = 8
_SLOWEST = 3
_SHADES = 10
_SORTS = ("compute", "communication", "copy")


@dataclass(frozen=True, slots=True)
class Strip:
    """Rows of bins; bins in which nothing ran are not there."""

    labels: list[str]
    length_ns: list[int]
    row: list[int]
    left_ns: Floats
    """From the row's start."""
    right_ns: Floats
    busy: Floats
    """Share of the bin, 0 to 1."""
    sort: list[str]
    """What most of the busy time was."""
    steps_left_out: int

    @property
    def longest_ns(self) -> int:
        """The longest row."""
        return max(self.length_ns)


def strip(source: Source, found: Overview) -> Strip | None:
    """Cut some steps of each device into bins; None where the records hold no times."""
    if found.timeline is None:
        return None
    devices = found.timeline.devices[:_MOST_DEVICES]
    windows, left_out = _windows(source, found, min(_MOST_STEPS, _MOST_ROWS // len(devices)))
    labels, lengths, parts = [], [], []
    for device in devices:
        for name, start, end in windows or _recordings(device):
            labels.append(_label(device, name, several=len(devices) > 1))
            lengths.append(end - start)
            parts.append(_bins(device, start, end))
    row = np.repeat(np.arange(len(parts)), [len(part[0]) for part in parts])
    left, right, busy, sort = (
        np.concatenate([part[place] for part in parts]) for place in range(4)
    )
    names = [_SORTS[place] for place in sort.astype(int).tolist()]
    return Strip(labels, lengths, row.tolist(), left, right, busy, names, left_out)


def _label(device: DeviceTime, name: str, *, several: bool) -> str:
    owner = f"rank {device.rank}" if device.rank is not None else f"process {device.pid}"
    return f"GPU {device.device}, {owner}: {name}" if several else name


def _recordings(device: DeviceTime) -> list[tuple[str, int, int]]:
    """Give what was recorded without a pause, where there are no steps to show."""
    recorded = complement(device.paused, device.start_ns, device.end_ns)
    bounds = list(zip(recorded.start.tolist(), recorded.end.tolist(), strict=True))
    if device.windows == 1:
        return [("all", device.start_ns, device.end_ns)]
    return [(f"window {place}", *pair) for place, pair in enumerate(bounds[:_MOST_STEPS])]


def _windows(source: Source, found: Overview, most: int) -> tuple[list[tuple[str, int, int]], int]:
    """Choose steps: the first, the slowest, and others evenly apart; give their GPU time."""
    steps = found.steps
    first, last = found.chosen or (0, len(steps))
    records = source.table.records
    ended = np.full(len(steps), np.iinfo(np.int64).min)
    inside = np.flatnonzero(steps.of_row >= 0)
    np.maximum.at(ended, steps.of_row[inside], records.numpy("end")[inside])
    all_steps = [step for step in range(first, last) if ended[step] > 0 < steps.duration_ns[step]]
    ended = np.maximum.accumulate(ended)
    begun = ended - steps.duration_ns  # so that waiting for the first kernel is the step's own
    chosen = _some(all_steps, steps.duration_ns, most)
    return [
        (f"step {step} ({_spelt(steps, step)})", int(begun[step]), int(ended[step]))
        for step in chosen
    ], len(all_steps) - len(chosen)


def _spelt(steps: Steps, step: int) -> str:
    return duration(int(steps.duration_ns[step]))


def _some(steps: list[int], duration_ns: Ints, most: int) -> list[int]:
    if len(steps) <= most:
        return steps
    slowest = sorted(steps, key=lambda step: -int(duration_ns[step]))[: min(_SLOWEST, most - 1)]
    apart = np.linspace(0, len(steps) - 1, most - len(slowest)).astype(int)
    return sorted({*slowest, *(steps[place] for place in apart.tolist())})


def _bins(device: DeviceTime, start: int, end: int) -> tuple[Floats, Floats, Floats, Floats]:
    edges = np.linspace(start, end, _BINS + 1)
    parts = np.stack([np.diff(_elapsed(part, edges))
                      for part in (device.compute, device.communication, device.copy)])  # fmt: skip
    busy = np.diff(_elapsed(device.busy, edges)) / np.maximum(np.diff(edges), 1e-9)
    sort = parts.argmax(axis=0).astype(float)
    left, right = edges[:-1] - start, edges[1:] - start
    kept = busy > 0
    return _merged(left[kept], right[kept], np.minimum(busy[kept], 1.0), sort[kept])


def _merged(
    left: Floats, right: Floats, busy: Floats, sort: Floats
) -> tuple[Floats, Floats, Floats, Floats]:
    """Join neighbours that look alike; how long they are busy in all stays."""
    if not len(left):
        return left, right, busy, sort
    shade = np.round(busy * _SHADES)
    apart = (left[1:] != right[:-1]) | (np.diff(shade) != 0) | (np.diff(sort) != 0)
    first = np.concatenate([[0], np.flatnonzero(apart) + 1])
    last = np.concatenate([first[1:], [len(left)]]) - 1
    length = right[last] - left[first]
    return (
        left[first],
        right[last],
        np.add.reduceat(busy * (right - left), first) / length,
        sort[first],
    )


def _elapsed(busy: Intervals, at: Floats) -> Floats:
    """Give how much of a set of time lies before each instant."""
    if not len(busy):
        return np.zeros(len(at))
    before = np.concatenate([[0], np.cumsum(busy.end - busy.start)])
    bounds = np.stack([busy.start, busy.end], axis=1).reshape(-1).astype(float)
    amounts = np.stack([before[:-1], before[1:]], axis=1).reshape(-1).astype(float)
    return np.asarray(np.interp(at, bounds, amounts))
