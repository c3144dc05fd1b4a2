"""What filled the memory, under the timeline: the level by category, and what the peak holds."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from pyprof.quantities import DASH
from pyprof.render.page.memory_page import memory, picture
from pyprof.render.page.tables import Cell, of_numbers, of_texts, sortable, text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyprof.answers.memory_answer import RankMemory
    from pyprof.render.page.cross_filter import FilterData
    from pyprof.render.page.parts import Page
    from pyprof.render.page.tables import Column

TITLE, ORDER = "Memory", 45
_MAX_ROWS = 200


def section(page: Page) -> Mapping[str, Any] | None:
    """Draw the device that peaks highest; None if no memory was recorded."""
    data = page.report.memory
    if data is None:
        return None
    return {
        "picture": picture(data.device, data.clock, partial(_key, page.selectable)),
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
