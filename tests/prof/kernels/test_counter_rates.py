"""Efficiency, energy and traffic follow from measurements of the right run."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyprof.prof.kernels.counter_rates import split_evenly
from tests.analysis import product
from tests.capture_files.metrics import kineto_counters, nsys_metrics
from tests.commands import run
from tests.commands.test_prof import table
from tests.parse.counters import planted
from tests.readers import kineto_json


def test_efficiency_is_relative_to_the_clock_during_the_kernel(tmp_path: Path) -> None:
    """At half of the peak's clock it is twice as large."""
    metrics = nsys_metrics({"clock_mhz": (product.TIMES, [705.0] * len(product.TIMES))})
    capture = product.capture(tmp_path / "a.sqlite", more=metrics)
    for row in planted.rows(capture, "eff,effclk,clock,bound"):
        assert row["Bound"] in ("compute", "latency")
        assert float(row["EffClk(%)"]) == pytest.approx(2 * float(row["Eff(%)"]))
        assert float(row["Clock(MHz)"]) == 705
    text = run("summary", "-q", capture).stdout
    assert "the SM clock was 705 MHz, 50 % of the peak's" in " ".join(text.split())
    assert "the SM clock was 705 MHz" in run("doctor", capture).stdout


def test_samples_of_this_run_are_kept_beside_counters_of_another(tmp_path: Path) -> None:
    """Traffic is of ncu's run; clock and power, thus efficiency and energy, of this one."""
    metrics = nsys_metrics({"clock_mhz": (product.TIMES, [705.0] * len(product.TIMES))})
    capture = product.capture(tmp_path / "a.sqlite", more=metrics)
    columns = "dram,clock,effclk,eff,tensor,counter"
    counters = product.counters(tmp_path / "ncu.csv")
    for row in table("-q", "-c", columns, "--with", counters, capture):
        assert (int(row["DRAM(B)"]), row["Tensor(%)"]) == (2 * product.MIN_BYTES, "61")
        assert (row["Clock(MHz)"], row["Counter"]) == ("705", "joined")
        assert float(row["EffClk(%)"]) == pytest.approx(2 * float(row["Eff(%)"]))


def test_a_kernel_s_own_counters_beside_power(tmp_path: Path) -> None:
    kernel = kineto_json.kernel(1, 100, 100)
    kernel["args"] |= {"dram__bytes_read.sum": 1e6, "dram__bytes_write.sum": 5e5}
    events = [kineto_json.launch(1, 1), kernel]
    events += kineto_counters(
        "Power (W)", (product.TIMES, [400.0] * len(product.TIMES)), key="", pid=0
    )
    path = kineto_json.trace_file(tmp_path, events)
    (row,) = planted.rows(path, "dram,power,energy,counter")
    assert [*row.values()] == ["1500000", "400", "40", "args"]


_INTERVALS = st.lists(st.tuples(st.integers(0, 30), st.integers(1, 12)), min_size=1, max_size=9)


@given(_INTERVALS)
def test_each_instant_is_divided_evenly(intervals: list[tuple[int, int]]) -> None:
    start = np.array([first for first, _ in intervals])
    end = start + np.array([length for _, length in intervals])
    expected = np.zeros(len(start))
    for instant in range(50):
        here = (start <= instant) & (instant < end)
        expected[here] += 1 / max(int(here.sum()), 1)
    assert split_evenly(start, end) == pytest.approx(expected)


def test_kernels_side_by_side_share_the_energy(tmp_path: Path) -> None:
    """200 W for 1.5 ms are 0.3 J, however many kernels run at once; other devices are separate."""
    events: list[kineto_json.Event] = []
    for number, (at, length, stream, device) in enumerate(
        [(1000, 1000, 7, 0), (1000, 1000, 8, 0), (1500, 1000, 9, 0), (1000, 1000, 7, 1)], 1
    ):
        kernel = kineto_json.kernel(number, at, length)
        kernel |= {"pid": device, "tid": stream}
        kernel["args"] |= {"device": device, "stream": stream}
        events += [kineto_json.launch(number, 10 * number), kernel]
    times = [*range(0, 4_000_000, 50_000)]
    for device in range(2):
        power = times, [200.0] * len(times)
        events += kineto_counters("Power (W)", power, key="", pid=device)
    path = kineto_json.trace_file(tmp_path, events)
    energy_mj = {"0": 0.0, "1": 0.0}
    for row in planted.rows(path, "device,energy,power"):
        assert float(row["Power(W)"]) == 200
        energy_mj[row["Device"]] += float(row["Energy(mJ)"])
    assert energy_mj == pytest.approx({"0": 300, "1": 200})
    answer = " ".join(run("summary", "-q", path).stdout.split())
    assert "energy while kernels ran: 0.5 J" in answer
