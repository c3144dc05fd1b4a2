"""Predictions in the terminal."""

from pyprof.answers.whatif_answer import PredictedChange, PredictedTime, RefusedChange, WhatIf
from pyprof.render.text.whatif_text import predicted_changes


def test_a_change_stands_with_its_interval_and_a_refusal_with_its_reason() -> None:
    """All four times, the code, the validation; and why not."""
    time = PredictedTime(now=40_000_000, low=10_000_000, expected=20_000_000, high=30_000_000)
    change = PredictedChange(
        change="--x", kernels_ns=time, step_ns=None, rows=4,
        formula="f", assumption="a", validation="1 pair", code="go()",
    )  # fmt: skip
    shown = "\n".join(
        predicted_changes(
            WhatIf(changes=(change,), refused=(RefusedChange(change="--y", why="no peaks"),))
        )
    )
    assert all(part in shown for part in ("40", "10", "20", "30", "go()", "Tried on 1 pair."))
    assert "--y is not predicted: no peaks." in shown
