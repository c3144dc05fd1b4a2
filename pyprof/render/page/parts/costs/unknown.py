"""Why costs are unknown, and what to do about it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyprof.answers.parts import UnknownCost
from pyprof.answers.remedies import explained
from pyprof.answers.summary_answer import PYTORCH
from pyprof.quantities import duration
from pyprof.render.page.tables import without_folders
from pyprof.render.text.formatting import count, percent

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyprof.answers.parts import KnownCost
    from pyprof.render.page.parts import Page

TITLE, ORDER = "Unknown cost", 90
_MAX_REASONS = 12


def section(page: Page) -> Mapping[str, Any] | None:
    """The reasons, those of most time first; None if every cost is known."""
    known = page.answer.known_cost
    if not known.unknown:
        return None
    return {
        "unknown": reasons(known),
        "percent": f"{100 - 100 * known.known_share:.1f}",
        "of_torch": page.answer.library == PYTORCH,
    }


def reasons(known: KnownCost) -> list[tuple[str, str, str, str, str]]:
    """Reason, time, share, rows and remedy of each unknown, those of most time first."""
    shown, rest = [*known.unknown[:_MAX_REASONS]], known.unknown[_MAX_REASONS:]
    if rest:
        time_ns, rows = sum(each.time_ns for each in rest), sum(each.rows for each in rest)
        shown.append(UnknownCost(f"{len(rest)} other reasons", time_ns, rows))
    return [
        (without_folders(why), duration(each.time_ns),
         percent(each.time_ns / max(known.total_ns, 1)), count(each.rows), remedy)
        for each in shown
        for why, remedy in (explained(each.reason),)
    ]  # fmt: skip
