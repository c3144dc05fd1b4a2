"""What counters measured, in every report: summary, page, groups, diff, doctor, roofline."""

import csv
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pyprof.analysis.diff.side import summarise_side
from pyprof.analysis.summary.counter_totals import counter_totals, measured
from pyprof.analysis.summary.overview import summarise
from pyprof.analysis.summary.roofline_points import achieved, points
from pyprof.inputs.source import load
from pyprof.marker import Call, Tensor, encode_op
from pyprof.records.merging import merge_sums
from pyprof.render.text.counters_text import sentences
from tests.builders import LAYOUTS, Range, Work, nsys_db
from tests.capture_files.metrics import kineto_counters, nsys_metrics
from tests.capture_files.ncu import METRICS, Profiled, ncu_csv
from tests.commands import run
from tests.readers import kineto_json

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


def test_the_section_is_100_columns_wide(tmp_path: Path) -> None:
    """With all that can be measured, of an op with a long name, and with large numbers."""
    name = "a_kernel_with_a_long_name" * 4
    metrics = {**METRICS, "gpu__time_duration.sum": 86000.0, "dram__bytes.sum": 9.99e17}
    path = ncu_csv(tmp_path / "ncu.csv", [Profiled(name, metrics=metrics)])
    section = (
        run("summary", "-q", path).stdout.partition("\nMeasured\n")[2].partition("\n\nNo ad")[0]
    )
    assert "86,000,000" in section
    assert "999 PB" in section
    assert max(map(len, section.splitlines())) <= 100
    capture = _capture(tmp_path / "a.sqlite")
    counters = ncu_csv(tmp_path / "n.csv", [Profiled(_GEMM, metrics=METRICS)] * _STEPS)
    done = run("summary", "-q", "--top", "99", "--counters", counters, capture)
    assert max(map(len, done.stdout.splitlines())) <= 100


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


def test_diff_compares_only_what_both_know_as_much_of(tmp_path: Path) -> None:
    """Traffic of half of the kernels is not half of the traffic, whatever else was measured."""
    sides = []
    for name, known in (("a", _STEPS), ("b", 1)):
        metrics = {"dram__bytes.sum": 1e6, "lts__t_sector_hit_rate.pct": 50.0}
        some = dict(list(metrics.items())[1:])
        kernels = [Profiled(_GEMM, metrics=metrics if at < known else some)
                   for at in range(_STEPS)]  # fmt: skip
        counters = ncu_csv(tmp_path / f"{name}.csv", kernels)
        sides.append(tmp_path / f"{name}.parquet")
        capture = _capture(tmp_path / f"{name}.sqlite")
        assert run("parse", "-q", "--counters", counters, capture, "-o", sides[-1]).code == 0
    done = run("diff", "-q", "--fail-if", "dram>+5%", *sides)
    assert done.code == 1
    assert "cannot be checked" in done.stderr
    assert "dram is known for different shares of the rows" in done.stderr


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
    clock = [990.0 + 20 * (at % 2) for at in range(len(_TIMES))]
    events += kineto_counters("SM Clock (MHz)", (_TIMES, clock), key="", pid=0)
    gpu = {"id": 0, "name": "NVIDIA A100-SXM4-80GB", "numSms": 108, "computeMajor": 8,
           "computeMinor": 0}  # fmt: skip
    path = tmp_path / "a.json"
    path.write_text(kineto_json.text(events, deviceProperties=[gpu]))
    text = " ".join(run("summary", "-q", path).stdout.split())
    assert "power stayed at 400 W, which looks like a power cap" in text
    assert "energy while kernels ran: 0.016 J, 0.004 J a step" in text
    assert "400 W on average, 400 W at most" in text
    totals = summarise(load(str(path))).counters
    assert totals is not None
    found = measured(totals, 1, _STEPS, 2 * _STEPS)
    assert any("0.002 J a token" in text for text in sentences(found, 1))
    found_json = json.loads(run("summary", "-q", "--json", path).stdout)["measured"]
    assert (found_json["energy_j"], found_json["energy_step_j"]) == pytest.approx((0.016, 0.004))
    assert found_json["energy_token_j"] is None
    (device,) = found_json["power"]
    assert (device["device"], device["mean_w"], device["most_w"]) == (0, pytest.approx(400), 400)
    done = run("prof", "-q", "--csv", "--by", "step", path)
    energies = {row["Step"]: row["Energy(mJ)"] for row in csv.DictReader(done.stdout.splitlines())}
    assert energies == {str(step): "4" for step in range(_STEPS)}


def test_what_was_sampled_stays_beside_what_another_run_counted(tmp_path: Path) -> None:
    """Traffic is ncu's; clock and power, and so efficiency and energy, are of this run."""
    metrics = nsys_metrics({"clock_mhz": (_TIMES, [705.0] * len(_TIMES))})
    capture = _capture(tmp_path / "a.sqlite", more=metrics)
    columns = "dram,clock,effclk,eff,tensor,counter"
    done = run("prof", "-q", "--csv", "-c", columns, "--counters",
               _counters(tmp_path / "ncu.csv"), capture)  # fmt: skip
    for row in csv.DictReader(done.stdout.splitlines()):
        assert (int(row["DRAM(B)"]), row["Tensor(%)"]) == (2 * LEAST, "61")
        assert (row["Clock(MHz)"], row["Counter"]) == ("705", "joined")
        assert float(row["EffClk(%)"]) == pytest.approx(2 * float(row["Eff(%)"]))


def test_a_kernel_s_own_counters_beside_power(tmp_path: Path) -> None:
    """Of a trace that has both, kernels that CUPTI measured have energy, too."""
    kernel = kineto_json.kernel(1, 100, 100)
    kernel["args"] |= {"dram__bytes_read.sum": 1e6, "dram__bytes_write.sum": 5e5}
    events = [kineto_json.launch(1, 1), kernel]
    events += kineto_counters("Power (W)", (_TIMES, [400.0] * len(_TIMES)), key="", pid=0)
    path = tmp_path / "a.json"
    path.write_text(kineto_json.text(events))
    done = run("prof", "-q", "--csv", "-c", "dram,power,energy,counter", path)
    assert done.stdout.split()[1] == '"1500000","400","40","args"'


@pytest.mark.parametrize(("last", "a_token"), [("toks=24", 0.002 / 16), ("", None)])
def test_energy_of_a_token(last: str, a_token: float | None, tmp_path: Path) -> None:
    """Steps of a serving engine tell their tokens: if all do, they share the energy."""
    texts = [*["step[DECODE bs=8]"] * 3, f"step[EXTEND {last}]"]
    events = []
    for number, text in enumerate(texts, 1):
        at = 100 * number
        events += [
            kineto_json.event("user_annotation", text, at - 1, 90),
            kineto_json.launch(number, at + 1),
            kineto_json.kernel(number, at + 5, 10),
        ]
    times = [*range(1_000, 600_000, 1_000)]
    events += kineto_counters("Power (W)", (times, [200.0] * len(times)), key="", pid=0)
    path, page = tmp_path / "a.json", tmp_path / "a.html"
    path.write_text(kineto_json.text(events))
    measured = json.loads(run("summary", "-q", "--json", "--steps", "2:", path).stdout)["measured"]
    assert measured["energy_step_j"] == pytest.approx(0.002)
    assert measured["energy_token_j"] == (a_token and pytest.approx(a_token))
    said = "0.004 J, 0.002 J a step" + (", 0.000125 J a token" if a_token else "\n")
    assert said in run("summary", "-q", "--steps", "2:", path).stdout
    assert run("report", "-q", "--steps", "2:", path, "-o", page).code == 0
    assert said.strip() in page.read_text()


@pytest.mark.parametrize(("other", "a_token"), [(8, 2 * 0.002 / 8), (9, None)])
def test_energy_of_a_token_of_several_ranks(
    other: int, a_token: float | None, tmp_path: Path
) -> None:
    """Ranks share the tokens of a step, if they name as many; if not, nothing is said."""
    paths = []
    for rank, tokens in enumerate((8, other)):
        events = []
        for number in range(1, 5):
            at = 100 * number
            step = kineto_json.event("user_annotation", f"step[DECODE bs={tokens}]", at - 1, 90)
            events += [step, kineto_json.launch(number, at + 1),
                       kineto_json.kernel(number, at + 5, 10)]  # fmt: skip
        events += kineto_counters("Power (W)", (_TIMES, [200.0] * len(_TIMES)), key="", pid=0)
        info = {"rank": rank, "world_size": 2, "backend": "nccl"}
        paths.append(tmp_path / f"{rank}.json")
        paths[-1].write_text(kineto_json.text(events, distributedInfo=info))
    measured = json.loads(run("summary", "-q", "--json", *paths).stdout)["measured"]
    assert measured["energy_step_j"] == pytest.approx(0.004)
    assert measured["energy_token_j"] == (a_token and pytest.approx(a_token))


def test_energy_of_a_part_is_a_lower_bound(tmp_path: Path) -> None:
    """Of a kernel that too few samples saw the power is not known, nor that of the whole."""
    events = []
    for number, (at, length) in enumerate([(50, 30), (150, 10)], 1):
        kernel = kineto_json.kernel(number, at, length, name=f"k{number}")
        events += [kineto_json.launch(number, at - 10), kernel]
    events += kineto_counters("Power (W)", (_TIMES, [200.0] * len(_TIMES)), key="", pid=0)
    path = tmp_path / "a.json"
    path.write_text(kineto_json.text(events))
    text = " ".join(run("summary", "-q", path).stdout.split())
    assert "while kernels ran, known for 75.0 % of the time: at least 0.006 J" in text
    measured = json.loads(run("summary", "-q", "--json", path).stdout)["measured"]
    assert (measured["energy_j"], measured["energy_known_share"]) == (0.006, 0.75)


def _low_clock(path: Path, clock: list[float], **counters: list[float]) -> str:
    """Give what is said of a product on an A100 whose clock is below the peak's."""
    events = [kineto_json.launch(1, 1), kineto_json.kernel(1, 100, 400, name=_GEMM)]
    names = {"power": "Power (W)", "heat": "Temperature (C)", "reasons": "Clock Event Reasons"}
    series = {"SM Clock (MHz)": clock, "Power (W)": [400.0]}
    series |= {names[name]: values for name, values in counters.items()}
    for name, values in series.items():
        repeated = [values[at % len(values)] for at in range(100)]
        events += kineto_counters(name, (_TIMES[:100], repeated), key="", pid=0)
    gpu = {"id": 0, "name": "NVIDIA A100-SXM4-80GB", "computeMajor": 8, "computeMinor": 0}
    path.write_text(kineto_json.text(events, deviceProperties=[gpu]))
    answer = json.loads(run("summary", "-q", "--json", path).stdout)
    return str(answer["measured"]["throttled"]).partition("; ")[2]


def test_what_held_the_clock(tmp_path: Path) -> None:
    """What the driver named, if it was asked; else what it looks like; a fixed clock is neither."""
    path, moved = tmp_path / "a.json", [990.0, 1010.0]
    assert _low_clock(path, moved) == "power stayed at 400 W, which looks like a power cap"
    assert _low_clock(path, [1000.0]) == ""
    assert _low_clock(path, moved, heat=[91.0]).startswith("at 91 °C, which looks like thermal")
    reasons = [4.0, 4.0, 4.0 + 0x20, 0.0]
    assert _low_clock(path, moved, heat=[91.0], reasons=reasons) == (
        "the driver names a power cap in 75 %, heat in 25 % of the samples"
    )
    assert _low_clock(path, moved, reasons=[0.0]) == ""
    assert _low_clock(path, moved, reasons=[1.0, 2.0]) == (
        "the driver names clocks set by the user in 100 % of the samples"
    )


def test_power_of_each_rank_s_own_device(tmp_path: Path) -> None:
    """Each sampled all devices of the machine; a pause of the samples used no energy."""
    times = [*range(100_000, 1_000_000, 100_000), *range(9_000_000, 9_500_000, 100_000)]
    for rank in range(2):
        kernel = kineto_json.kernel(1, 100, 50)
        kernel["args"]["device"] = rank
        events = [kineto_json.launch(1, 1), kernel]
        for device in range(2):
            watts = [100.0 * (device + 1)] * len(times)
            events += kineto_counters("Power (W)", (times, watts), key="", pid=device)
        info = {"rank": rank, "world_size": 2, "backend": "nccl"}
        (tmp_path / f"{rank}.json").write_text(kineto_json.text(events, distributedInfo=info))
    paths = [tmp_path / f"{rank}.json" for rank in range(2)]
    power = json.loads(run("summary", "-q", "--json", *paths).stdout)["measured"]["power"]
    assert [(one["rank"], one["device"], one["mean_w"]) for one in power] == [
        (0, 0, pytest.approx(100)), (1, 1, pytest.approx(200))
    ]  # fmt: skip
    assert power[0]["energy_j"] == pytest.approx(100 * 13 * 100e-6)


def test_ranks_of_which_one_was_measured(tmp_path: Path) -> None:
    """Shares of the time, and what two comparisons know, are of all ranks."""
    paths = []
    for rank, more in enumerate(
        (nsys_metrics({"clock_mhz": (_TIMES, [705.0] * len(_TIMES))}), None)
    ):
        paths.append(_capture(tmp_path / f"net.rank{rank}.sqlite", more=more))
    for order in (paths, paths[::-1]):
        assert "50.0 % of GPU time by sampling" in run("summary", "-q", *order).stdout
    both = merge_sums(
        *(summarise_side(load(str(path)), ("op",)).whole for path in (paths[1], paths[0]))
    )
    assert both.counters is not None
    assert both.counters.known_share("clock", both.time_ns) == pytest.approx(0.5)


def test_a_line_per_op_as_in_the_table_of_ops(tmp_path: Path) -> None:
    """Two kernels of one op are one line, of the time that the op has; in JSON, too."""
    work = [Work("a", (1000, 3000), (100, 200)), Work("b", (4000, 5000), (300, 400)),
            Work("c", (6000, 6500), (900, 950))]  # fmt: skip
    capture = nsys_db(tmp_path / "a.sqlite", work, [Range(_OP, (50, 500))], LAYOUTS["2024.6"])
    metrics = {"dram__bytes.sum": float(LEAST)}
    counters = ncu_csv(tmp_path / "n.csv", [Profiled(name, metrics=metrics) for name in "abc"])
    measured = json.loads(run("summary", "-q", "--json", "--counters", counters, capture).stdout)[
        "measured"
    ]
    ops = [(op["op"], op["kernel"], op["time_ns"], op["dram_bytes"]) for op in measured["ops"]]
    assert ops == [("mm", None, 3000, 2 * LEAST), (None, "c", 500, LEAST)]
    assert measured["ops"][0]["excess"] == measured["excess"] == 2
    text = run("summary", "-q", "--counters", counters, capture).stdout
    section = text[text.index("\nMeasured") :].splitlines()
    assert [line.split()[0] for line in section[4:6]] == ["mm", "c"]


def test_names_that_are_wrong_in_several_ranks_count_once(tmp_path: Path) -> None:
    """Their calls add up."""
    silent: dict[str, Any] = {"sm__inst_executed_pipe_tensor.sum": 0.0}
    counters = _counters(tmp_path / "ncu.csv", **silent)
    paths = [_capture(tmp_path / f"net.rank{rank}.sqlite") for rank in range(2)]
    text = " ".join(run("summary", "-q", "--counters", counters, *paths).stdout.split())
    assert text.count("used no Tensor Cores") == 1
    assert f"by counters, in {2 * _STEPS} calls" in text


def test_totals_add_up(tmp_path: Path) -> None:
    """Two captures' sums are those of both."""
    counters, capture = _counters(tmp_path / "ncu.csv"), _capture(tmp_path / "a.sqlite")
    target = tmp_path / "a.parquet"
    run("parse", "-q", "--counters", counters, capture, "-o", target)
    totals = counter_totals(load(str(target)).table, None, None, None)
    assert totals is not None
    both = merge_sums(totals, totals)
    assert both.total.dram_bytes == 2 * (totals.total.dram_bytes or 0)
    assert both.total.mean("tensor") == totals.total.mean("tensor") == pytest.approx(61)
    assert both.total.excess == pytest.approx(2)
    assert both.sources == {name: 2 * ns for name, ns in totals.sources.items()}
