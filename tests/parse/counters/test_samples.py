"""Sampled metrics become counters of kernels: planted loads, in nsys and Kineto."""

from pathlib import Path

import numpy as np
import pytest

from tests.builders import Work
from tests.capture_files.metrics import kineto_counters, nsys_metrics, sampled
from tests.commands import run
from tests.parse.counters import planted
from tests.readers.kineto_json import event


@pytest.mark.parametrize("time", ["timestamp", "rawTimestamp"])
def test_nsys_metrics_of_kernels_shorter_than_their_interval(time: str, tmp_path: Path) -> None:
    work = planted.work_of()
    tables = nsys_metrics(planted.metrics(work), time=time)
    rows = planted.rows(planted.capture(tmp_path / "net.sqlite", work, tables), planted.COLUMNS)
    assert len(rows) == len(work)
    planted.check(rows)


def test_long_kernels_have_their_own_samples(tmp_path: Path) -> None:
    """Calls of one kernel that differ are separated if they last for many samples.

    A call that overlaps another has the estimate of its kind.
    """
    work = [Work("gemm", (at * 3_000_000, at * 3_000_000 + 2_500_000)) for at in range(1, 9)]
    work.append(Work("other", (4 * 3_000_000 + 7, 4 * 3_000_000 + 900_000), stream=9))
    loads = {piece.at: 10.0 + 10 * place for place, piece in enumerate(work[:8])}
    samples = sampled(work[:8], lambda piece: loads[piece.at], planted.INTERVAL_NS)
    path = planted.capture(tmp_path / "net.sqlite", work, nsys_metrics({"tensor_pct": samples}))
    rows = [row for row in planted.rows(path, "kernel,start,tensor") if row["Kernel"] == "gemm"]
    activity = [float(row["Tensor(%)"]) for row in rows]
    alone = [place for place in range(8) if place != 3]
    assert [activity[place] for place in alone] == [10.0 + 10 * place for place in alone]
    assert activity[3] == pytest.approx(45, abs=10)


def test_power_and_energy(tmp_path: Path) -> None:
    """Watts during a kernel times its duration are its energy."""
    work = planted.work_of(steps=400)
    times, _ = sampled(work, lambda _: 0.0, planted.INTERVAL_NS)
    power = kineto_counters("Power (W)", (times, [300.0] * len(times)), key="", pid=0)
    rows = planted.rows(
        planted.written(tmp_path / "a.json", [*planted.trace(work), *power]), "sil,power,energy"
    )
    for row in rows:
        assert float(row["Power(W)"]) == 300
        assert float(row["Energy(mJ)"]) == pytest.approx(300 * float(row["Sil(ns)"]) / 1e6)


def _rising_power(path: Path) -> tuple[Path, list[Work]]:
    """Write a trace in which the second half of the steps draws 350 W instead of 200 W."""
    work = planted.work_of(steps=400)
    times, _ = sampled(work, lambda _: 0.0, planted.INTERVAL_NS)
    middle = work[len(work) // 2].at[0]
    noise = np.random.default_rng(1).normal(0, 2, len(times)).tolist()
    watts = [(200.0 if at <= middle else 350.0) + off for at, off in zip(times, noise, strict=True)]
    clock = [1980.0 if at <= middle else 1410.0 for at in times]
    steps = []
    for number in range(4):
        first, last = work[number * len(work) // 4], work[(number + 1) * len(work) // 4 - 1]
        begin, end = (first.at[0] - 1600) / 1000, (last.at[0] - 900) / 1000
        steps.append(event("user_annotation", f"ProfilerStep#{number}", begin, end - begin))
    events = [
        *steps,
        *planted.trace(work),
        *kineto_counters("Power (W)", (times, watts), key="", pid=0),
        *kineto_counters("SM Clock (MHz)", (times, clock), key="", pid=0),
    ]
    return planted.written(path, events), work


def test_power_and_clock_that_change_are_those_of_their_time(tmp_path: Path) -> None:
    """Not the mean over the capture, which no step may have had."""
    path, work = _rising_power(tmp_path / "a.json")
    rows = planted.rows(path, "start,power,clock")
    power = [float(row["Power(W)"]) for row in rows]
    clock = [float(row["Clock(MHz)"]) for row in rows]
    half = len(work) // 2
    assert max(power[: half - 10]) == pytest.approx(200, abs=4)
    assert min(power[half + 10 :]) == pytest.approx(350, abs=4)
    assert min(clock[: half - 10]) == pytest.approx(1980, rel=0.01)
    assert max(clock[half + 10 :]) == pytest.approx(1410, rel=0.01)


@pytest.mark.slow
def test_energy_of_chosen_steps_is_theirs(tmp_path: Path) -> None:
    path, work = _rising_power(tmp_path / "a.json")
    for steps, watts in (("0:2", 200), ("2:4", 350)):
        measured = run("summary", "-q", "--json", "--steps", steps, path).json["measured"]
        low, high = (int(end) * len(work) // 4 for end in steps.split(":"))
        busy_s = sum(piece.at[1] - piece.at[0] for piece in work[low:high]) / 1e9
        assert measured["energy_j"] == pytest.approx(watts * busy_s, rel=0.02)
        (device,) = measured["power"]
        assert device["mean_w"] == pytest.approx(watts, rel=0.02)
        span_s = (work[high - 1].at[1] - work[low].at[0]) / 1e9
        assert device["energy_j"] == pytest.approx(watts * span_s, rel=0.02)
