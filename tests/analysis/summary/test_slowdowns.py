"""A GPU that takes longer for the same work from some time on."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.capture_files.metrics import kineto_counters
from tests.commands import run
from tests.readers.kineto_json import Event, event, kernel, launch, op, trace_file

_STEPS, _KERNELS = 12, 6
Factor = Callable[[int, int], float]
"""How many times as long as usual a kernel takes, by its step and number."""


def _loop(factor: Factor, *, rows: Callable[[int], int] = lambda _: 8) -> list[Event]:
    """Write steps of six kernels of 100 to 600 us, which run one after the other."""
    events, at = [], 0.0
    for step in range(_STEPS):
        begin = at
        for number in range(_KERNELS):
            corr = 1 + step * _KERNELS + number
            took = 100 * (1 + number) * factor(step, number) * (1 + (step * 7 % 5) / 100)
            sizes = {"Input_Dims": [[rows(step), 8]], "Input_type": ["float"]}
            events += [op("aten::relu", at, 9, **sizes), launch(corr, at + 1)]
            events.append(kernel(corr, at + 5, took, name=f"kernel_{number}"))
            at += took + 10
        events.append(event("user_annotation", f"ProfilerStep#{step}", begin, at - begin - 1))
    return events


def _note(folder: Path, events: list[Event]) -> str:
    notes = run("summary", "-q", "--json", trace_file(folder, events)).json["notes"]
    (found,) = [note for note in notes if "the same kernels" in note] or [""]
    return str(found)


def test_a_slower_clock_is_told_with_its_time(tmp_path: Path) -> None:
    found = _note(tmp_path, _loop(lambda step, _: 1 + (step >= 7) / 2))
    assert found.startswith(
        "GPU 0: from 15.4 ms after its first kernel on, the same kernels take 1.5"
    )
    assert "times as long (nearly all of 6, which ran alone)" in found


def test_another_program_may_slow_it_down_for_a_while(tmp_path: Path) -> None:
    found = _note(tmp_path, _loop(lambda step, _: 1 + (4 <= step < 7) / 2))
    assert found.startswith("GPU 0: from 8.79 ms to 18.6 ms after its first kernel, ")


def test_of_several_the_slowest_is_told(tmp_path: Path) -> None:
    factors: list[Factor] = [lambda step, _: 1 + (step >= 7) / 2, lambda step, _: 1 + (step >= 7)]
    files = []
    for number, factor in enumerate([*factors, factors[0]]):
        (folder := tmp_path / str(number)).mkdir()
        for each in (events := _loop(factor)):
            if each["cat"] == "kernel":
                each["args"]["device"] = each["pid"] = number
        files.append(trace_file(folder, events))
    notes = run("summary", "-q", "--json", *files).json["notes"]
    (found,) = [note for note in notes if "the same kernels" in note]
    assert found.startswith("rank 1, GPU 1: from 15.4 ms")
    assert found.endswith(" Likewise on 2 other GPUs, each at its time.")


@pytest.mark.parametrize(("later", "why"), [
    (940.0, "its clock was 940 MHz on average, 1,410 MHz otherwise."),
    (1410.0, "perhaps another program on it, as its clock was 1,410 MHz on average"),
])  # fmt: skip
def test_the_clock_is_named_where_it_was_sampled(tmp_path: Path, later: float, why: str) -> None:
    times = range(0, 30_000_000, 300_000)
    clocks = [1410.0 if at < 15_400_000 else later for at in times]
    counters = kineto_counters("SM Clock (MHz)", (times, clocks), key="", pid=0)
    found = _note(tmp_path, [*_loop(lambda step, _: 1 + (step >= 7) / 2), *counters])
    assert found.partition(", which ran alone): ")[2].startswith(why)


@pytest.mark.parametrize(("why", "factor"), [
    ("noise", lambda step, number: 1 + (step * number % 7) / 50),
    ("warm-up", lambda step, _: 1 + (step < 4) / 2),
    ("one kernel", lambda step, number: 1 + 2 * (number == 5 and step >= 7)),
    ("a sequence that grows", lambda step, number: 1 + step * (number < 2) / 5),
    ("one that takes most", lambda step, number: 99 + 9 * step if number == 5 else 1.0),
    ("deep layers after others", lambda step, _: 1 + step // 3 % 2),
])  # fmt: skip
def test_other_reasons_for_longer_times_are_no_slowdown(
    tmp_path: Path, why: str, factor: Factor
) -> None:
    assert _note(tmp_path, _loop(factor)) == "", why


def test_more_work_is_no_slowdown(tmp_path: Path) -> None:
    """Kernels of a fixed number of blocks may do any amount of it."""
    events = _loop(lambda step, _: 1 + (step >= 7) / 2, rows=lambda step: 8 + 4 * (step >= 7))
    assert _note(tmp_path, events) == ""


def test_other_work_is_no_slowdown(tmp_path: Path) -> None:
    """An evaluation has kernels of other sizes beside those of a fixed number of blocks."""
    events = _loop(lambda step, _: 1 + (5 <= step < 7) / 2)
    more = [event for event in events if event["cat"] == "kernel"]
    for corr, each in enumerate(more, 1000):
        small = kernel(corr, each["ts"] + each["dur"] + 1, 5, name="small")
        small["args"]["grid"] = [int(each["dur"]), 1, 1]
        events += [launch(corr, each["ts"] + 1, tid=2), small]
    assert _note(tmp_path, events) == ""


def test_work_beside_it_is_a_reason_of_its_own(tmp_path: Path) -> None:
    events = _loop(lambda step, _: 1 + (step >= 7) / 2)
    late = [each for each in events if each["cat"] == "kernel" and each["ts"] > 15_400]
    for corr, each in enumerate(late, 1000):
        beside = kernel(corr, each["ts"], each["dur"], name="beside")
        beside["args"]["stream"] = beside["tid"] = 9
        events += [launch(corr, each["ts"] - 3, tid=2), beside]
    assert _note(tmp_path, events) == ""
