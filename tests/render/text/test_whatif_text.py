"""Predictions in the terminal."""

import click
import pytest

from pyprof.answers.whatif_answer import (
    PredictedChange,
    PredictedTime,
    RefusedChange,
    UpperBound,
    WhatIf,
)
from pyprof.render.text.whatif_text import predicted_changes


def _change(name: str) -> PredictedChange:
    time = PredictedTime(now=40_000_000, low=10_000_000, expected=20_000_000, high=30_000_000)
    return PredictedChange(
        change=name, kernels_ns=time, step_ns=time, step_why=None, rows=4,
        formula="f", assumption="a", validation="1 pair", code="go()",
    )  # fmt: skip


def test_a_change_has_its_interval_and_a_refusal_its_reason() -> None:
    change = _change("--x")
    bound = UpperBound(
        change="--z", gain_ns=9_000_000, gain_step_ns=3e6, rows=1, title="it waits", code="stop()"
    )
    refused = RefusedChange(change="--y", why="no peaks")
    answer = WhatIf(steps=2, changes=(change,), bounds=(bound,), refused=(refused,))
    shown = "\n".join(predicted_changes(answer))
    parts = ("40", "10", "20", "30", "go()", "Tried on 1 pair.", "At most 3.00 ms a step",
             "A step: 40.0 ms now, 20.0 ms expected")  # fmt: skip
    assert all(part in shown for part in parts)
    assert "--y is not predicted: no peaks." in shown


def test_blank_lines_stand_between_parts_only() -> None:
    refused = (RefusedChange(change="--y", why="no peaks"), RefusedChange(change="--z", why="none"))
    shown = [*predicted_changes(WhatIf(steps=2, changes=(), bounds=(), refused=refused))]
    assert shown == ["--y is not predicted: no peaks.", "", "--z is not predicted: none."]


def test_no_line_is_wider_than_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    changes = (_change("--dtype bf16 --fuse attention --fuse pointwise"),)
    shown = [*predicted_changes(WhatIf(steps=2, changes=changes, bounds=(), refused=()))]
    assert max(len(click.unstyle(line)) for line in shown) <= 60
    assert all(any(figure in line for line in shown[:4]) for figure in ("40", "10", "20", "30"))
