"""Sampled metrics come back as counters of kernels: planted loads, of nsys and of Kineto."""

import csv
import json
import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.builders import LAYOUTS, Layout, Work, nsys_db
from tests.capture_files.metrics import kineto_counters, nsys_metrics, sampled
from tests.capture_files.model import Rows, Value
from tests.commands import run
from tests.readers import kineto_json

LOADS = {"gemm": (80.0, 10.0, 4.0), "copy": (0.0, 55.0, 30.0), "norm": (0.0, 40.0, 8.0)}
"""Planted, by kernel: Tensor Core activity, reads and writes, percent of the peak."""
PEAK = 2_039e9
"""Bytes/s of the device that captures of tests are of."""
_INTERVAL_NS = 100_000


def _work(seed: int = 1, steps: int = 800, us: float = 20.0) -> list[Work]:
    """Give kernels one after the other, each some microseconds long, with gaps between them."""
    rng = np.random.default_rng(seed)
    work, at = [], 5_000
    for _ in range(steps):
        for name in LOADS:
            length = int(us * 1000 * rng.uniform(0.5, 1.5))
            work.append(Work(name, (at, at + length), (at - 1500, at - 1000)))
            at += length + int(rng.uniform(2_000, 9_000))
    return work


def _metrics(work: list[Work]) -> dict[str, tuple[list[int], list[float]]]:
    return {
        name: sampled(work, _load(place), _INTERVAL_NS)
        for place, name in enumerate(("tensor_pct", "read_pct", "write_pct"))
    }


def _load(place: int) -> Callable[[Work], float]:
    return lambda piece: LOADS[piece.name][place]


def _capture(
    path: Path, work: list[Work], tables: Mapping[str, Rows], layout: str = "2024.6"
) -> Path:
    known: Layout = LAYOUTS[layout]
    return nsys_db(path, work, (), replace(known, more={**known.more, **tables}))


def _rows(path: Path, columns: str) -> list[dict[str, str]]:
    done = run("prof", "-q", "--csv", "-c", columns, path)
    assert done.code == 0, done.stderr
    return [*csv.DictReader(done.stdout.splitlines())]


_COLUMNS = "kernel,sil,tensor,tensorerr,dram,dramerr,tcmeas,clock,via,counter"


def _check(rows: list[dict[str, str]]) -> None:
    """Compare with the planted loads: within three standard errors, which are small."""
    for row in rows:
        tensor, read, write = LOADS[row["Kernel"]]
        traffic = (read + write) / 100 * PEAK * float(row["Sil(ns)"]) / 1e9
        error = float(row["DRAM±(%)"]) / 100 * float(row["DRAM(B)"])
        assert abs(float(row["DRAM(B)"]) - traffic) <= 3 * error + 1
        assert error < 0.1 * traffic
        activity = float(row["Tensor(%)"])
        assert activity == pytest.approx(tensor, abs=2)
        assert (row["Via"], row["Counter"]) == ("sampled", "samples")
        assert row["TCm"] in {"gemm": "1", "copy": ("0", ""), "norm": ("0", "")}[row["Kernel"]]


@pytest.mark.parametrize("time", ["timestamp", "rawTimestamp"])
def test_nsys_metrics_of_kernels_shorter_than_their_interval(time: str, tmp_path: Path) -> None:
    """What each kernel did is told apart, with its error; every kernel has it."""
    work = _work()
    tables = nsys_metrics(_metrics(work), time=time)
    rows = _rows(_capture(tmp_path / "net.sqlite", work, tables), _COLUMNS)
    assert len(rows) == len(work)
    _check(rows)


def test_metrics_are_known_by_type_and_id(tmp_path: Path) -> None:
    """Another GPU may have other metrics under the same ids."""
    work = _work(steps=300)
    tables = nsys_metrics(_metrics(work))
    other = nsys_metrics({"other": ([100_000, 200_000], [99.0, 99.0])}, gpu=1)
    both = {name: tables[name] + other[name] for name in tables}
    _check(_rows(_capture(tmp_path / "net.sqlite", work, both), _COLUMNS))


def test_metrics_of_a_gpu_by_its_number_in_cuda(tmp_path: Path) -> None:
    """Nsys counts GPUs of the machine, kernels those that the process sees."""
    work = [replace(piece, device=2) for piece in _work(steps=300)]
    gpu: dict[str, Value] = {
        "id": 3,
        "cuDevice": 2,
        "name": "NVIDIA A100-SXM4-80GB",
        "memoryBandwidth": int(PEAK),
        "smCount": 108,
        "clockRate": 1410,
        "computeMajor": 8,
        "computeMinor": 0,
    }
    tables: dict[str, Rows] = {**nsys_metrics(_metrics(work), gpu=3), "TARGET_INFO_GPU": [gpu]}
    layout = replace(LAYOUTS["2024.6"], gpus=None, more=tables)
    _check(_rows(nsys_db(tmp_path / "net.sqlite", work, (), layout), _COLUMNS))


def test_clocks(tmp_path: Path) -> None:
    """The clock is the mean of its samples while a kernel ran, not a sum."""
    work = _work(steps=300)
    times, _ = _metrics(work)["tensor_pct"]
    tables = nsys_metrics({"clock_mhz": (times, [1095.0] * len(times))})
    rows = _rows(_capture(tmp_path / "net.sqlite", work, tables), "clock,tensor")
    assert {row["Clock(MHz)"] for row in rows} == {"1095"}
    assert {row["Tensor(%)"] for row in rows} == {""}


def test_two_metrics_that_mean_the_same(tmp_path: Path) -> None:
    """Each instant counts once."""
    work = _work(steps=300)
    times, _ = _metrics(work)["tensor_pct"]
    tables = nsys_metrics({"clock_mhz": (times, [1095.0] * len(times))})
    again = nsys_metrics({"clock_mhz": (times, [1410.0] * len(times))}, first_id=9)
    both = {name: tables[name] + again[name] for name in tables}
    rows = _rows(_capture(tmp_path / "net.sqlite", work, both), "clock")
    assert len({row["Clock(MHz)"] for row in rows}) == 1
    assert rows[0]["Clock(MHz)"] in ("1095", "1410")


def test_long_kernels_have_their_own_samples(tmp_path: Path) -> None:
    """Calls of one kernel that do different things are told apart, if they last for many samples.

    One beside which another ran has what all of its kind have.
    """
    work = [Work("gemm", (at * 3_000_000, at * 3_000_000 + 2_500_000)) for at in range(1, 9)]
    work.append(Work("other", (4 * 3_000_000 + 7, 4 * 3_000_000 + 900_000), stream=9))
    planted = {piece.at: 10.0 + 10 * place for place, piece in enumerate(work[:8])}
    samples = sampled(work[:8], lambda piece: planted[piece.at], _INTERVAL_NS)
    path = _capture(tmp_path / "net.sqlite", work, nsys_metrics({"tensor_pct": samples}))
    rows = [row for row in _rows(path, "kernel,start,tensor") if row["Kernel"] == "gemm"]
    activity = [float(row["Tensor(%)"]) for row in rows]
    alone = [place for place in range(8) if place != 3]
    assert [activity[place] for place in alone] == [10.0 + 10 * place for place in alone]
    assert activity[3] == pytest.approx(45, abs=10)


def test_too_few_samples_say_nothing(tmp_path: Path) -> None:
    """Of three kernels within two samples nothing is known."""
    work = _work(steps=1)
    tables = nsys_metrics(_metrics(work))
    rows = _rows(_capture(tmp_path / "net.sqlite", work, tables), "tensor,dram,counter,via")
    assert [set(row.values()) for row in rows] == [{""}] * len(work)


def _trace(work: list[Work]) -> list[kineto_json.Event]:
    events = []
    for number, piece in enumerate(work, 1):
        start, end = piece.at
        events.append(kineto_json.launch(number, (start - 1500) / 1000))
        events.append(
            kineto_json.kernel(number, start / 1000, (end - start) / 1000, name=piece.name)
        )
    return events


_A100 = {"id": 0, "name": "NVIDIA A100-SXM4-80GB", "numSms": 108, "computeMajor": 8,
         "computeMinor": 0}  # fmt: skip


def _written(path: Path, events: list[kineto_json.Event]) -> Path:
    path.write_text(kineto_json.text(events, deviceProperties=[_A100]))
    return path


@pytest.mark.parametrize("key", [None, ""])
def test_kineto_counters(key: str | None, tmp_path: Path) -> None:
    """The same of counter events, the value under the metric's name or under none."""
    work = _work(steps=1500, us=60)
    total = sampled(work, lambda piece: sum(LOADS[piece.name][1:]), 1_000_000)
    tensor = sampled(work, lambda piece: LOADS[piece.name][0], 1_000_000)
    events = [
        *_trace(work),
        *kineto_counters("DRAM BW (%)", total, key=key),
        *kineto_counters("sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed", tensor),
    ]
    _check(_rows(_written(tmp_path / "a.json", events), _COLUMNS))


def test_power_and_energy(tmp_path: Path) -> None:
    """Watts while a kernel ran, times its time, are its energy."""
    work = _work(steps=400)
    times, _ = sampled(work, lambda _: 0.0, _INTERVAL_NS)
    power = kineto_counters("Power (W)", (times, [300.0] * len(times)), key="", pid=0)
    rows = _rows(_written(tmp_path / "a.json", [*_trace(work), *power]), "sil,power,energy")
    for row in rows:
        assert float(row["Power(W)"]) == 300
        assert float(row["Energy(mJ)"]) == pytest.approx(300 * float(row["Sil(ns)"]) / 1e6)


def _rising_power(path: Path) -> tuple[Path, list[Work]]:
    """Write a trace of which the second half of the steps draws 350 W instead of 200 W."""
    work = _work(steps=400)
    times, _ = sampled(work, lambda _: 0.0, _INTERVAL_NS)
    middle = work[len(work) // 2].at[0]
    noise = np.random.default_rng(1).normal(0, 2, len(times)).tolist()
    watts = [(200.0 if at <= middle else 350.0) + off for at, off in zip(times, noise, strict=True)]
    clock = [1980.0 if at <= middle else 1410.0 for at in times]
    steps = []
    for number in range(4):
        first, last = work[number * len(work) // 4], work[(number + 1) * len(work) // 4 - 1]
        begin, end = (first.at[0] - 1600) / 1000, (last.at[0] - 900) / 1000
        steps.append({"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{number}",
                      "pid": 1, "tid": 1, "ts": begin, "dur": end - begin})  # fmt: skip
    events = [
        *steps,
        *_trace(work),
        *kineto_counters("Power (W)", (times, watts), key="", pid=0),
        *kineto_counters("SM Clock (MHz)", (times, clock), key="", pid=0),
    ]
    return _written(path, events), work


def test_power_and_clock_that_change_are_those_of_their_time(tmp_path: Path) -> None:
    """Not of the mean over the capture, which no step has drawn."""
    path, work = _rising_power(tmp_path / "a.json")
    rows = _rows(path, "start,power,clock")
    power = [float(row["Power(W)"]) for row in rows]
    clock = [float(row["Clock(MHz)"]) for row in rows]
    half = len(work) // 2
    assert max(power[: half - 10]) == pytest.approx(200, abs=4)
    assert min(power[half + 10 :]) == pytest.approx(350, abs=4)
    assert min(clock[: half - 10]) == pytest.approx(1980, rel=0.01)
    assert max(clock[half + 10 :]) == pytest.approx(1410, rel=0.01)


def test_energy_of_chosen_steps_is_theirs(tmp_path: Path) -> None:
    path, work = _rising_power(tmp_path / "a.json")
    for steps, watts in (("0:2", 200), ("2:4", 350)):
        done = run("summary", "-q", "--json", "--steps", steps, path)
        measured = json.loads(done.stdout)["measured"]
        low, high = (int(end) * len(work) // 4 for end in steps.split(":"))
        busy_s = sum(piece.at[1] - piece.at[0] for piece in work[low:high]) / 1e9
        assert measured["energy_j"] == pytest.approx(watts * busy_s, rel=0.02)
        (device,) = measured["power"]
        assert device["mean_w"] == pytest.approx(watts, rel=0.02)
        span_s = (work[high - 1].at[1] - work[low].at[0]) / 1e9
        assert device["energy_j"] == pytest.approx(watts * span_s, rel=0.02)


def test_counters_of_each_kernel(tmp_path: Path) -> None:
    """CUPTI's range profiler writes what it measured beside the kernel."""
    measured = {"kineto__tensor_core_insts": 2048.0, "dram__bytes_read.sum": 1e6,
                "dram__bytes_write.sum": 5e5}  # fmt: skip
    first, second = kineto_json.kernel(1, 10), kineto_json.kernel(2, 20)
    first["args"] |= measured
    events = [kineto_json.launch(1, 1), kineto_json.launch(2, 3), first, second]
    rows = _rows(_written(tmp_path / "a.json", events), "dram,tcmeas,counter,via")
    assert [*rows[0].values()] == ["1500000", "1", "args", "measured"]
    assert [*rows[1].values()] == [""] * 4


@pytest.mark.parametrize(("name", "cc", "used"), [("B200", 10, ""), ("H100", 9, "0")])
def test_a_trace_counts_one_of_two_pipes(name: str, cc: int, used: str, tmp_path: Path) -> None:
    """A B200's Tensor Cores have a second one: none in the first says nothing."""
    kernel = kineto_json.kernel(1, 10)
    kernel["args"] |= {"kineto__tensor_core_insts": 0.0}
    gpu = {"id": 0, "name": f"NVIDIA {name}", "computeMajor": cc, "computeMinor": 0}
    path = tmp_path / "a.json"
    path.write_text(kineto_json.text([kineto_json.launch(1, 1), kernel], deviceProperties=[gpu]))
    assert _rows(path, "tcmeas") == [{"TCm": used}]


@pytest.mark.parametrize("value", ["x", None, True, math.inf, -5, 1e30, {}, [1]])
def test_values_that_are_none(value: object, tmp_path: Path) -> None:
    """A damaged sample is no sample."""
    event = {"ph": "C", "name": "Power (W)", "pid": 0, "ts": 5, "args": {"": value}}
    odd = {"ph": "C", "name": ["Power (W)"], "pid": "GPU 99999", "ts": 5, "args": {"a": 1}}
    path = _written(tmp_path / "a.json", [*_trace(_work(steps=1)), event, odd])
    assert {row["Power(W)"] for row in _rows(path, "power")} == {""}
