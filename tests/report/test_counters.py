"""What counters measured, in every report: summary, page, groups, diff, doctor, roofline."""

from __future__ import annotations

import csv
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from pyprof.inputs.source import load
from pyprof.marker import Call, Tensor, encode_op
from pyprof.report.analysis.counter_totals import counter_totals
from pyprof.report.analysis.overview import summarise_brief
from pyprof.report.analysis.roofline import achieved, points
from pyprof.report.render.counters import sentences
from tests.builders import LAYOUTS, Range, Work, nsys_db
from tests.capture_files.metrics import kineto_counters, nsys_metrics
from tests.capture_files.ncu import Profiled, ncu_csv
from tests.commands import run
from tests.readers import kineto_json

if TYPE_CHECKING:
    from pathlib import Path

_GEMM = "ampere_fp16_s16816gemm_fp16_128x128_ldg8_f2f_stages_32x5_tn"
_SIZE = 1024
_X = Tensor((_SIZE, _SIZE), "float16")
_OP = encode_op(Call("torch", "mm", (_X, _X)))
LEAST = 3 * _SIZE * _SIZE * 2
FLOPS = 2 * _SIZE**3
_STEPS = 4


def _capture(path: Path, kernel: str = _GEMM, more: object = None) -> Path:
    """Write steps of one product of 10 microseconds."""
    work, ranges = [], []
    for step in range(_STEPS):
        at = 100_000 * (step + 1)
        work.append(Work(kernel, (at + 1000, at + 11_000), (at + 100, at + 200)))
        ranges += [Range(_OP, (at, at + 500)), Range("step", (at - 10, at + 50_000))]
    layout = LAYOUTS["2024.6"]
    return nsys_db(path, work, ranges, replace(layout, more=more) if more else layout)  # type: ignore[arg-type]


def _counters(path: Path, factor: float = 2.0, kernel: str = _GEMM, **more: float) -> Path:
    metrics = {"dram__bytes.sum": factor * LEAST, "sm__inst_executed_pipe_tensor.sum": 4096.0,
               "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active": 61.0,
               "sm__cycles_elapsed.avg.per_second": 1.095e9, **more}  # fmt: skip
    return ncu_csv(path, [Profiled(kernel, metrics=metrics)] * _STEPS)


def test_columns_that_nothing_measured_are_empty(tmp_path: Path) -> None:
    """Of groups, if they are asked for by name."""
    done = run("prof", "-q", "--by", "op", "-c", "op,dram,calls", "--csv",
               _capture(tmp_path / "x.sqlite"))  # fmt: skip
    assert done.code == 0
    rows = [*csv.DictReader(done.stdout.splitlines())]
    assert {row["DRAM(B)"] for row in rows} == {""}
    assert all(row["Calls"] for row in rows)


def test_columns_beside_the_model(tmp_path: Path) -> None:
    """Measured traffic stands beside the least, their ratio, and Tensor Cores beside `tc`."""
    done = run(
        *("prof", "-q", "--csv", "-c", "op,tc,tcmeas,bytes,dram,excess,tensor,occ,waves,effclk"),
        *("--counters", _counters(tmp_path / "ncu.csv"), _capture(tmp_path / "a.sqlite")),
    )
    for row in csv.DictReader(done.stdout.splitlines()):
        assert (row["TC"], row["TCm"], row["Tensor(%)"]) == ("1", "1", "61")
        assert int(row["DRAM(B)"]) == 2 * int(row["Bytes"]) == 2 * LEAST
        assert float(row["Excess"]) == 2
        assert row["EffClk(%)"] == "", "the clock of another run"
        # 128 threads of 32 registers with 1 KiB: 16 blocks of 4 warps on each of 108 SMs
        assert float(row["Occ(%)"]) == 100
        assert float(row["Waves"]) == pytest.approx(8 / (16 * 108))


def test_summary_has_a_section(tmp_path: Path) -> None:
    """It says what was measured by what, and each op's numbers."""
    counters, capture = _counters(tmp_path / "ncu.csv"), _capture(tmp_path / "a.sqlite")
    text = run("summary", "-q", "--counters", counters, capture).stdout
    section = text[text.index("\nMeasured") :]
    assert "100.0 % of GPU time by ncu in another run" in section
    header, row = section.splitlines()[3:5]
    assert header.split()[:6] == ["Op", "Direction", "ms", "DRAM", "GB/s", "Excess"]
    assert row.split() == ["mm", "forward", "0.040", "50.3", "MB", "1,258", "2", "61.0", "100.0",
                           "1,095"]  # fmt: skip
    assert "Measured" not in run("summary", "-q", capture).stdout


def test_explain_compares_with_counters(tmp_path: Path) -> None:
    """One row's counters, each with what it is; without any there is no such section."""
    counters, capture = _counters(tmp_path / "ncu.csv"), _capture(tmp_path / "a.sqlite")
    text = run("prof", "--explain", "1", "--counters", counters, capture).stdout
    section = text[text.index("6. Compare with counters") :]
    assert "measured by: joined" in section
    assert "Tensor Cores active: 61 %" in section
    assert "6. Compare" not in run("prof", "--explain", "1", capture).stdout


def test_page_has_a_section(tmp_path: Path) -> None:
    """The same, sortable; without counters there is none."""
    counters, capture = _counters(tmp_path / "ncu.csv"), _capture(tmp_path / "a.sqlite")
    page = tmp_path / "a.html"
    assert run("report", "-q", "--counters", counters, capture, "-o", page).code == 0
    html = page.read_text()
    assert '<section id="measured"' in html
    assert "by ncu in another run" in html
    assert run("report", "-q", capture, "-o", page).code == 0
    assert '<section id="measured"' not in page.read_text()


def test_groups_have_traffic(tmp_path: Path) -> None:
    """`--by` adds measured traffic up, where there is any."""
    counters, capture = _counters(tmp_path / "ncu.csv"), _capture(tmp_path / "a.sqlite")
    done = run("prof", "-q", "--csv", "--by", "op", "--counters", counters, capture)
    (row,) = csv.DictReader(done.stdout.splitlines())
    assert int(row["DRAM(B)"]) == 2 * LEAST * _STEPS
    assert "DRAM" not in run("prof", "-q", "--csv", "--by", "op", capture).stdout


def test_diff_compares_it(tmp_path: Path) -> None:
    """Measured traffic is a metric, of which a gate can be made."""
    sides = []
    for name, factor in (("a", 2.0), ("b", 3.0)):
        counters = _counters(tmp_path / f"{name}.csv", factor)
        sides.append(tmp_path / f"{name}.parquet")
        capture = _capture(tmp_path / f"{name}.sqlite")
        assert run("parse", "-q", "--counters", counters, capture, "-o", sides[-1]).code == 0
    text = run("diff", "-q", *sides).stdout
    (line,) = [line for line in text.splitlines() if line.startswith("DRAM traffic, measured")]
    assert "+50.0" in line
    gated = run("diff", "-q", "--fail-if", "dram>+5%", *sides)
    assert gated.code == 3
    unknown = run("diff", "-q", "--fail-if", "dram>+5%", sides[0], _capture(tmp_path / "c.sqlite"))
    assert unknown.code == 1
    assert "cannot be checked" in unknown.stderr


def test_doctor_finds_names_that_are_wrong(tmp_path: Path) -> None:
    """A kernel whose name says Tensor Cores, and whose counters say none."""
    silent: dict[str, Any] = {"sm__inst_executed_pipe_tensor.sum": 0.0}
    counters, capture = _counters(tmp_path / "ncu.csv", **silent), _capture(tmp_path / "a.sqlite")
    text = run("doctor", "--counters", counters, capture).stdout
    assert f"{_GEMM} used no Tensor Cores, by counters, in 4 calls; its name says that" in text
    assert "used no Tensor Cores" not in run("doctor", capture).stdout


def test_the_measured_point_of_the_roofline(tmp_path: Path) -> None:
    """Twice the traffic is half the intensity; drawn beside the modelled point."""
    counters, capture = _counters(tmp_path / "ncu.csv"), _capture(tmp_path / "a.sqlite")
    target = tmp_path / "a.parquet"
    run("parse", "-q", "--counters", counters, capture, "-o", target)
    (point,) = points(achieved(load(str(target)).table, None), 9)
    assert point.intensity == pytest.approx(FLOPS / LEAST)
    assert point.measured == pytest.approx(FLOPS / LEAST / 2)
    (modelled,) = points(achieved(load(str(capture)).table, None), 9)
    assert modelled.measured is None
    assert run("roofline", "-q", target, "-o", tmp_path / "a.svg").code == 0
    assert "measured" in (tmp_path / "a.svg").read_text()
    assert run("roofline", "-q", target, "-o", tmp_path / "a.html").code == 0
    assert "by measured DRAM traffic" in (tmp_path / "a.html").read_text()


_TIMES = [*range(5_000, 600_000, 5_000)]


def test_efficiency_at_the_clock_that_ran(tmp_path: Path) -> None:
    """At half of the peak's clock a kernel's share of the roofline is twice as large."""
    metrics = nsys_metrics({"clock_mhz": (_TIMES, [705.0] * len(_TIMES))})
    capture = _capture(tmp_path / "a.sqlite", more=metrics)
    done = run("prof", "-q", "--csv", "-c", "eff,effclk,clock,bound", capture)
    for row in csv.DictReader(done.stdout.splitlines()):
        assert row["Bound"] in ("compute", "latency")
        assert float(row["EffClk(%)"]) == pytest.approx(2 * float(row["Eff(%)"]))
        assert float(row["Clock(MHz)"]) == 705
    text = run("summary", "-q", capture).stdout
    assert "the SM clock was 705 MHz, 50 % of the peak's" in " ".join(text.split())
    assert "the SM clock was 705 MHz" in run("doctor", capture).stdout


def test_power_caps_are_named(tmp_path: Path) -> None:
    """Power at its highest all the time, and a low clock: a cap. Energy per step is told."""
    events = []
    for step in range(_STEPS):
        at = 100 * (step + 1)
        events += [kineto_json.event("user_annotation", f"ProfilerStep#{step}", at - 1, 90),
                   kineto_json.op("aten::mm", at, 5), kineto_json.launch(step + 1, at + 1),
                   kineto_json.kernel(step + 1, at + 5, 10, name=_GEMM)]  # fmt: skip
    sampled = _TIMES, [400.0] * len(_TIMES)
    events += kineto_counters("Power (W)", sampled, key="", pid=0)
    events += kineto_counters("SM Clock (MHz)", (_TIMES, [1000.0] * len(_TIMES)), key="", pid=0)
    gpu = {"id": 0, "name": "NVIDIA A100-SXM4-80GB", "numSms": 108, "computeMajor": 8,
           "computeMinor": 0}  # fmt: skip
    path = tmp_path / "a.json"
    path.write_text(kineto_json.text(events, deviceProperties=[gpu]))
    text = " ".join(run("summary", "-q", path).stdout.split())
    assert "power stayed at 400 W, which looks like a power cap" in text
    assert "energy while kernels ran: 0.016 J, 0.004 J a step" in text
    assert "400 W on average, 400 W at most" in text
    totals = summarise_brief(load(str(path))).counters
    assert totals is not None
    assert any("0.002 J a token" in text for text in sentences(totals, _STEPS, 2 * _STEPS))
    done = run("prof", "-q", "--csv", "--by", "step", path)
    energies = {row["Step"]: row["Energy(mJ)"] for row in csv.DictReader(done.stdout.splitlines())}
    assert energies == {str(step): "4" for step in range(_STEPS)}


def test_totals_add_up(tmp_path: Path) -> None:
    """Two captures' sums are those of both."""
    counters, capture = _counters(tmp_path / "ncu.csv"), _capture(tmp_path / "a.sqlite")
    target = tmp_path / "a.parquet"
    run("parse", "-q", "--counters", counters, capture, "-o", target)
    totals = counter_totals(load(str(target)).table, None, None, None)
    assert totals is not None
    both = totals.plus(totals)
    assert both.total.dram_bytes == 2 * (totals.total.dram_bytes or 0)
    assert both.total.mean("tensor") == totals.total.mean("tensor") == pytest.approx(61)
    assert both.total.excess == pytest.approx(2)
    assert both.sources == {name: 2 * ns for name, ns in totals.sources.items()}
