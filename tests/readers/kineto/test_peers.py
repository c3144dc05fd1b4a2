"""Real traces from file to records, compared with other tools on the same files."""

import csv
from collections import Counter, defaultdict
from functools import cache
from typing import Any

import pytest

from pyprof import marker
from pyprof.parse import parse_file
from tests.conftest import CAPTURES

VIT = CAPTURES / "kineto-h100-vit-inference"

pytestmark = pytest.mark.skipif(not CAPTURES.exists(), reason="the captures are not here")


@cache
def records(name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = parse_file(CAPTURES / name / "trace.json.gz").table().to_pylist()
    return found


def test_kernel_time_by_op_as_tracelens() -> None:
    """TraceLens's op summary: the same ops and calls, and times equal within its float32."""
    time: Counter[str] = Counter()
    calls = defaultdict(set)
    for row in records(VIT.name):
        seq = marker.decode_seq(row["seqMarker"][-1])
        time[seq.name] += row["kDuration"]
        calls[seq.name].add(seq.op_id)
    with (VIT / "tracelens_ops_summary.csv").open() as file:
        expected = {row["name"]: row for row in csv.DictReader(file)}
    assert set(time) == set(expected)
    for name, row in expected.items():
        assert len(calls[name]) == int(row["Count"]), name
        assert time[name] / 1e3 == pytest.approx(
            float(row["total_direct_kernel_time_sum"]), abs=1e-2
        )


def test_gpu_timeline_as_tracelens() -> None:
    """TraceLens's timeline: busy and total time of the GPU."""
    with (VIT / "tracelens_gpu_timeline.csv").open() as file:
        expected = {row["type"]: float(row["time ms"]) for row in csv.DictReader(file)}
    rows = records(VIT.name)
    span = max(row["end"] for row in rows) - min(row["start"] for row in rows)
    busy = sum(row["kDuration"] for row in rows)  # one stream: nothing overlaps
    assert busy / 1e6 == pytest.approx(expected["busy_time"], abs=1e-5)
    assert span / 1e6 == pytest.approx(expected["total_time"], abs=1e-5)


@pytest.mark.slow
def test_lines_on_backward_rows_of_2021() -> None:
    """The 2021 trace has stacks on forward ops only; backward rows find them by number."""
    rows = [row for row in records("kineto-v100-resnet50-2021") if row["dir"] == "bprop"]
    outermost = Counter((row["op"][0], row["fwdTrace"][0]) for row in rows)
    parameters, residuals, steps = 161, 16, 6
    model, loss = "resnet50_profiler_api.py:46", "resnet50_profiler_api.py:47"
    # What the engine does between nodes shares the place of the node before.
    assert outermost.pop(("AccumulateGrad", model)) == parameters * steps
    assert outermost.pop(("add", model)) == residuals * steps
    assert outermost.pop(("sum", model)) == steps  # of the last layer's bias
    places: Counter[str] = Counter()
    for (_, place), count in outermost.items():
        places[place] += count
    assert places == {model: 2148, loss: 12}


@pytest.mark.slow
def test_gradients_are_added_on_the_line_that_used_the_parameter() -> None:
    """Some forward op on that line has the parameter's shape, possibly transposed."""
    rows = records("kineto-v100-resnet50-2021")
    used: dict[tuple[str, ...], set[tuple[int, ...]]] = defaultdict(set)
    for row in rows:
        if row["dir"] == "fprop":
            used[tuple(row["trace"])] |= {tuple(sorted(size)) for size in row["sizes"]}
    for row in rows:
        if row["op"][0] == "AccumulateGrad":
            assert tuple(sorted(row["sizes"][0])) in used[tuple(row["fwdTrace"])]
