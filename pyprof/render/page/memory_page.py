"""Memory as pictures: over time by category, and what the peak holds as treemap and flame graph.

The report's page shows the device that peaks highest, `pyprof memory -o x.html` all of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from pyprof.quantities import counted, duration
from pyprof.render.page import render
from pyprof.render.page.figures import MAX_BOXES, MIN_WIDTH, SHARED_CLOCK
from pyprof.render.page.tables import (
    PATH,
    Cell,
    amount,
    of_numbers,
    of_texts,
    rate,
    share,
    sortable,
    text,
    without_folders,
)
from pyprof.render.text import memory_text as words
from pyprof.render.text.formatting import short_line
from pyprof.render.text.memory_text import size

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from pyprof.answers.memory_answer import (
        DeviceMemory,
        HeldMemory,
        HeldStack,
        Memory,
    )
    from pyprof.answers.page.report_answer import Clock
    from pyprof.render.page.tables import Column, Sortable

_COLOURS = {
    "parameters": "#4e86c0", "gradients": "#d98b3a", "optimizer state": "#c9a93f",
    "activations": "#59a14f", "temporaries": "#c76a7d", "workspace": "#a874b8",
    "autocast copies": "#6fb0b8", "unknown": "#9aa0a6",
}  # fmt: skip
_MAX_ROWS = 200
_TREE = (1000.0, 320.0)
"""Width and height in which the treemap's parts are made as square as possible."""

Key: TypeAlias = "Callable[..., str | None]"
"""Returns what a click on a line, an op or a layer selects; None if nothing can be selected."""


def page_of(answer: Memory) -> str:
    """Draw all devices on one page that needs nothing else."""
    return render(
        "memory.html.j2",
        title="Memory",
        pictures=[picture(device) for device in answer.devices],
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """What is shown of a device."""

    head: str
    sentences: tuple[str, ...]
    course: Mapping[str, Any] | None
    """The figure of memory over time; None without events."""
    treemap: Mapping[str, Any] | None
    """The figure of the peak; None if it holds nothing."""
    flame: Mapping[str, Any] | None
    """The figure of call stacks; None if no stack is known."""
    categories: Sequence[tuple[str, str, str]]
    """Name, colour, and bytes at the peak."""
    tables: Sequence[tuple[str, Sortable]]
    """What the peak holds, by line and by layer, where these are known."""
    changes: Sequence[Sequence[str]]
    checkpoints: Sequence[Sequence[str]]


def picture(
    device: DeviceMemory, clock: Clock | None = None, key: Key = lambda **_: None
) -> Picture:
    """Draw a device, on the timeline's clock if the peak is in its time; `key` makes selections."""
    at_peak = {group.name or "unknown": group.bytes for group in device.by["category"]}
    return Picture(
        head=words.device_name(device),
        sentences=tuple(map(without_folders, words.sentences(device))),
        course=_course(device, clock),
        treemap=_treemap(device, key),
        flame=_flame(device.stacks),
        categories=[
            (name, _COLOURS[name], size(at_peak[name]))
            for name in device.categories
            if name in at_peak
        ],
        tables=[
            (by, table)
            for by in ("line", "layer")
            if (table := _table(by, device.by.get(by, ()), device.peak_bytes, key)) is not None
        ],
        changes=[
            (each.change, *words.change_cells(device, each), each.assumes)
            for each in device.changes
        ],
        checkpoints=[*map(words.checkpoint_cells, device.checkpoints)],
    )


def _course(device: DeviceMemory, clock: Clock | None) -> Mapping[str, Any] | None:
    """Draw stacked categories; the marked peak is as high as all of them."""
    points = device.timeline
    if not points:
        return None
    times = [point.event_id if point.time_ns is None else point.time_ns for point in points]
    peak = device.peak_event_id if device.peak_time_ns is None else device.peak_time_ns
    zero = _find_zero(device, clock)
    x = [time - (zero or 0) for time in times]
    marked = peak - (zero or 0)
    used = [index for index in range(len(device.categories))
            if any(point.category_bytes[index] for point in points)]  # fmt: skip
    names = [device.categories[index] for index in used]
    axis = "since the first event of memory" if zero is None else "since the first kernel"
    if device.span_ns is None:
        axis = "events of memory"
    return {
        "kind": "memory",
        "label": f"Memory of {words.device_name(device)} over time: peak {size(device.peak_bytes)}",
        "shares": None if zero is None else SHARED_CLOCK,
        "axis": axis,
        "timed": device.span_ns is not None,
        "domain": [x[0], x[-1]]
        if zero is None or clock is None
        else [min(marked, 0), clock.length_ns],
        "x": x,
        "names": names,
        "colours": [_COLOURS[name] for name in names],
        "bytes": [[point.category_bytes[index] for point in points] for index in used],
        "total": [point.bytes for point in points],
        "reserved": [point.reserved_bytes for point in points],
        "peak": None if device.peak_event_id < 0 else marked,
        "peak_bytes": device.peak_bytes,
        "peak_label": f"peak {size(device.peak_bytes)}",
    }


def _find_zero(device: DeviceMemory, clock: Clock | None) -> int | None:
    """When the timeline begins, ns from the first event; None if on another clock."""
    if clock is None or device.began_ns is None or device.peak_time_ns is None:
        return None
    first, last = clock.window
    shown = first <= device.began_ns + device.peak_time_ns <= last
    return clock.start_ns - device.began_ns if shown else None


@dataclass(frozen=True, slots=True)
class _Frame:
    x: float
    y: float
    width: float
    height: float


def _treemap(device: DeviceMemory, key: Key) -> Mapping[str, Any] | None:
    """Divide the peak by category, and each by its blocks; what is not listed is one part."""
    groups = [group for group in device.by["category"] if group.bytes]
    if not groups:
        return None
    frames = divided([group.bytes for group in groups], _Frame(0, 0, *_TREE))
    parts = [
        part
        for group, frame in zip(groups, frames, strict=True)
        for part in _parts(device, group, frame, key)
    ]
    width, height = _TREE
    return {
        "kind": "treemap",
        "label": f"What the peak holds: {counted(len(parts), 'part')}, as large as their bytes",
        "x": [part.frame.x / width for part in parts],
        "y": [part.frame.y / height for part in parts],
        "width": [part.frame.width / width for part in parts],
        "height": [part.frame.height / height for part in parts],
        "colour": [part.colour for part in parts],
        "name": [part.name for part in parts],
        "size": [part.size for part in parts],
        "tip": [part.tip for part in parts],
        "key": [part.key for part in parts],
    }


class _Part(NamedTuple):
    frame: _Frame
    colour: str
    name: str
    size: str
    tip: Sequence[tuple[str, str]]
    key: str | None


def _parts(device: DeviceMemory, group: HeldMemory, frame: _Frame, key: Key) -> Iterator[_Part]:
    category = group.name or "unknown"
    colour = _COLOURS[category]
    blocks = [block for block in device.largest if block.category == group.name]
    rest = group.bytes - sum(block.bytes for block in blocks)
    sizes = [*(block.bytes for block in blocks), *([rest] if rest > 0 else [])]
    frames = divided(sizes, frame)
    for part, block in zip(frames, blocks, strict=False):
        line = None if block.line is None else short_line(block.line)
        name = " ".join(filter(None, (block.op, line))) or category
        age = None if block.age_ns is None else f"{duration(block.age_ns)} before the peak"
        about = {
            "category": category, "size": size(block.bytes), "op": block.op, "layer": block.layer,
            "line": line, "because": block.evidence, "allocated": age or "before the recording",
        }  # fmt: skip
        tip = [(what, value) for what, value in about.items() if value]
        # a click selects what shares the block's line, else what shares its op
        selected = None if block.line is None else key(stack=block.line)
        if not selected and block.op is not None:
            selected = key(op=block.op)
        yield _Part(part, colour, name, size(block.bytes), tip, selected)
    if rest > 0:
        tip = [("category", category), ("size", f"{size(rest)} in smaller blocks")]
        yield _Part(frames[-1], colour, f"{category}, smaller blocks", size(rest), tip, None)


def divided(sizes: Sequence[float], frame: _Frame) -> list[_Frame]:
    """Divide a frame by sizes, the largest first, into parts that are as square as possible.

    Row by row along the shorter side: a row takes another part if its worst shape gets no worse.
    """
    parts: list[_Frame] = []
    total = sum(sizes)
    index = 0
    while index < len(sizes) and total > 0:
        short = min(frame.width, frame.height)
        area = frame.width * frame.height / total
        end = index + 1
        while end < len(sizes) and _worst_aspect(
            sizes[index : end + 1], area, short
        ) <= _worst_aspect(sizes[index:end], area, short):
            end += 1
        row = sizes[index:end]
        laid, frame = _row(row, sum(row) / total, frame)
        parts += laid
        total -= sum(row)
        index = end
    return parts


def _worst_aspect(row: Sequence[float], area: float, short: float) -> float:
    """The largest aspect ratio in a row."""
    total = sum(row) * area
    if not total or not short:
        return float("inf")
    ratios = [size_ * area * short**2 / total**2 for size_ in row if size_]
    return max(max(ratio, 1 / ratio) for ratio in ratios)


def _row(row: Sequence[float], share: float, frame: _Frame) -> tuple[list[_Frame], _Frame]:
    """Lay a row along the shorter side; return its parts, and the remaining frame."""
    if frame.width < frame.height:  # as for a wide one, with its axes swapped
        laid, rest = _row(row, share, _swap_axes(frame))
        return [*map(_swap_axes, laid)], _swap_axes(rest)
    total, at = sum(row), 0.0
    parts = []
    thick = frame.width * share
    for size_ in row:
        length = frame.height * size_ / total
        parts.append(_Frame(frame.x, frame.y + at, thick, length))
        at += length
    return parts, _Frame(frame.x + thick, frame.y, frame.width - thick, frame.height)


def _swap_axes(frame: _Frame) -> _Frame:
    return _Frame(frame.y, frame.x, frame.height, frame.width)


_MAX_LEVELS = 60
_NO_STACK = "(no stack)"


def _flame(stacks: Sequence[HeldStack]) -> Mapping[str, Any] | None:
    """Lay call stacks out, callers above what they call; None if no stack is known."""
    if not any(stack.frames for stack in stacks):
        return None
    listed = _flame_boxes(stacks)
    depths = [len(path) for path, _, _, _ in listed]
    names = [path[-1] if path else "all" for path, _, _, _ in listed]
    return {
        "kind": "icicle",
        "bytes": True,
        "label": f"The peak by call stack: {counted(len(listed), 'box')}, as wide as their bytes",
        "axis": "bytes at the peak",
        "start": [start for _, start, _, _ in listed],
        "length": [held for _, _, held, _ in listed],
        "depth": depths,
        "colour": depths,
        "name": names,
        "path": names,
        "times": [f"{size(held)}, {counted(count, 'block')}" for _, _, held, count in listed],
        "key": [None] * len(listed),
    }


def _flame_boxes(stacks: Sequence[HeldStack]) -> list[tuple[tuple[str, ...], int, int, int]]:
    """List path, start, bytes and number of blocks of each box, callers first."""
    held: dict[tuple[str, ...], tuple[int, int]] = {}
    for stack in stacks:
        frames = tuple(map(without_folders, stack.frames or (_NO_STACK,)))[:_MAX_LEVELS]
        for end in range(len(frames) + 1):
            before = held.get(frames[:end], (0, 0))
            held[frames[:end]] = (before[0] + stack.bytes, before[1] + stack.block_count)
    least = max(held[()][0] * MIN_WIDTH, 1)
    below: dict[tuple[str, ...], int] = {(): 0}  # where the next box below each one begins
    listed: list[tuple[tuple[str, ...], int, int, int]] = []
    for path in sorted(held, key=lambda path: (len(path), -held[path][0], path)):
        size_, count = held[path]
        if path[:-1] not in below:
            continue  # its caller is too narrow
        start = below[path[:-1]]
        if path:
            below[path[:-1]] += size_
        if size_ >= least and len(listed) < MAX_BOXES:
            below[path] = start
            listed.append((path, start, size_, count))
    return listed


def _table(by: str, groups: Sequence[HeldMemory], peak_bytes: int, key: Key) -> Sortable | None:
    """Tabulate what the peak holds by line or layer, largest first; None if no name is known."""
    held = [group for group in groups if group.bytes]
    if not any(group.name for group in held):
        return None

    def name(group: HeldMemory) -> Cell:
        if group.name is None:
            return text("(unknown)")
        return text(short_line(group.name) if by == "line" else group.name, css_class=PATH)

    def selection(group: HeldMemory) -> str | None:
        named = {"stack" if by == "line" else by: group.name}
        return (group.name and key(**named)) or None

    columns: Sequence[Column[HeldMemory]] = (
        (of_texts(by), name),
        (of_numbers("held", "", "bytes"), lambda group: memory(group.bytes)),
        (of_numbers("share", "", "%"),
         lambda group: share(group.bytes / peak_bytes if peak_bytes else None)),
        (of_numbers("blocks"), lambda group: amount(group.block_count)),
        (of_numbers("allocated in all", "alloc", "bytes"),
         lambda group: memory(group.allocated_bytes)),
        (of_numbers("GB\N{MULTIPLICATION SIGN}ms held", "gb_ms"),
         lambda group: rate(group.byte_ns, 1e15)),
    )  # fmt: skip
    return sortable(held, columns, _MAX_ROWS, key=selection, less="smaller")


def memory(value: float | None) -> Cell:
    """Make a cell of bytes."""
    return Cell(size(value), value)
