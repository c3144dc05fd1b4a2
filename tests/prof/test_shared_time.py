"""Energy of what runs at once adds up to what the device used."""

import csv
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyprof.prof.shared_time import split_evenly
from tests.capture_files.metrics import kineto_counters
from tests.commands import run
from tests.readers import kineto_json

_INTERVALS = st.lists(st.tuples(st.integers(0, 30), st.integers(1, 12)), min_size=1, max_size=9)


@given(_INTERVALS)
def test_each_instant_is_divided_evenly(intervals: list[tuple[int, int]]) -> None:
    """As when every nanosecond is handed out one by one."""
    start = np.array([first for first, _ in intervals])
    end = start + np.array([length for _, length in intervals])
    expected = np.zeros(len(start))
    for instant in range(50):
        here = (start <= instant) & (instant < end)
        expected[here] += 1 / max(int(here.sum()), 1)
    assert split_evenly(start, end) == pytest.approx(expected)


def test_kernels_side_by_side_share_the_energy(tmp_path: Path) -> None:
    """At 200 W for 1.5 ms they used 0.3 J, however many ran; another device's are its own."""
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
    path = tmp_path / "a.json"
    path.write_text(kineto_json.text(events))
    done = run("prof", "-q", "--csv", "-c", "device,energy,power", path)
    rows = [*csv.DictReader(done.stdout.splitlines())]
    energy_mj = {"0": 0.0, "1": 0.0}
    for row in rows:
        assert float(row["Power(W)"]) == 200
        energy_mj[row["Device"]] += float(row["Energy(mJ)"])
    assert energy_mj == pytest.approx({"0": 300, "1": 200})
    answer = " ".join(run("summary", "-q", path).stdout.split())
    assert "energy while kernels ran: 0.5 J" in answer
