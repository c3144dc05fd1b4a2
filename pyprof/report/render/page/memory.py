"""Memory as pictures: over time, coloured by category, and what the peak holds as a treemap."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyprof.report.render.memory import size
from pyprof.report.render.page import render
from pyprof.report.render.text import duration

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyprof.report.analysis.held_memory import HeldBlock
    from pyprof.report.analysis.memory import DeviceMemory

WIDTH, HEIGHT, TREE_HEIGHT = 1000, 260, 320
_MARGIN = 8
"""Above the highest point."""
_LEAST_LABEL = (70, 16)
"""A rectangle that is smaller has no words in it."""
_CHARACTER = 6.5
"""Width of one, at the size of labels."""


@dataclass(frozen=True, slots=True)
class Area:
    """One category over time, upon those below it."""

    name: str
    place: int
    """Number of its colour."""
    path: str
    """Of an SVG."""
    at_peak: str


@dataclass(frozen=True, slots=True)
class Rectangle:
    """A part of the treemap."""

    x: float
    y: float
    width: float
    height: float
    place: int
    """Number of its colour."""
    label: str
    title: str
    """Shown while the pointer rests on it."""


@dataclass(frozen=True, slots=True)
class Picture:
    """What is drawn of a device."""

    device: DeviceMemory
    head: str
    areas: tuple[Area, ...]
    reserved: str
    """Path of the line of what is reserved; empty where nothing tells, or it is far above."""
    peak: tuple[float, float]
    peak_label: str
    span: str
    rectangles: tuple[Rectangle, ...]


def page_of(devices: Sequence[DeviceMemory]) -> str:
    """Draw all devices on one page that needs nothing else."""
    return render(
        "memory.html.j2",
        pictures=[picture(device) for device in devices],
        width=WIDTH,
        height=HEIGHT,
        tree_height=TREE_HEIGHT,
    )


def picture(device: DeviceMemory) -> Picture:
    """Draw a device."""
    rank = "" if device.rank is None else f"rank {device.rank}, "
    xs, scale = _scales(device)
    return Picture(
        device,
        f"{rank}{device.device}",
        tuple(_areas(device, xs, scale)),
        _reserved(device, xs, scale),
        _peak(device, xs, scale),
        f"peak {size(device.peak_bytes)}",
        "" if device.span_ns is None else duration(device.span_ns),
        tuple(_rectangles(device)),
    )


def _scales(device: DeviceMemory) -> tuple[list[float], float]:
    """Give where points stand from the left, and the height of a byte."""
    times = [point.time_ns for point in device.timeline]
    span = max(1, times[-1] - times[0]) if times else 1
    xs = [WIDTH * (time - times[0]) / span for time in times]
    return xs, (HEIGHT - _MARGIN) / max(1, device.peak_bytes)


def _areas(device: DeviceMemory, xs: Sequence[float], scale: float) -> Iterator[Area]:
    below = [0] * len(xs)
    at_peak = {group.name or "unknown": group.bytes for group in device.by["category"]}
    for place, name in enumerate(device.categories):
        above = [base + point.category_bytes[place]
                 for base, point in zip(below, device.timeline, strict=True)]  # fmt: skip
        if above != below:
            upper, lower = (_stepped(xs, [HEIGHT - y * scale for y in ys]) for ys in (above, below))
            path = f"M{' L'.join([*upper, *reversed(lower)])}Z"
            yield Area(name, place, path, size(at_peak.get(name, 0)))
        below = above


def _reserved(device: DeviceMemory, xs: Sequence[float], scale: float) -> str:
    points = [
        (x, point.reserved_bytes)
        for x, point in zip(xs, device.timeline, strict=True)
        if point.reserved_bytes is not None
    ]
    if not points or max(reserved for _, reserved in points) * scale > HEIGHT:
        return ""
    return "M" + " L".join(
        _stepped(*zip(*((x, HEIGHT - y * scale) for x, y in points), strict=True))
    )


def _stepped(xs: Sequence[float], ys: Sequence[float]) -> list[str]:
    """Write points so that each height lasts until the next."""
    points = [f"{xs[0]:.1f},{ys[0]:.1f}"]
    for x, before, y in zip(xs[1:], ys, ys[1:], strict=False):
        points += [f"{x:.1f},{before:.1f}", f"{x:.1f},{y:.1f}"]
    return points


def _peak(device: DeviceMemory, xs: Sequence[float], scale: float) -> tuple[float, float]:
    levels = [point.bytes for point in device.timeline]
    if device.peak_event < 0 or not levels:
        return 0.0, HEIGHT - device.start_bytes * scale
    place = levels.index(max(levels))
    return xs[place], HEIGHT - levels[place] * scale


# --- the treemap ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Frame:
    x: float
    y: float
    width: float
    height: float


def _rectangles(device: DeviceMemory) -> Iterator[Rectangle]:
    """Divide the peak by category, and each by its blocks; what is not listed is one part."""
    groups = [group for group in device.by["category"] if group.bytes]
    frames = divided([group.bytes for group in groups], _Frame(0, 0, WIDTH, TREE_HEIGHT))
    for group, frame in zip(groups, frames, strict=True):
        name = group.name or "unknown"
        place = device.categories.index(name)
        blocks = [block for block in device.largest if block.category == group.name]
        rest = group.bytes - sum(block.bytes for block in blocks)
        sizes = [*(block.bytes for block in blocks), *([rest] if rest > 0 else [])]
        titles = [_title(name, block) for block in blocks]
        titles += [f"{name}: {size(rest)} in smaller blocks"]
        labels = [*(_label(block) for block in blocks), f"{name}, smaller"]
        for part, label, title in zip(divided(sizes, frame), labels, titles, strict=False):
            yield Rectangle(part.x, part.y, part.width, part.height, place,
                            _fitting(label, part), title)  # fmt: skip


def _label(block: HeldBlock) -> str:
    line = (block.line or "").replace("\\", "/").rpartition("/")[2]
    return " ".join(filter(None, (block.op, line, size(block.bytes))))


def _title(category: str, block: HeldBlock) -> str:
    parts = (category, size(block.bytes), block.op, block.layer, block.line, block.evidence)
    return ", ".join(part for part in parts if part)


def _fitting(label: str, frame: _Frame) -> str:
    if frame.width < _LEAST_LABEL[0] or frame.height < _LEAST_LABEL[1]:
        return ""
    most = int(frame.width / _CHARACTER) - 1
    return label if len(label) <= most else f"{label[: most - 1]}..."


def divided(sizes: Sequence[float], frame: _Frame) -> list[_Frame]:
    """Divide a frame by sizes, the largest first, into parts that are as square as can be.

    Row by row along the shorter side: a row takes another part as long as its worst gets no worse.
    """
    parts: list[_Frame] = []
    total = sum(sizes)
    place = 0
    while place < len(sizes) and total > 0:
        short = min(frame.width, frame.height)
        area = frame.width * frame.height / total
        end = place + 1
        while end < len(sizes) and _worst(sizes[place : end + 1], area, short) <= _worst(
            sizes[place:end], area, short
        ):
            end += 1
        row = sizes[place:end]
        laid, frame = _row(row, sum(row) / total, frame)
        parts += laid
        total -= sum(row)
        place = end
    return parts


def _worst(row: Sequence[float], area: float, short: float) -> float:
    """Give the largest ratio of sides in a row."""
    total = sum(row) * area
    if not total or not short:
        return float("inf")
    ratios = [size_ * area * short**2 / total**2 for size_ in row if size_]
    return max(max(ratio, 1 / ratio) for ratio in ratios)


def _row(row: Sequence[float], share: float, frame: _Frame) -> tuple[list[_Frame], _Frame]:
    """Lay a row along the shorter side; give its parts, and the frame that is left."""
    total, at = sum(row), 0.0
    parts = []
    if frame.width >= frame.height:
        thick = frame.width * share
        for size_ in row:
            length = frame.height * size_ / total
            parts.append(_Frame(frame.x, frame.y + at, thick, length))
            at += length
        return parts, _Frame(frame.x + thick, frame.y, frame.width - thick, frame.height)
    thick = frame.height * share
    for size_ in row:
        length = frame.width * size_ / total
        parts.append(_Frame(frame.x + at, frame.y, length, thick))
        at += length
    return parts, _Frame(frame.x, frame.y + thick, frame.width, frame.height - thick)
