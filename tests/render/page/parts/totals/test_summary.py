"""Headline numbers and phases of the page."""

from dataclasses import replace
from pathlib import Path

import pytest

from pyprof.analysis.report import report
from pyprof.analysis.summary.composition import summary
from pyprof.inputs import source
from pyprof.quantities import duration
from pyprof.render.page.content import html
from pyprof.render.page.parts.totals.summary import _causes, cards, devices
from pyprof.render.text.summary_text import known_flops
from tests.analysis.answered import answered
from tests.analysis.captured import capture
from tests.commands import run
from tests.render.page.shown_parts import shown, sums_of


@pytest.mark.long
def test_phases_of_serving_are_those_of_the_summary(captures: Path) -> None:
    """With tokens and rate, formatted alike."""
    trace = captures / "kineto-mi300x-vllm-piecewise-graph" / "replay.pt.trace.json.gz"
    part = shown(sums_of(trace))["summary"]
    (row,) = part["serving"]
    lines = [line.split() for line in run("summary", "-q", trace).stdout.splitlines()]
    assert [*part["serving_header"]] in lines
    assert row in lines


def test_causes_are_of_all_gpus_and_a_step_of_all_steps(tmp_path: Path) -> None:
    one = answered(source.load(str(capture(tmp_path / "net.sqlite", steps=4))))
    assert one.devices is not None
    (device,) = one.devices
    both = replace(one, devices=(device, replace(device, rank=1)))
    ordered = sorted(device.idle_by_cause_ns.items(), key=lambda entry: -entry[1])
    expected = [(cause, duration(2 * ns)) for cause, ns in ordered if ns]
    assert [(cause, time) for cause, _, time, _ in _causes(both)] == expected
    notes = {title: note for title, _, note in cards(one)}
    assert notes["a step"].startswith("mean of 4 of 4 steps;")


def test_idle_time_of_a_cpu_is_without_an_op(tmp_path: Path) -> None:
    """It has no streams."""
    one = answered(source.load(str(capture(tmp_path / "net.sqlite"))))
    for processor, note in (("GPU", "no stream had work"), ("CPU", "no op ran")):
        shown = replace(one, known_cost=replace(one.known_cost, processor=processor))
        notes = {title: note for title, _, note in cards(shown)}
        assert notes[f"{processor} idle"] == note
    assert one.devices is not None
    (device,) = one.devices
    on_cpu = replace(device, processor="CPU", idle_by_cause_ns={"host": 5})
    ((_, meaning, *_),) = _causes(replace(one, devices=(on_cpu,)))
    assert meaning == "longer between two ops: Python, files, other libraries"


def test_what_distorts_times_is_noted_and_what_is_left_out_of_the_mfu(tmp_path: Path) -> None:
    """As in the text."""
    sums = sums_of(capture(tmp_path / "net.sqlite"))
    use = replace(report(sums).summary.utilization, mfu=0.5, hfu=0.5, why="", known_share=0.85)
    answer = replace(report(sums).summary, notes=("times are off.",), utilization=use)
    page = html(replace(report(sums), summary=answer))
    assert ">Note: times are off.</p>" in page
    assert "; FLOPs of 85.0 % of compute time known<" in page
    assert known_flops(replace(use, known_share=0.9999)) == "", "that is 100.0 %"


def test_the_card_of_steps_counts_those_of_warm_up(tmp_path: Path) -> None:
    one = answered(source.load(str(capture(tmp_path / "net.sqlite", steps=4))))
    steps = replace(one.steps, warm_up_count=1, first=1)
    notes = {title: note for title, _, note in cards(replace(one, steps=steps))}
    assert notes["a step"].startswith("mean of 3 of 4 steps, without 1 of warm-up;")


@pytest.mark.slow
def test_each_gpu_adds_up_to_the_headline(captures: Path) -> None:
    """Busy and idle time of the cards are the sums over GPUs, and of the causes."""
    found = sums_of(captures / "nsys2026.2-h100x2-fsdp/net.sqlite")
    answer = summary(found.summary)
    assert answer.devices is not None
    shown = {title: value for title, value, _ in cards(answer)}
    idle_ns = sum(device.idle_ns for device in answer.devices)
    assert shown["GPU idle"] == duration(idle_ns)
    assert idle_ns == sum(sum(device.idle_by_cause_ns.values()) for device in answer.devices)
    table = devices(answer)
    assert [name for name, _ in table] == ["GPU 0, process 144", "GPU 1, process 145"]
    assert table[0][1][:4] == ["300 ms", "91.3 %", "274 ms", "26.0 ms"]
