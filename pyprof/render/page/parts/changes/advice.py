"""Potential gains, with their evidence."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyprof.answers.gains import gain_of
from pyprof.quantities import duration
from pyprof.render.page.tables import without_folders
from pyprof.render.text.formatting import count, short_line
from pyprof.render.text.summary_text import scope_sentences

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyprof.render.page.parts import Page

TITLE, ORDER = "What to do", 6


def section(page: Page) -> Mapping[str, Any]:
    """The advice, in its order."""
    advice = [
        {
            "title": without_folders(entry.title),
            "action": without_folders(entry.action),
            "detailed": any(finding.detail for finding in entry.evidence),
            "gain": f"gain {gain_of(entry).words}",
            "predicted": entry.predicted,
            "evidence": [
                (finding.what, short_line(finding.line), count(finding.count),
                 duration(finding.time_ns), without_folders(finding.detail))
                for finding in entry.evidence
            ],
        }
        for entry in page.answer.advice
    ]  # fmt: skip
    return {
        "advice": advice,
        "scope": scope_sentences(page.answer),
        "several": len(page.answer.devices or ()) > 1,
    }
