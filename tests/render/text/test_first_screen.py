"""The first screen: fixed order, the terminal's width, no empty columns."""

from dataclasses import replace
from pathlib import Path

import pytest

from pyprof.answers.parts import ChosenRows, Finding, PredictedGain, Suggestion
from pyprof.answers.summary_answer import MemoryPeak, OpTime, Summary
from pyprof.inputs.source import load
from pyprof.render.text import formatting
from pyprof.render.text.first_screen import (
    evidence_text,
    first_screen,
    ops_and_lines,
    verdict,
    what_to_do,
)
from tests.analysis.answered import answered
from tests.analysis.captured import capture


@pytest.fixture
def answer(tmp_path: Path) -> Summary:
    return answered(load(str(capture(tmp_path / "net.sqlite", steps=4))))


def _lines(lines: object) -> list[str]:
    return formatting.finish(lines, coloured=False).decode().splitlines()  # type: ignore[arg-type]


def _top(answer: Summary, *ops: OpTime) -> list[str]:
    return _lines(ops_and_lines(replace(answer, ops=ops), 15))


def _op(name: str, **known: object) -> OpTime:
    unknown = dict.fromkeys(
        ("flops_per_s", "bytes_per_s", "efficiency", "bound", "tc", "why", "above_peak", "range")
    )
    given = {
        "op": name, "dir": "fprop", "line": None, "kernel": "k", "calls": 1, "kernels": 1,
        "time_ns": 1_000_000, "step_ns": None, "share": 0.5, "row_ids": (), **unknown, **known,
    }  # fmt: skip
    return OpTime(**given)  # type: ignore[arg-type]


def _gain(share: float | None, ns: int | None = 1_000_000, *, once: bool = False) -> Suggestion:
    one = Finding(what="linear", line="net.py:3", detail="", count=4, time_ns=900, row_ids=())
    evidence = (one, one)
    return Suggestion(
        rule="r", title=f"title of {share}", action="do it", gain_ns=ns, gain_step_ns=ns,
        gain_share=share, predicted=None, evidence=evidence, once=once,
    )  # fmt: skip


def test_sections_are_in_one_order(answer: Summary) -> None:
    shown = "\n".join(_lines(first_screen(answer, "op", 15, None)))
    marks = [answer.verdict[0].text[:20], "What to do", "Op  ", "Total (us)", "GPU       "]
    places = [shown.index(mark) for mark in marks]
    assert places == sorted(places)


@pytest.mark.slow
@pytest.mark.parametrize("width", [60, 80, 100, 160])
def test_the_table_of_ops_is_no_wider_than_the_terminal(
    answer: Summary, width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    ops = tuple(
        _op("scaled_dot_product_attention_of_a_long_name" * 2, line=f"{'folder' * 20}.py:{n}",
            flops_per_s=1e12, bytes_per_s=1e9, efficiency=0.5, bound="memory", tc="1")
        for n in range(3)
    )  # fmt: skip
    lines = _top(answer, *ops)
    assert max(map(len, lines)) <= width
    assert all("50.0" in line for line in lines[1:4])


def test_on_160_columns_no_usual_name_is_truncated(
    answer: Summary, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    name = "multi_head_attention_forward_of_50_characters_____"
    op = _op(name, line="modeling_language_model.py:1234", flops_per_s=1e12,
             bytes_per_s=1e9, efficiency=0.5, bound="latency", tc="1")  # fmt: skip
    line = _top(answer, op)[1]
    assert name in line
    assert "modeling_language_model.py:1234" in line


def test_columns_without_known_values_are_left_out(answer: Summary) -> None:
    header, *_ = _top(answer, _op("mm"))
    assert header.split() == ["Op", "Calls", "ms/step", "%"]


def test_the_direction_is_shown_unless_all_is_forward(answer: Summary) -> None:
    """As in inference; a copy is marked next to the op's name."""
    both = (_op("conv2d"), _op("conv2d", dir="copy"))
    shown = _top(answer, *both)
    assert "Direction" not in shown[0]
    assert [line.split("  ")[0] for line in shown[1:3]] == ["conv2d", "conv2d (copy)"]
    header, *_, last = _top(answer, *both, _op("conv2d", dir="bprop"))[:4]
    assert header.split()[:2] == ["Op", "Direction"]
    assert last.split()[:2] == ["conv2d", "backward"]


def test_times_below_a_millisecond_are_in_microseconds(answer: Summary) -> None:
    """So that all have three significant digits."""
    header, *rows = _top(answer, *(_op("mm", time_ns=ns) for ns in (98_700, 4_380, 0)))[:4]
    assert header.split()[2] == "us/step"
    assert [row.split()[2] for row in rows] == ["98.7", "4.38", "0"]


def test_rates_give_way_to_whole_names(answer: Summary, monkeypatch: pytest.MonkeyPatch) -> None:
    """The op's name matters more than its FLOP/s; its efficiency more than a long name."""
    monkeypatch.setenv("COLUMNS", "80")
    name = "scaled_dot_product_attention_on_cpu"
    op = _op(name, line="modeling.py:12", flops_per_s=1e12, bytes_per_s=1e9, efficiency=0.5, tc="1")
    header, row = _top(answer, op)[:2]
    assert name in row
    assert {"Eff(%)", "Line"} < {*header.split()}
    assert "GB/s" not in header


def test_work_without_an_op_is_shown_with_the_users_range(answer: Summary) -> None:
    op = replace(_op("", range="attention"), op=None, dir=None, kernel="sgemm")
    assert _top(answer, op)[1].split() == ["sgemm", "1", "1.00", "50.0", "in", "attention"]


def test_gains_are_in_time_and_percent_of_a_step(answer: Summary) -> None:
    lines = _lines(what_to_do(replace(answer, advice=(_gain(0.5),))))
    assert lines[0] == "What to do (gain per step, evidence in total; gains overlap)"
    assert lines[1].split() == ["up", "to", "1.00", "ms", "50", "%", "title", "of", "0.5"]
    assert lines[3].strip() == "- linear at net.py:3: 900 ns in 4; and 1 more"


def test_a_predicted_gain_is_an_interval_with_its_validation(answer: Summary) -> None:
    predicted = PredictedGain(
        low_ns=500_000, expected_ns=800_000, high_ns=1_000_000, validation="3 pairs: error 2 %, x",
        code="compile()",
    )  # fmt: skip
    entry = replace(_gain(0.5), predicted=predicted)
    lines = _lines(what_to_do(replace(answer, advice=(entry,))))
    assert lines[1].split()[:5] == ["500", "us-1.00", "ms", "25-50", "%"]
    said = "predicted, of kernel time; tried on 3 pairs: error 2 %"
    assert said in " ".join(" ".join(lines).split())
    full = "".join(_lines(what_to_do(replace(answer, advice=(entry,)), full=True)))
    assert "compile()" in full


def test_small_gains_are_left_to_the_full_text(answer: Summary) -> None:
    some = replace(answer, advice=(_gain(0.5), _gain(0.001), *[_gain(0.2)] * 6))
    lines = _lines(what_to_do(some))
    assert sum("title of" in line for line in lines) == 5
    assert "... and 3 more (-v)" in lines
    full = _lines(what_to_do(some, full=True))
    assert sum("title of" in line for line in full) == 8


def test_an_unknown_gain_is_called_so(answer: Summary) -> None:
    lines = _lines(what_to_do(replace(answer, advice=(_gain(None, None),))))
    assert lines[1].split()[:2] == ["unknown", "-"]


def test_without_gains_the_text_says_what_was_checked(answer: Summary) -> None:
    """If the verdict is that the GPU idles, idle time has to stand out."""
    bound = replace(answer.verdict[0], subject="queue")
    unexplained = "nothing is known to shorten this idle time (queue); "
    for sentences, said in (
        ((), "nothing stands out in idle time, fusion."),
        ((bound,), f"{unexplained}nothing stands out in fusion."),
    ):
        looked_at = replace(answer, advice=(), advice_looked_at=("idle time", "fusion"))
        lines = _lines(what_to_do(replace(looked_at, verdict=sentences)))
        assert " ".join(" ".join(lines).split()) == f"What to do: {said}"


def test_in_full_the_verdict_has_its_evidence(answer: Summary) -> None:
    full = _lines(verdict(answer, full=True))
    first = answer.verdict[0].evidence[0]
    assert f"  - {evidence_text(first)}" in full
    assert evidence_text(first).endswith(f"rows {', '.join(map(str, first.row_ids[:3]))}")
    assert not any("rows" in line for line in _lines(verdict(answer)))


def test_without_rows_only_the_choice_and_memory_are_shown(answer: Summary) -> None:
    chosen = ChosenRows(where="op=none", row_count=0, all_row_count=9, time_ns=0, all_time_ns=900)
    none = replace(answer, chosen=chosen)
    said = " ".join(" ".join(_lines(first_screen(none, "op", 15, None))).split())
    assert said.startswith("Where op=none: 0 of 9 rows")
    assert said.endswith("of these alone")
    memory = MemoryPeak(
        device="cuda:0", rank=None, peak_bytes=5, peak_time_ns=None, peak_reserved_bytes=None,
        categories_bytes={}, lines_bytes={}, growing_line=None, growth_bytes_per_step=None,
    )  # fmt: skip
    shown = _lines(first_screen(replace(none, memory=memory), "op", 15, None))
    assert shown[shown.index("Memory (whole recording)") - 1] == ""
    assert shown[-1] == "pyprof memory shows more"
