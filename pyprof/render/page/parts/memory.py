"""What filled the memory, under the timeline: the level by category, and what the peak holds."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from pyprof.analysis.memory.peaks import highest_first
from pyprof.answers.memory_answer import rank_memory
from pyprof.inputs.memory_recordings import beside, recordings
from pyprof.quantities import DASH
from pyprof.render.page.memory_page import Clock, memory, picture
from pyprof.render.page.parts.timeline import extent
from pyprof.render.page.tables import Cell, of_numbers, of_texts, sortable, text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyprof.answers.memory_answer import DeviceMemory, RankMemory
    from pyprof.render.page.cross_filter import FilterData
    from pyprof.render.page.parts import Page, PartInput
    from pyprof.render.page.tables import Column

TITLE, ORDER = "Memory", 45
_MAX_ROWS = 200
_MAX_GROUPS = 500
_SHOWN = ("category", "line", "layer")


@dataclass(frozen=True, slots=True)
class MemoryData:
    """The device that peaks highest, and how high all do."""

    highest: DeviceMemory
    clock: Clock | None
    """When its capture's timeline begins; None if there is none."""
    peaks: tuple[RankMemory, ...]

    def merged(self, other: MemoryData) -> MemoryData:
        """Keep the device that peaks highest, and the peaks of all, the highest first."""
        highest = max(self, other, key=lambda each: each.highest.peak_bytes)
        peaks = sorted((*self.peaks, *other.peaks), key=lambda each: -each.peak_bytes)
        return replace(highest, peaks=tuple(peaks))


def summarise(gathered: PartInput) -> MemoryData | None:
    """Analyse what was recorded with a capture; None if nothing was."""
    source, timeline = gathered.source, gathered.overview.timeline
    clock = None if timeline is None else Clock(*extent(timeline.devices))
    if gathered.snapshot is not None:
        recorded = recordings([gathered.snapshot], source.capture)
    else:
        recorded = beside([] if source.origin is None else [source.origin])
    devices = highest_first(recorded, source, None if clock is None else clock.window)
    if not devices:
        return None
    highest = replace(
        devices[0],
        by={by: groups[:_MAX_GROUPS] for by, groups in devices[0].by.items() if by in _SHOWN},
        beside_time=None,
    )
    return MemoryData(highest, clock, tuple(map(rank_memory, devices)))


def section(page: Page) -> Mapping[str, Any] | None:
    """Draw the device that peaks highest; None if no memory was recorded."""
    data: MemoryData | None = page.data
    if data is None:
        return None
    return {
        "picture": picture(data.highest, data.clock, partial(_key, page.selectable)),
        "peaks": sortable(data.peaks, _COLUMNS, _MAX_ROWS, less="smaller")
        if len(data.peaks) > 1
        else None,
        "chosen": page.answer.steps.are_chosen,
    }


def _key(selectable: FilterData, **texts: str | None) -> str | None:
    """Write the key of a line, an op or a layer; memory has only the innermost name of a layer."""
    layer = texts.get("layer")
    if layer is None:
        return selectable.key(**texts)
    numbers = [
        str(number)
        for number, path in enumerate(selectable.layers())
        if path == layer or path.endswith(f".{layer}")
    ]
    return f"layer={','.join(numbers)}" if numbers else None


def _rank(peak: RankMemory) -> Cell:
    return Cell(DASH) if peak.rank is None else Cell(str(peak.rank), peak.rank)


_COLUMNS: tuple[Column[RankMemory], ...] = (
    (of_texts("device"), lambda peak: text(peak.device)),
    (of_numbers("rank"), _rank),
    (of_numbers("peak", "", "bytes"), lambda peak: memory(peak.peak_bytes)),
    (of_numbers("reserved", "", "bytes"), lambda peak: memory(peak.peak_reserved_bytes)),
    (of_numbers("end", "", "bytes"), lambda peak: memory(peak.end_bytes)),
)
