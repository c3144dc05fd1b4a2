"""What `pyprof try` found, where the capture is of a trial: a table, ratios as bars, the code."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyprof.answers.try_answer import from_json
from pyprof.inputs import trial_folder
from pyprof.records.merging import first, merged_by
from pyprof.render.page.tables import without_folders
from pyprof.render.text import try_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyprof.answers.try_answer import TimeRatio, TriedChange, Try
    from pyprof.render.page.parts import Page, PartInput

TITLE, ORDER = "Tried", 12
_MIN_EXTENT, _MAX_EXTENT = math.log(1.25), math.log(8)
"""Extent of the bars' axis to each side of 1; longer bars are cut off."""


@dataclass(frozen=True, slots=True)
class TriedData:
    """The trial whose results lie beside a capture."""

    answer: Try = merged_by(first)
    """The answer of the first capture: captures of one page are from one run."""


def summarise(gathered: PartInput) -> TriedData | None:
    """Read the try.json beside the capture; None if there is none."""
    origin = gathered.source.origin
    document = None if origin is None else trial_folder.answer_beside(Path(origin))
    answer = None if document is None else from_json(document)
    return None if answer is None else TriedData(answer)


def section(page: Page) -> Mapping[str, Any] | None:
    """The changes that were tried; None if none was."""
    if page.data is None or not page.data.answer.changes:
        return None
    answer: Try = page.data.answer
    ratios = [each.time_ratio for each in answer.changes if each.time_ratio]
    # the axis goes as far to each side of 1 as the widest interval, as a logarithm
    ends = [end for each in ratios for end in (each.low, each.high) if end > 0]
    widest = max((abs(math.log(end)) for end in ends), default=0.0)
    extent = min(max(1.1 * widest, _MIN_EXTENT), _MAX_EXTENT)
    return {
        "baseline": without_folders(try_text.baseline_sentence(answer)),
        "complete": answer.complete,
        "header": try_text.HEADER,
        "changes": [_change(each, answer, extent) for each in answer.changes],
        "texts": try_text.TEXTS,
    }


def _change(change: TriedChange, answer: Try, extent: float) -> Mapping[str, Any]:
    lines = try_text.sentences(change, answer.baseline)
    return {
        "cells": [*map(without_folders, try_text.row(change, answer.baseline))],
        "bar": _bar(change.time_ratio, extent) if change.time_ratio else None,
        "sentences": [*map(without_folders, lines)],
        "code": without_folders(change.code),
    }


def _bar(ratio: TimeRatio, extent: float) -> Mapping[str, float]:
    """Return where the interval begins, how long it is, and its middle, in % of the axis."""
    low, mid, high = (_place(value, extent) for value in (ratio.low, ratio.mid, ratio.high))
    return {"low": low, "length": high - low, "mid": mid}


def _place(ratio: float, extent: float) -> float:
    log = math.log(ratio) if ratio > 0 else -extent
    return round(50 + 50 * min(max(log / extent, -1.0), 1.0), 1)
