"""Counters in every report: summary, page, groups, diff, doctor, roofline."""

from pathlib import Path
from typing import Any

import pytest

from pyprof.analysis.diff.side import summarise_side
from pyprof.analysis.summary.counter_totals import counter_totals
from pyprof.inputs.source import load
from pyprof.records.merging import merge_sums
from tests.analysis import product
from tests.capture_files.metrics import kineto_counters, nsys_metrics
from tests.commands import run
from tests.known import known
from tests.readers import kineto_json

SILENT: dict[str, Any] = {"sm__inst_executed_pipe_tensor.sum": 0.0}


def _power(watts: float, times: list[int] = product.TIMES) -> list[kineto_json.Event]:
    return kineto_counters("Power (W)", (times, [watts] * len(times)), key="", pid=0)


def _launched(number: int, at: int, text: str) -> list[kineto_json.Event]:
    """Launch a kernel of 10 us in a range of 90."""
    step = kineto_json.event("user_annotation", text, at - 1, 90)
    return [step, kineto_json.launch(number, at + 1), kineto_json.kernel(number, at + 5, 10)]


def test_explain_compares_with_counters(tmp_path: Path) -> None:
    counters, capture = product.measured(tmp_path)
    text = run("prof", "--explain", "1", "--with", counters, capture).stdout
    section = text[text.index("6. Compare with counters") :]
    assert "measured by: joined" in section
    assert "Tensor Cores active: 61 %" in section
    assert "6. Compare" not in run("prof", "--explain", "1", capture).stdout


def test_groups_have_traffic(tmp_path: Path) -> None:
    counters, capture = product.measured(tmp_path)
    (row,) = run("prof", "-q", "--csv", "--by", "op", "--with", counters, capture).rows
    assert int(row["DRAM(B)"]) == 2 * product.MIN_BYTES * product.STEPS
    assert "DRAM" not in run("prof", "-q", "--csv", "--by", "op", capture).stdout


def test_doctor_finds_names_that_are_wrong(tmp_path: Path) -> None:
    """A kernel whose name has Tensor Cores, and whose counters are 0."""
    counters, capture = product.measured(tmp_path, **SILENT)
    text = run("doctor", "--with", counters, capture).stdout
    said = f"{product.GEMM} used no Tensor Cores, by counters, in 4 calls; its name says that"
    assert said in text
    assert "used no Tensor Cores" not in run("doctor", capture).stdout


@pytest.mark.few(1)
@pytest.mark.parametrize(("last", "a_token"), [("toks=24", 0.002 / 16), ("", None)])
def test_energy_of_a_token(last: str, a_token: float | None, tmp_path: Path) -> None:
    """If all steps of a serving engine state their tokens, these share the energy."""
    texts = [*["step[DECODE bs=8]"] * 3, f"step[EXTEND {last}]"]
    events = _power(200.0, [*range(1_000, 600_000, 1_000)])
    for number, text in enumerate(texts, 1):
        events += _launched(number, 100 * number, text)
    path, page = tmp_path / "a.json", tmp_path / "a.html"
    path.write_text(kineto_json.text(events))
    measured = run("summary", "-q", "--json", "--steps", "2:", path).json["measured"]
    assert measured["energy_step_j"] == pytest.approx(0.002)
    assert measured["energy_token_j"] == (a_token and pytest.approx(a_token))
    said = "0.004 J, 0.002 J a step" + (", 0.000125 J a token" if a_token else "\n")
    assert said in run("summary", "-q", "--steps", "2:", path).stdout
    assert run("report", "-q", "--steps", "2:", path, "-o", page).code == 0
    assert said.strip() in page.read_text()


@pytest.mark.slow
@pytest.mark.parametrize(("other", "a_token"), [(8, 2 * 0.002 / 8), (9, None)])
def test_energy_of_a_token_of_several_ranks(
    other: int, a_token: float | None, tmp_path: Path
) -> None:
    """Ranks share the tokens of a step if they state the same number; otherwise it is unknown."""
    paths = []
    for rank, tokens in enumerate((8, other)):
        events = _power(200.0)
        for number in range(1, 5):
            events += _launched(number, 100 * number, f"step[DECODE bs={tokens}]")
        info = {"rank": rank, "world_size": 2, "backend": "nccl"}
        paths.append(tmp_path / f"{rank}.json")
        paths[-1].write_text(kineto_json.text(events, distributedInfo=info))
    measured = run("summary", "-q", "--json", *paths).json["measured"]
    assert measured["energy_step_j"] == pytest.approx(0.004)
    assert measured["energy_token_j"] == (a_token and pytest.approx(a_token))


@pytest.mark.slow
def test_energy_of_a_part_is_a_lower_bound(tmp_path: Path) -> None:
    """A kernel with too few samples has unknown power, and so has the total."""
    events = _power(200.0)
    for number, (at, length) in enumerate([(50, 30), (150, 10)], 1):
        kernel = kineto_json.kernel(number, at, length, name=f"k{number}")
        events += [kineto_json.launch(number, at - 10), kernel]
    path = tmp_path / "a.json"
    path.write_text(kineto_json.text(events))
    text = " ".join(run("summary", "-q", path).stdout.split())
    assert "while kernels ran, known for 75.0 % of the time: at least 0.006 J" in text
    measured = run("summary", "-q", "--json", path).json["measured"]
    assert (measured["energy_j"], measured["energy_known_share"]) == (0.006, 0.75)


@pytest.mark.slow
def test_ranks_of_which_one_was_measured(tmp_path: Path) -> None:
    """Shares of the time, and the two comparisons, are over all ranks."""
    clock = nsys_metrics({"clock_mhz": (product.TIMES, [705.0] * len(product.TIMES))})
    paths = [
        product.capture(tmp_path / f"net.rank{rank}.sqlite", more=more)
        for rank, more in enumerate((clock, None))
    ]
    for order in (paths, paths[::-1]):
        assert "50.0 % of GPU time by sampling" in run("summary", "-q", *order).stdout
    both = merge_sums(
        *(summarise_side(load(str(path)), ("op",)).whole for path in (paths[1], paths[0]))
    )
    assert both.counters is not None
    assert both.counters.known_share("clock", both.time_ns) == pytest.approx(0.5)


@pytest.mark.slow
def test_names_that_are_wrong_in_several_ranks_count_once(tmp_path: Path) -> None:
    counters = product.counters(tmp_path / "ncu.csv", **SILENT)
    paths = [product.capture(tmp_path / f"net.rank{rank}.sqlite") for rank in range(2)]
    text = " ".join(run("summary", "-q", "--with", counters, *paths).stdout.split())
    assert text.count("used no Tensor Cores") == 1
    assert f"by counters, in {2 * product.STEPS} calls" in text


def test_totals_add_up(tmp_path: Path) -> None:
    totals = known(counter_totals(load(str(product.parsed(tmp_path))).table, None, None, None))
    both = merge_sums(totals, totals)
    assert both.total.dram_bytes == 2 * (totals.total.dram_bytes or 0)
    assert both.total.means["tensor"] == totals.total.means["tensor"] == pytest.approx(61)
    assert both.total.excess == pytest.approx(2)
    assert both.sources == {name: 2 * ns for name, ns in totals.sources.items()}
