"""What `pyprof try` found, where the capture is of a trial: a table, ratios as bars, the code."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from pyprof.render.page.tables import without_folders
from pyprof.render.text import try_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyprof.answers.try_answer import TimeRatio
    from pyprof.render.page.parts import Page

TITLE, ORDER = "Tried", 12
_MIN_EXTENT, _MAX_EXTENT = math.log(1.25), math.log(8)
"""Extent of the bars' axis to each side of 1; longer bars are cut off."""


def section(page: Page) -> Mapping[str, Any] | None:
    """The changes that were tried; None if none was."""
    answer = page.report.tried
    if answer is None or not answer.changes:
        return None
    ratios = [each.time_ratio for each in answer.changes if each.time_ratio]
    # the axis goes as far to each side of 1 as the widest interval, as a logarithm
    ends = [end for each in ratios for end in (each.low, each.high) if end > 0]
    widest = max((abs(math.log(end)) for end in ends), default=0.0)
    extent = min(max(1.1 * widest, _MIN_EXTENT), _MAX_EXTENT)
    return {
        "baseline": without_folders(try_text.baseline_sentence(answer)),
        "complete": answer.complete,
        "header": try_text.HEADER,
        "changes": [
            {
                "cells": [*map(without_folders, try_text.row(each, answer.baseline))],
                "bar": _bar(each.time_ratio, extent) if each.time_ratio else None,
                "sentences": [*map(without_folders, try_text.sentences(each, answer.baseline))],
                "code": without_folders(each.code),
            }
            for each in answer.changes
        ],
        "texts": try_text.TEXTS,
    }


def _bar(ratio: TimeRatio, extent: float) -> Mapping[str, float]:
    """Return where the interval begins, how long it is, and its middle, in % of the axis."""
    ends = (ratio.low, ratio.mid, ratio.high)
    logs = (math.log(end) if end > 0 else -extent for end in ends)
    low, mid, high = (round(50 + 50 * min(max(log / extent, -1.0), 1.0), 1) for log in logs)
    return {"low": low, "length": high - low, "mid": mid}
