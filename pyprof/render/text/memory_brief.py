"""Memory in other reports: the peak in a summary, and two recordings side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyprof.render.text import formatting
from pyprof.render.text.layout.text_width import cut_start
from pyprof.render.text.memory_text import name_of, size

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pyprof.answers.memory_answer import HeldChange, MemoryDiff
    from pyprof.answers.summary_answer import MemoryPeak

_MAX_CATEGORIES, _MAX_LINES = 7, 3
_KEYS = ("category", "layer", "line", "op")
_TITLES = {
    "peak": "Peak",
    "reserved": "Reserved at the peak",
    "start": "At the start",
    "end": "At the end",
}


def section(memory: MemoryPeak | None, *, is_part: bool = False) -> Iterator[str]:
    """Yield the section of a summary: the highest peak and its parts.

    Yields nothing without a recording. `is_part`: the summary is of a part of the work.
    """
    if memory is None:
        return
    rank = "" if memory.rank is None else f" of rank {memory.rank}"
    yield formatting.heading(f"Memory{' (whole recording)' if is_part else ''}")
    reserved = memory.peak_reserved_bytes
    kept = "" if reserved is None else f" of {size(reserved)} reserved"
    yield f"Peak on {memory.device}{rank}: {size(memory.peak_bytes)}{kept}"
    for title, groups, most, short in (
        ("For", memory.categories_bytes, _MAX_CATEGORIES, str),
        ("By", memory.lines_bytes, _MAX_LINES, formatting.short_line),
    ):
        if any(groups):  # a name is known
            largest = [*groups.items()][:most]
            parts = (f"{short(name) if name else 'unknown'} {size(held)}" for name, held in largest)
            yield from formatting.wrapped(", ".join(parts), f"{title}: ")
    if memory.growth_bytes_per_step is not None:
        where = memory.growing_line or "an unknown line"
        grown = size(memory.growth_bytes_per_step)
        yield f"Grows by {grown} a step at {formatting.short_line(where)}"
    yield "pyprof memory shows more"


def comparison(answer: MemoryDiff, top: int) -> Iterator[str]:
    """Show what holds more, or less, at the peak of B than at that of A."""
    sections: list[Iterable[str]] = []
    for device in answer.devices:
        rows = [
            (_TITLES[name], size(one.a_bytes), size(one.b_bytes), _with_sign(one.change_bytes))
            for name, one in device.metrics.items()
        ]
        totals = formatting.layout_table(rows, ("", "A", "B", "Change"), (0,))
        sections.append([formatting.heading(f"Memory of {device.b_device}, A and B"), *totals])
        sections += (_changes(key, device.by[key], top) for key in _KEYS)
    for name, devices in (("A", answer.only_a), ("B", answer.only_b)):
        if devices:
            sections.append(formatting.wrapped(f"Only in {name}: {', '.join(devices)}"))
    return formatting.separated(sections)


def _changes(key: str, changes: Sequence[HeldChange], top: int) -> Iterator[str]:
    if not changes:
        return
    yield formatting.heading(f"At the peaks by {key}")
    rows = [
        (
            name_of(key, each.name),
            size(each.a_bytes),
            size(each.b_bytes),
            _with_sign(each.change_bytes),
            f"{each.b_block_count - each.a_block_count:+,}",
        )
        for each in changes[:top]
    ]
    yield from formatting.layout_table(
        rows, (key.capitalize(), "A", "B", "Change", "Blocks"), (0,), {0: cut_start}
    )


def _with_sign(change: float | None) -> str:
    return f"{'+' if change and change > 0 else ''}{size(change)}"
