"""Figures of steps: very many are grouped, with their shares of the peak."""

from dataclasses import replace

import numpy as np
import pytest

from pyprof.answers.page.report_answer import DeviceSteps, UsedDevice
from pyprof.answers.summary_answer import StepTimes
from pyprof.render.page import figures
from tests.known import known

_NOTHING: tuple[float | None, ...] = (None,) * 15
_STEPS = StepTimes(
    count=15, origin="ranges", guessed=False, warm_up_count=11, covered_share=1.0, first=10,
    last=14, mean_ns=4.0, median_ns=3.0, duration_ns=(0,) * 10 + (5, 1, 2, 9, 3), mfu=_NOTHING,
    hfu=_NOTHING, mbu=_NOTHING, are_chosen=True,
)  # fmt: skip
"""The last five of fifteen steps are chosen, and the first of them is slow."""


def test_very_many_steps_are_grouped(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each bar is the longest of its steps; a rank without a step leaves a gap."""
    monkeypatch.setattr(figures, "_MAX_COLUMNS", 3)
    trend = figures.trend(replace(_STEPS, median_ns=7.0))
    assert trend["median"] == 3, "of the chosen steps"
    assert trend["warm_up"] == 0, "chosen steps all count"
    assert (trend["longest"].tolist(), trend["group"], trend["first"]) == ([5, 9, 3], 2, 10)
    assert trend["step"] == [10, 13, 14]
    durations = (np.array([5.0, 1, 2, 9, 3]), np.array([np.nan, np.nan, 4]))
    devices = (UsedDevice("GPU", 0, 0, 1), UsedDevice("GPU", 1, 1, 2))
    times = DeviceSteps("step", devices, durations, durations)
    assert figures.heat_map(times, 0, 5)["measures"]["step"] == [[5, 9, 3], [None, 4, None]]


def test_shares_of_the_peak_are_those_of_the_steps_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """A group has its longest step's; there is a line for HFU only if it differs."""
    monkeypatch.setattr(figures, "_MAX_COLUMNS", 3)
    mfu, hfu = (0.1, 0.2, 0.3, 0.4, None), (0.1, 0.2, 0.3, 0.5, None)
    none = (None,) * 10
    steps = replace(_STEPS, mfu=none + mfu, hfu=none + hfu)
    trend = figures.trend(steps)
    assert trend["shares"] == {"MFU": [10, 40, None], "HFU": [10, 50, None]}
    drawn = known(figures.shares_of_peak(trend))
    assert (drawn["label"], drawn["step"], [*drawn["colours"]]) == (
        "MFU and HFU of each step, percent of the peak", [10, 13, 14], ["MFU", "HFU"]
    )  # fmt: skip
    assert figures.shares_of_peak(figures.trend(_STEPS)) is None
    alike = figures.trend(replace(steps, hfu=steps.mfu, mbu=none + mfu))
    assert alike["shares"] == {"MFU": [10, 40, None], "MBU": [10, 40, None]}
