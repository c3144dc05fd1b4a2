"""`pyprof summary --json`: the summary, for programs."""

import csv
import io
from pathlib import Path
from typing import Any

import pytest

from tests.allocations import built
from tests.analysis.captured import HOSTILE, capture, op
from tests.answers.checked import ask
from tests.builders import Range, Work, nsys_db
from tests.capture_files.ncu import METRICS, Profiled, ncu_csv
from tests.commands import run


def _few_blocks(path: Path) -> Path:
    """Write a capture with a kernel that has fewer blocks than the GPU has SMs."""
    work = [
        Work("relu_kernel", (1000 * n, 1000 * n + 900), (1000 * n - 90, 1000 * n - 80),
             grid=(1, 1, 1), block=(256, 1, 1))
        for n in range(1, 4)
    ]  # fmt: skip
    work[1] = Work("long_kernel", (2000, 62_000), (1910, 1920), grid=(1, 1, 1), block=(256, 1, 1))
    return nsys_db(path, work, [Range(op("relu", 4), (900, 3000))])


def _check_sums(answer: dict[str, Any]) -> None:
    """Check that every row's time is in one op, line, part and family, and in the root layer."""
    total_ns = answer["known_cost"]["total_ns"]
    for name in ("ops", "lines", "parts"):
        assert sum(each["time_ns"] for each in answer[name]) == total_ns, name
    assert sum(op["share"] for op in answer["ops"]) == pytest.approx(1)
    assert sum(answer["families_ns"].values()) == total_ns
    root = answer["layers"][0]
    assert (root["path"], root["time_ns"]) == ([], total_ns)
    assert sum(layer["own_ns"] for layer in answer["layers"]) == total_ns
    assert sum(op["kernels"] for op in answer["ops"]) == root["rows"]
    for device in answer["devices"] or ():
        assert device["busy_ns"] + device["idle_ns"] == device["span_ns"]
        assert sum(device["idle_by_cause_ns"].values()) == device["idle_ns"]


def test_times_add_up(tmp_path: Path) -> None:
    answer = ask("summary", capture(tmp_path / "a.sqlite", steps=3))
    assert answer["known_cost"]["total_ns"] == 3 * 750
    _check_sums(answer)


def test_layers_have_their_paths(tmp_path: Path) -> None:
    """Names from the root; `--by layer:N` leaves out deeper ones."""
    a = capture(tmp_path / "a.sqlite")
    paths = [layer["path"] for layer in ask("summary", a)["layers"]]
    assert ["net", "first"] in paths
    assert ["net", "second"] in paths
    shallow = [layer["path"] for layer in ask("summary", a, "--by", "layer:1")["layers"]]
    assert shallow == [path for path in paths if len(path) < 2]


def test_the_highest_peak_of_memory(tmp_path: Path) -> None:
    """As in `pyprof memory`; null if none was recorded."""
    net = capture(tmp_path / "net.sqlite")
    assert ask("summary", net)["memory"] is None
    device = built.training(5, leak=1000)
    snapshot = built.write(tmp_path / "net.memory.pickle", device, built.Device(number=1))
    peak, highest = ask("summary", net)["memory"], ask("memory", snapshot)["devices"][0]
    for name in ("device", "rank", "peak_bytes", "peak_time_ns", "peak_reserved_bytes"):
        assert peak[name] == highest[name]
    assert sum(peak["categories_bytes"].values()) == peak["peak_bytes"]
    assert sum(peak["lines_bytes"].values()) == peak["peak_bytes"]
    assert peak["growing_line"] == "/home/user/train.py:11"
    assert peak["growth_bytes_per_step"] == 1000
    assert len(ask("summary", net, "--top", "1")["memory"]["lines_bytes"]) == 1


def test_unknown_values_have_a_reason(tmp_path: Path) -> None:
    """Without steps no figure of a step; an op of unknown cost has its reason."""
    answer = ask("summary", capture(tmp_path / "a.sqlite"))
    assert answer["steps"]["count"] == 0
    assert answer["steps"]["mean_ns"] is None
    (nobody,) = [op for op in answer["ops"] if op["op"] is None and op["kernel"] in HOSTILE]
    assert nobody["step_ns"] is None
    assert (nobody["flops_per_s"], nobody["why"]) == (None, "no marker")
    (relu,) = [op for op in answer["ops"] if op["op"] == "relu"]
    assert relu["why"] is None
    assert relu["flops_per_s"] > 0


def test_top_limits_ops_lines_and_host_ops(tmp_path: Path) -> None:
    a = capture(tmp_path / "a.sqlite")
    every, few = ask("summary", a), ask("summary", a, "--top", "1")
    for name in ("ops", "lines", "host_ops"):
        assert few[name] == every[name][:1]
        assert few[f"{name}_left_out"] == len(every[name]) - 1


def test_advice_leads_to_rows(tmp_path: Path) -> None:
    """`row_ids` are `idx` in prof, the longest row first; in a set numbers continue."""
    a, b = (_few_blocks(tmp_path / f"net.rank{n}.sqlite") for n in (0, 1))
    for files in ([a], [a, b]):
        answer = ask("summary", *files)
        (few,) = [entry for entry in answer["advice"] if entry["rule"] == "low_occupancy"]
        (evidence,) = few["evidence"]
        rows = run("prof", *files, "--csv", "-q", "-c", "idx,kernel").rows
        kernels = {int(row["Idx"]): row["Kernel"] for row in rows}
        assert [kernels[idx] for idx in evidence["row_ids"]] == ["long_kernel"] * len(files)
        assert evidence["count"] == len(files)


def test_host_times_are_those_of_the_table(tmp_path: Path) -> None:
    """Op by op; parsed records have none."""
    path = capture(tmp_path / "a.sqlite", steps=3)
    names = ("op", "cpu_calls", "cpu_self", "cpu_total")
    written = run("prof", "--by", "op", "-c", ",".join(names), "--csv", path).stdout
    _, *table = csv.reader(io.StringIO(written))
    rows = {tuple(row) for row in table if row[1]}
    answer = ask("summary", path)
    keys = ("calls", "self_ns", "total_ns")
    assert {(each["op"], *(str(each[key]) for key in keys)) for each in answer["host_ops"]} == rows
    assert run("parse", path, "-o", tmp_path / "a.dict").code == 0
    assert ask("summary", tmp_path / "a.dict")["host_ops"] is None


def test_counters_have_sums_and_means(tmp_path: Path) -> None:
    answer = ask("summary", ncu_csv(tmp_path / "ncu.csv", [Profiled(metrics=METRICS)]))
    assert answer["devices"] is None  # idle time is unknown
    counted = answer["measured"]
    assert (counted["kernel_count"], [*counted["sources_ns"]]) == (1, ["ncu"])
    assert counted["dram_bytes"] > 0
    assert counted["clock_hz"] > 1e8
    assert ask("summary", capture(tmp_path / "a.sqlite"))["measured"] is None
