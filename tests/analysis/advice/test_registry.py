"""Advice says what it checked, and what it could not check and why."""

from dataclasses import replace

import pytest

from pyprof import schema
from pyprof.analysis.advice import RuleContext, find_scope
from pyprof.analysis.advice.registry import Scope, rules
from pyprof.analysis.time.timeline import timeline
from pyprof.inputs.source import Source
from pyprof.parse import parse
from pyprof.prof.table import Table
from pyprof.records.merging import merge_sums
from pyprof.render.text.summary_text import scope_sentences
from pyprof.schema import Capture
from tests.analysis.answered import answered
from tests.analysis.captures import US, Range, Work, capture, copy, op, training


def _scope(net: Capture, *, timed: bool = True) -> Scope:
    table = Table(parse(net))
    times = timeline(table.records, net) if timed else None
    return find_scope(RuleContext(table, times, net))


def _not_looked_at(scope: Scope) -> set[str]:
    return {subject for subjects in scope.missing.values() for subject in subjects}


def test_everything_is_checked_if_everything_is_known() -> None:
    """Ops, shapes, times and peaks are recorded; subjects of CPUs are not mentioned."""
    scope = _scope(training())
    assert scope.missing == {}
    assert {"idle time", "Tensor Cores", "copies", "distance from the peaks"} <= {*scope.looked_at}
    assert "time between ops" not in scope.looked_at


def test_kernels_without_ops_are_not_judged_by_them() -> None:
    """It says for how much of their time, not that of copies; idle time is still checked."""
    work = [
        Work((0, 300 * US), (0, US), "kernel_of_mine"),
        Work((300 * US, 400 * US), (US, 2 * US)),
        copy((400 * US, 900 * US), (2 * US, 3 * US)),
    ]
    net = capture(work, ranges=[op("matmul", (US, 2 * US))])
    ((reason, missing),) = _scope(net).missing.items()
    rest = "only the rest was looked at"
    assert reason == f"the op is unknown for 75 % of kernel time; {rest}"
    assert "distance from the peaks" in missing
    assert "idle time" in _scope(net).looked_at


def test_a_gpu_without_peaks_is_named() -> None:
    devices = schema.table(schema.DEVICES, {"device": [0], "name": ["GPU"]})
    net = replace(training(), devices=devices)
    assert any("--gpu" in reason for reason in _scope(net).missing)


def test_what_graphs_recorded_whole_hide_is_not_looked_at() -> None:
    graph = Work((0, 100 * US), (0, US), "[CUDA_graph_1]", schema.GRAPH, grid=None)
    scope = _scope(capture([graph, Work((100 * US, 110 * US), (US, 2 * US))]))
    hidden = scope.missing[
        "91 % of kernel time is in CUDA graphs recorded whole; only the rest was looked at"
    ]
    assert {"Tensor Cores", "float64", "copies", "communication", "fusion"} <= {*hidden}
    assert "idle time" in scope.looked_at


def test_chosen_rows_have_no_idle_time_to_look_at() -> None:
    """With `--where` there is no timeline: idle time is neither checked nor missing."""
    scope = _scope(training(), timed=False)
    assert "idle time" not in {*scope.looked_at, *_not_looked_at(scope)}


def test_a_cpu_is_checked_for_subjects_of_cpus() -> None:
    """Not Tensor Cores or launches; of the distance from the peaks, that a CPU has none."""
    at = 0, 100 * US
    work = [Work(at, at, "aten::mm", schema.CPU, grid=None)]
    scope = _scope(capture(work, ranges=[op("mm", at), Range("x", at)]))
    assert {"data loading", "float64", "fusion", "time between ops"} <= {*scope.looked_at}
    assert not {"Tensor Cores", "idle time"} & {*scope.looked_at, *_not_looked_at(scope)}
    assert scope.missing["judged on a GPU only"] == ("distance from the peaks",)


def test_a_subject_of_one_of_several_captures_is_checked() -> None:
    one = Scope(("copies",), {"no times": ("idle time",), "no ops": ("fusion",)})
    other = Scope(("idle time",), {"no ops": ("fusion", "copies")})
    both = merge_sums(one, other)
    assert both.looked_at == ("copies", "idle time")
    assert both.unseen == {"no ops": ("fusion",)}


@pytest.mark.parametrize(("scope", "text"), [
    (Scope(("copies", "float64")),
     ["No advice: nothing stands out in what was looked at: copies, float64."]),
    (Scope(("copies",), {"the file has no times": ("idle time",)}),
     ["No advice: nothing stands out in what was looked at: copies.",
      "Not looked at: idle time: the file has no times."]),
    (Scope(), ["No advice: nothing could be looked at."]),
])  # fmt: skip
def test_no_advice_says_what_was_checked(scope: Scope, text: list[str]) -> None:
    answer = replace(
        answered(Source(Table(parse(training())), None)),
        advice=(),
        advice_looked_at=scope.looked_at,
        advice_missing=scope.missing,
    )
    assert scope_sentences(answer) == text


def test_every_rule_says_what_it_looks_at() -> None:
    assert all(rule.about for rule in rules().values())
