"""Steps found by the repetition of kernels alone."""

from __future__ import annotations

import string

import numpy as np
import pyarrow as pa
import pytest

from pyprof import schema
from pyprof.analysis.time.repetition import repetition
from pyprof.parse.steps.loop_steps import launch_times
from pyprof.records.records import DictionaryColumn, Records
from tests.analysis.captures import Work, capture, records
from tests.known import known


def _run(names: str, pause_after: str) -> Records:
    """Return kernels of these one-letter names; the host pauses after each of `pause_after`."""
    work, at = [], 0
    for name in names:
        work.append(Work((at + 5, at + 8), (at, at + 3), name))
        at += 200 if name == pause_after else 10
    return records(capture(work))


@pytest.mark.parametrize("count", [4, 7])
def test_a_period_that_repeats_is_the_step(count: int) -> None:
    found = known(repetition(run := _run("abcc" * count, "z"), launch_times(run)))
    origin, start, end = found
    assert origin == "repetition of 4 kernels"
    assert (end > start).all()
    assert len(start) >= count - 1


@pytest.mark.parametrize(
    ("op_us", "layer", "steps"),
    [(300, "model", ("repetition of 4 ops", 4)), (200, "model", None), (300, None, None)],
)
def test_ops_on_a_cpu_that_repeat_in_a_layer_are_the_step_unless_it_is_short(
    op_us: int, layer: str | None, steps: tuple[str, int] | None
) -> None:
    """As in a loop of inference, which has no optimizer; a loop over rows turns faster.

    A trace of one pass that names no layers shows only that equal layers repeat.
    """
    ns = op_us * 1000
    work = [Work((at, at + ns), (at, at + ns), f"aten::{'abcc'[place % 4]}", schema.CPU, grid=None)
            for place, at in enumerate(range(0, 16 * ns, ns))]  # fmt: skip
    run = records(capture(work))
    layers = pa.array([layer and [layer]] * run.rows, pa.list_(pa.string()))
    run = Records(run.rows, {**run.columns, "layer": layers})
    found = repetition(run, launch_times(run))
    assert (found and (found[0], len(found[1]))) == steps


def test_equal_layers_of_a_model_are_not_steps() -> None:
    run = _run("abcc" * 7, "z")
    layers = pa.array([[f"layers.{row // 4}"] for row in range(run.rows)])
    run = Records(run.rows, {**run.columns, "layer": layers})
    assert repetition(run, launch_times(run)) is None


def test_kernels_of_equal_layers_repeat_whatever_else_the_ranges_around_them_say() -> None:
    """Parsed rows hold the layers of each stack of ranges, whose ops may differ: a cache grows."""
    run = _run("abcc" * 7, "z")
    layers = DictionaryColumn(np.arange(run.rows), [["model"]] * run.rows)
    run = Records(run.rows, {**run.columns, "layer": layers})
    assert known(repetition(run, launch_times(run)))[0] == "repetition of 4 kernels"


def test_replays_are_the_step_however_many_launches_precede_them() -> None:
    """A replay is a single launch, but of many kernels."""
    run = _run(string.ascii_letters + string.ascii_lowercase * 8, "")
    replay = np.maximum(np.arange(run.rows) - 52, -26) // 26
    columns = {**run.columns, "replay": pa.array(replay, mask=replay < 0)}
    graphs = Records(run.rows, columns)
    origin, start, _ = known(repetition(graphs, launch_times(graphs)))
    assert (origin, len(start)) == ("repetition of 26 kernels", 8)


@pytest.mark.parametrize(
    ("names", "pause_after"),
    [("abcd" * 2, "d"), ("abcdefghijklmnop", "z")],
    ids=["a few repetitions", "no period"],
)
def test_what_hardly_repeats_is_not_a_step(names: str, pause_after: str) -> None:
    run = _run(names, pause_after)
    assert repetition(run, launch_times(run)) is None
