"""What filled the memory of devices, as text for people."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from pyprof.quantities import DASH, amount, counted, duration, number
from pyprof.render.text import formatting
from pyprof.render.text.layout.text_width import cut_end, cut_middle, cut_start

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pyprof.answers.memory_answer import (
        CheckpointedLayer,
        DeviceMemory,
        HeldAt,
        HeldBlock,
        HeldMemory,
        HeldStack,
        Memory,
        OutOfMemory,
        PossibleChange,
        RankMemory,
        StepGrowth,
        TimedMemory,
    )

_UNKNOWN = "(unknown)"
_MAX_LEAKS = 5
_CUTS = {0: cut_start}
_TITLES = {
    "category": "Category",
    "layer": "Layer",
    "line": "Line",
    "op": "Op",
    "function": "Function",
    "direction": "Direction",
    "size": "Block size",
    "evidence": "Evidence of the category",
}


def report(answer: Memory, by: Sequence[str], top: int) -> Iterator[str]:
    """Show the memory of devices, the one that peaks highest first; for others only the peak.

    What went wrong comes before what is held.
    """
    first, *more = answer.devices
    others = peaks(answer.devices, len(answer.devices)) if more else ()
    timed = (_time_table(key, rows, top) for key, rows in (first.beside_time or {}).items())
    grows = first.growth is not None and bool(first.growth.leaks)
    return formatting.separated(
        [
            _overview(first),
            *(
                [formatting.heading(head), *formatting.wrapped(asked), *formatting.wrapped(held)]
                for head, asked, held in map(_out_of_memory, first.out_of_memory)
            ),
            _growth(first.growth) if grows else (),
            *_describe_held(first, by, top),
            *timed,
            _changes(first),
            _checkpoints(first, top),
            () if grows else _growth(first.growth),
            *(formatting.wrapped(f"Note: {note}.") for note in first.notes),
            others,
        ]
    )


def peaks(devices: Sequence[DeviceMemory | RankMemory], top: int) -> Iterator[str]:
    """Tabulate the peaks of devices; yields nothing without devices."""
    if not devices:
        return
    yield formatting.heading("Peaks of memory, the highest first")
    rows = [
        (
            DASH if each.rank is None else str(each.rank),
            each.device,
            size(each.peak_bytes),
            size(each.peak_reserved_bytes),
            size(each.end_bytes),
        )
        for each in devices[:top]
    ]
    yield from formatting.layout_table(
        rows, ("Rank", "Device", "Peak", "Reserved", "At the end"), (1,)
    )
    if rest := len(devices) - len(rows):
        yield f"... and {rest} more (--top {len(devices)})"


def _overview(device: DeviceMemory) -> Iterator[str]:
    span = "" if device.span_ns is None else f" in {duration(device.span_ns)}"
    named = device_name(device)
    yield formatting.heading(f"Memory of {named}: {counted(device.event_count, 'event')}{span}")
    for level in _levels(device):
        yield from formatting.wrapped(level)
    rounded = device.end_allocated_bytes
    more = "" if rounded is None else f", with rounding {size(rounded)}"
    reserved = device.end_reserved_bytes
    kept = "" if reserved is None else f"; {size(reserved)} reserved"
    yield f"After the last: {size(device.end_bytes)}{more}{kept}"


def _describe_held(device: DeviceMemory, by: Sequence[str], top: int) -> Iterator[Iterable[str]]:
    """Yield the sections on what is held at the peak, or at the chosen moment."""
    held: DeviceMemory | HeldAt = device
    total, when = device.peak_bytes, "At the peak"
    if (at := device.at) is not None:
        held, total, when = at, at.bytes, "Then"
        allocated = _describe_allocated(at.bytes, at.active_bytes, at.event_id, at.time_ns)
        reserved = "" if at.reserved_bytes is None else f"; {size(at.reserved_bytes)} reserved"
        yield formatting.wrapped(f"Chosen: {allocated}{reserved}")
    unknown = []
    for key in by:
        if key == "stack":
            yield _stacks(held.stacks, total, when, top)
        groups = [group for group in held.by.get(key, ()) if group.bytes]
        if groups and all(group.name is None for group in groups):
            unknown.append(key)
        elif groups:
            yield _groups(key, groups, total, when, top)
    if unknown:
        # Say which tables are left out, and what fills them the next time.
        why = "not recorded; --trace FILE, a capture of the same run, may have it"
        if {"line", "op", "function"} & {*unknown}:
            why = "no call stacks were recorded;"
            why += " torch.cuda.memory._record_memory_history() records them"
        yield formatting.wrapped(f"Unknown for all of it: {', '.join(unknown)} ({why}).")
    if held.largest:
        title = formatting.heading(f"Largest blocks {when.lower()}")
        yield [title, *_blocks(held.largest[:top])]


def device_name(device: DeviceMemory) -> str:
    """Name a device, with its rank if that is known."""
    return device.device if device.rank is None else f"rank {device.rank}, {device.device}"


def sentences(device: DeviceMemory) -> Iterator[str]:
    """Say in sentences what the peak was, what grows, and why a request could not be met."""
    yield from (f"{level}." for level in _levels(device))
    for leak in () if device.growth is None else device.growth.leaks[:_MAX_LEAKS]:
        where = leak.line or "An unknown line"
        steps = len(device.growth.held_bytes) if device.growth is not None else 0
        yield (
            f"{where} holds more and more: {size(leak.bytes_per_step)} per step after the first of "
            f"{steps:,}, {size(leak.bytes)} in all."
        )
    for oom in device.out_of_memory:
        head, asked, held = _out_of_memory(oom)
        yield f"{head}: {asked}. {held}."
    yield from (f"Note: {note}." for note in device.notes)


def _levels(device: DeviceMemory) -> Iterator[str]:
    """State the peak, when more was in use or reserved, and what was held at the start."""
    allocated = _describe_allocated(
        device.peak_bytes, device.peak_active_bytes, device.peak_event_id, device.peak_time_ns
    )
    yield f"Peak: {allocated}{_describe_reserved(device)}"
    if device.max_active_bytes > device.peak_active_bytes:
        when = _format_moment(device.max_active_event_id, device.max_active_time_ns)
        most = size(device.max_active_bytes)
        yield f"Most in use, with what waits for other streams: {most} {when}"
    most_reserved, at = device.max_reserved_bytes, device.max_reserved_event_id
    if at is not None and most_reserved not in (None, device.peak_reserved_bytes):
        when = _format_moment(at, device.max_reserved_time_ns)
        yield f"Most reserved: {size(most_reserved)} {when}"
    if device.start_bytes:
        blocks = counted(device.start_block_count, "block")
        count = "counts" if device.start_block_count == 1 else "count"
        yield (
            f"Before the first event: {size(device.start_bytes)} in {blocks}, "
            f"which {count} at the peak if still live then"
        )


def _describe_allocated(held: int, active: int, event: int, time_ns: int | None) -> str:
    waiting = active - held
    pending = f", {size(waiting)} more waits for other streams" if waiting else ""
    return f"{size(held)} allocated {_format_moment(event, time_ns)}{pending}"


def _format_moment(event: int, time_ns: int | None) -> str:
    if event < 0:
        return "before the first event"
    if time_ns is None:
        return f"at event {event:,}"
    return f"{duration(time_ns)} after the first event (event {event:,})"


def _describe_reserved(device: DeviceMemory) -> str:
    reserved, free = device.peak_reserved_bytes, device.peak_free_bytes
    if reserved is None:
        return ""
    rest = reserved - device.peak_active_bytes
    if rest < 0:  # events are missing, as a note states
        return f"; {size(reserved)} reserved"
    unused = rest if free is None else min(free, rest)
    share = f"{formatting.percent(unused / reserved)} %" if reserved else "0 %"
    pieces = ""
    if unused and device.peak_largest_free_bytes is not None:
        pieces = (
            f" in {counted(device.peak_free_piece_count or 0, 'piece')}, the largest "
            f"{size(device.peak_largest_free_bytes)}"
        )
    rounding = device.peak_rounding_bytes
    rounded = f"; blocks are rounded up by {size(rounding)}" if rounding else ""
    return f"; {size(reserved)} reserved, {size(unused)} of it ({share}) unused{pieces}{rounded}"


def size(value: float | None) -> str:
    """Format bytes with a decimal prefix."""
    return amount(value, "B")


def _groups(
    key: str, groups: Sequence[HeldMemory], peak: int, when: str, top: int
) -> Iterator[str]:
    yield formatting.heading(f"{when} by {key}")
    rows = [
        (
            name_of(key, group.name),
            size(group.bytes),
            formatting.percent(group.bytes / peak) if peak else DASH,
            formatting.count(group.block_count),
            size(group.allocated_bytes),
            number(group.byte_ns and group.byte_ns / 1e15),
        )
        for group in groups[:top]
    ]
    header = (_TITLES[key], "Held", "%", "Blocks", "Allocated in all", "GB*ms held")
    yield from formatting.layout_table(rows, header, (0,), _CUTS)
    if len(groups) > top:
        rest = groups[top:]
        held = size(sum(group.bytes for group in rest))
        yield f"... and {len(rest):,} more with {held}; --top shows more"


def _stacks(stacks: Sequence[HeldStack], total: int, when: str, top: int) -> Iterator[str]:
    """List call stacks with what they hold, the outermost frame first."""
    yield formatting.heading(f"{when} by call stack")
    for stack in stacks[:top]:
        share = formatting.percent(stack.bytes / total) if total else DASH
        yield f"{size(stack.bytes)}, {share} %, {counted(stack.block_count, 'block')}"
        for frame in stack.frames or ("(no stack)",):
            yield f"  {cut_start(frame, formatting.width() - 2)}"
    if rest := stacks[top:]:
        held = size(sum(stack.bytes for stack in rest))
        yield f"... and {len(rest):,} more with {held}; --top shows more"


def name_of(key: str, name: str | None) -> str:
    """Format the name of a group of memory."""
    if name is None:
        return _UNKNOWN
    if key == "size":
        return size(int(name))
    return name


def _blocks(blocks: Sequence[HeldBlock]) -> Iterator[str]:
    alike = Counter(
        (
            size(block.bytes),
            block.category or _UNKNOWN,
            block.op or DASH,
            block.line or block.layer or DASH,
            block.evidence or DASH,
        )
        for block in blocks
    )
    rows = [(str(count), *texts) for texts, count in alike.items()]
    columns = [*zip(("Blocks", *_BLOCK_TEXTS), _BLOCK_CUTS, zip(*rows, strict=True), strict=True)]
    nothing = {_UNKNOWN, DASH, "no evidence"}
    known = [each for each in columns if {*each[2]} - (nothing | {"1"})]
    cuts = {index: cut for index, (_, cut, _) in enumerate(known) if cut is not None}
    texts = zip(*(cells for _, _, cells in known), strict=True)
    left = [index for index, (title, _, _) in enumerate(known) if title in _BLOCK_TEXTS[1:]]
    yield from formatting.layout_table([*texts], [title for title, _, _ in known], left, cuts)


_BLOCK_TEXTS = ("Size", "Category", "Op", "Line", "Evidence")
_BLOCK_CUTS = (None, None, None, cut_middle, cut_start, cut_end)


def _time_table(key: str, timed: Sequence[TimedMemory], top: int) -> Iterator[str]:
    yield formatting.heading(f"Memory and time by {key}")
    chosen = [each for each in timed if each.bytes or each.allocated_bytes or each.rows][:top]
    rows = [
        (
            name_of(key, each.name),
            size(each.bytes),
            size(each.allocated_bytes),
            number(each.byte_ns and each.byte_ns / 1e15),
            formatting.milliseconds(each.time_ns),
            formatting.count(each.rows),
        )
        for each in chosen
    ]
    header = (_TITLES[key], "Held", "Allocated in all", "GB*ms held", "Time ms", "Rows")
    yield from formatting.layout_table(rows, header, (0,), _CUTS)


def _changes(device: DeviceMemory) -> Iterator[str]:
    if not device.changes:
        return
    yield formatting.heading("What would change the peak")
    rows = [(each.change, *change_cells(device, each), each.assumes) for each in device.changes]
    yield from formatting.layout_table(rows, ("Change", "Peak", "", "If"), (0, 3))


def change_cells(device: DeviceMemory, change: PossibleChange) -> tuple[str, str]:
    """Format the peak after a change, and how much that differs; with both ends of an interval."""
    if change.low_bytes is None or change.high_bytes is None:
        return size(change.peak_bytes), signed(-change.saved_bytes)
    ends = (change.low_bytes, change.high_bytes)
    peak, difference = (
        " to ".join(dict.fromkeys(map(form, values)))
        for form, values in (
            (size, ends),
            (signed, [end - device.peak_bytes for end in ends]),
        )
    )
    return peak, difference


def signed(value: int) -> str:
    """Format a difference in bytes with its sign."""
    return f"{'-' if value < 0 else '+'}{size(abs(value))}"


def _checkpoints(device: DeviceMemory, top: int) -> Iterator[str]:
    if not device.checkpoints:
        return
    yield formatting.heading("Checkpointing a layer")
    rows = [checkpoint_cells(each) for each in device.checkpoints[:top]]
    header = ("Layer", "Held", "Peak", "", "Again per step", "ms per step")
    yield from formatting.layout_table(rows, header, (0,), _CUTS)
    yield from formatting.wrapped(
        "Held: its activations at the peak but its output, which the next layer takes. While the "
        "layer's own passes run, nothing is saved."
    )


def checkpoint_cells(layer: CheckpointedLayer) -> tuple[str, ...]:
    """Format what checkpointing a layer, or all blocks of a list, would change."""
    count = layer.block_count
    return (
        layer.layer if count == 1 else f"{layer.layer} (all {count:,})",
        size(layer.held_bytes),
        size(layer.peak_bytes),
        f"-{size(layer.saved_bytes)}",
        amount(layer.recomputed_flops, "FLOP"),
        formatting.milliseconds(layer.recomputed_ns),
    )


def _growth(growth: StepGrowth | None) -> Iterator[str]:
    if growth is None:
        return
    held = growth.held_bytes
    yield formatting.heading(f"At the ends of {len(held):,} steps, by {growth.marked_by}")
    yield (
        f"Held at the end of the first {size(held[0])}, the second {size(held[1])}, "
        f"the last {size(held[-1])}"
    )
    if not growth.leaks:
        yield "No line holds more and more"
        return
    rows = [
        (
            leak.line or _UNKNOWN,
            size(leak.bytes),
            size(leak.bytes_per_step),
            formatting.count(leak.block_count),
        )
        for leak in growth.leaks
    ]
    yield "Lines that hold more and more:"
    yield from formatting.layout_table(rows, ("Line", "Growth", "Per step", "Blocks"), (0,), _CUTS)


def _out_of_memory(oom: OutOfMemory) -> tuple[str, str, str]:
    """When memory ran out, what was asked for, and what was held then."""
    head = "Out of memory"
    if oom.time_ns is not None:
        head += f" {duration(oom.time_ns)} after the first event"
    asked = f"{size(oom.asked_bytes)} was asked for"
    if oom.line:
        asked += f" by {oom.line}"
    if oom.device_free_bytes is not None:
        asked += f"; the device had {size(oom.device_free_bytes)} free"
    held = f"Allocated {size(oom.allocated_bytes)}"
    if oom.reserved_bytes is not None:
        held += f" of {size(oom.reserved_bytes)} reserved"
    if oom.free_bytes is not None:
        held += (
            f"; {size(oom.free_bytes)} reserved but free, in pieces up to "
            f"{size(oom.largest_free_bytes)}"
        )
    return head, asked, held
