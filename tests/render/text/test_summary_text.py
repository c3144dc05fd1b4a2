"""Devices in the text of a summary."""

import shutil
from dataclasses import replace
from pathlib import Path

import click
import pytest

from pyprof.analysis.time.idle import CAUSES
from pyprof.answers.summary_answer import DeviceUse, StepTimes
from pyprof.inputs.source import load
from pyprof.render.text import summary_text
from tests.analysis.answered import answered
from tests.analysis.captured import capture
from tests.commands import run


@pytest.mark.long
def test_more_gpus_than_columns_have_a_line_each(tmp_path: Path) -> None:
    first = capture(tmp_path / "net-rank0.sqlite", steps=4)
    for rank in range(1, 12):
        shutil.copy(first, tmp_path / f"net-rank{rank}.sqlite")
    lines = run("summary", tmp_path).stdout.splitlines()
    assert [line.split(",")[0] for line in lines if line.startswith("rank ")] == [
        f"rank {rank}" for rank in range(12)
    ]


DEVICE = DeviceUse(
    rank=0, device=0, processor="GPU", span_ns=100, busy_ns=90, idle_ns=10, compute_ns=90,
    communication_ns=0, exposed_communication_ns=0, copy_ns=0, exposed_copy_ns=0, overlap_ns=0,
    idle_by_cause_ns=dict.fromkeys(CAUSES, 0), windows=1, paused_ns=0,
)  # fmt: skip


def test_causes_of_no_gpu_have_no_column() -> None:
    other = replace(DEVICE, copy_ns=1, idle_by_cause_ns={"sync": 10})
    header = summary_text._gpus_down([DEVICE, other])[0]
    assert " ".join(header.split()) == "Time Span ms busy % compute % copies % idle % sync %"


def test_of_very_many_gpus_the_least_busy_are_listed() -> None:
    """64 of 70, the least busy included, at any position."""
    devices = [replace(DEVICE, rank=rank, busy_ns=90 - rank % 7) for rank in range(70)]
    devices[69] = replace(DEVICE, rank=69, busy_ns=5)
    lines = [*summary_text.times(devices, ())]
    assert lines[-1] == "... and 6 busier ones; pyprof ranks lists all"
    listed = [line.split(",")[0] for line in lines if line.startswith("rank ")]
    assert len(listed) == 64
    assert "rank 69" in listed


@pytest.mark.parametrize(
    ("warm_up", "averaged", "expected"),
    [
        (0, 1, ["4 by ranges; a step takes 5.00 ms"]),
        (1, 3, ["the first is slower", "excludes it from everything", "the mean of 3"]),
        (2, 2, ["the first 2 are slower", "excludes them from everything", "the mean of 2"]),
    ],
)
def test_one_step_has_no_mean_and_no_plural(
    warm_up: int, averaged: int, expected: list[str]
) -> None:
    steps = StepTimes(
        count=4, origin="ranges", guessed=False, warm_up_count=warm_up, covered_share=1.0,
        first=warm_up, last=warm_up + averaged - 1, mean_ns=5e6, median_ns=5e6, duration_ns=(),
        mfu=(), hfu=(), mbu=(),
    )  # fmt: skip
    text = summary_text._steps(steps, "a range")
    assert all(each in text for each in expected)
    assert text.endswith(expected[-1])


def test_steps_unlike_their_mean_are_drawn_on_the_first_screen(tmp_path: Path) -> None:
    """Which steps stall is half of the answer; with -v it is not said again."""
    answer = answered(load(str(capture(tmp_path / "net.sqlite", steps=4))))
    for longest, uneven in ((10, False), (90, True)):
        steps = replace(
            answer.steps, first=0, last=3, mean_ns=10.0, duration_ns=(10, longest, 10, 10)
        )
        screens = ([*view] for view in (
            summary_text.head(replace(answer, steps=steps)),
            summary_text.details(replace(answer, steps=steps), "op"),
        ))  # fmt: skip
        drawn = [
            any("Slowest" in line and " steps " in line for line in screen) for screen in screens
        ]
        assert drawn == [uneven, not uneven]


def test_steps_that_took_no_time_are_as_their_mean() -> None:
    steps = StepTimes(
        count=2, origin="ranges", guessed=False, warm_up_count=0, covered_share=1.0,
        first=0, last=1, mean_ns=0.0, median_ns=0.0, duration_ns=(0, 0), mfu=(), hfu=(), mbu=(),
    )  # fmt: skip
    assert not steps.spread


def test_details_have_host_times_unless_the_table_has_them(tmp_path: Path) -> None:
    answer = answered(load(str(capture(tmp_path / "net.sqlite"))))
    for by in ("op", "host"):
        shown = "\n".join(summary_text.details(answer, by))
        assert ("Host time by op" in shown) == (by == "op")


def test_host_times_left_out_are_shown_by_the_option_named(tmp_path: Path) -> None:
    answer = answered(load(str(capture(tmp_path / "net.sqlite"))))
    assert answer.host_ops is not None
    (more,) = (line for line in summary_text.host_table(answer, 1) if line.startswith("..."))
    assert more.startswith(f"... and {len(answer.host_ops) - 1} more")
    assert more.endswith(f"(--top {len(answer.host_ops)})")


def test_deep_levels_are_numbered() -> None:
    """A table does not become as wide as the tree is deep."""
    assert [summary_text._indent(level) for level in (0, 2, 16)] == ["", "    ", " " * 32]
    assert summary_text._indent(5000) == " " * 32 + "(5000) "


def test_times_of_several_processors_name_their_kind(tmp_path: Path) -> None:
    one = answered(load(str(capture(tmp_path / "net.sqlite"))))
    assert one.devices is not None
    known = replace(one.known_cost, processor="CPU")
    both = replace(one, devices=one.devices * 2, known_cost=known)
    assert [*summary_text.below_ops(both, 99)][-1] == "Times are of all 2 CPUs together."


def test_a_narrow_terminal_has_room_for_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Many ops once left only `...` of a line's file and number."""
    monkeypatch.setenv("COLUMNS", "60")
    one = answered(load(str(capture(tmp_path / "net.sqlite"))))
    ops = ("multi_head_attention_forward", "linear", "reshape", "dropout", "transpose")
    lines = (replace(one.lines[0], line="language-model.py:110", ops=ops),)
    shown = click.unstyle("\n".join(summary_text.line_table(replace(one, lines=lines), 5)))
    assert "model.py:110" in shown
    assert max(map(len, shown.splitlines())) <= 60


def test_reasons_for_no_table_are_no_wider_than_the_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    nothing = replace(answered(load(str(capture(tmp_path / "net.sqlite")))), lines=(), layers=())
    shown = [*summary_text.line_table(nothing, 5), *summary_text.layers(nothing, None)]
    assert [line.split()[0] for line in shown if " are unknown: " in line] == ["Lines", "Layers"]
    assert max(map(len, shown)) <= 60
