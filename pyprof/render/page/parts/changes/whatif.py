"""Kernel time after changes, predicted: a bar for each, with its interval."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyprof.quantities import duration

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyprof.answers.whatif_answer import PredictedTime
    from pyprof.render.page.parts import Page

TITLE, ORDER = "What if", 7


def section(page: Page) -> Mapping[str, Any] | None:
    """The changes that are possible; None without one."""
    answer = page.report.whatif
    if answer is None or not answer.changes:
        return None
    return {
        "changes": [
            {
                "change": each.change,
                "code": each.code,
                "expected": duration(each.kernels_ns.expected),
                "interval": f"{duration(each.kernels_ns.low)} to {duration(each.kernels_ns.high)}",
                "bar": _bar(each.kernels_ns),
                "rows": each.rows,
                "formula": each.formula,
                "assumption": each.assumption,
                "validation": each.validation,
            }
            for each in answer.changes
        ],
        "now": duration(answer.changes[0].kernels_ns.now),
        "refused": [(each.change, each.why) for each in answer.refused],
    }


def _bar(time: PredictedTime) -> Mapping[str, str]:
    """A time and its interval, in % of the time now or of the interval's end, if that is longer."""
    longest = max(time.now, time.high, 1)
    ends = {"expected": time.expected, "low": time.low, "high": time.high}
    return {name: f"{100 * ns / longest:.1f}" for name, ns in ends.items()}
