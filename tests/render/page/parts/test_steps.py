"""Steps on the page, compared with the summary's."""

from functools import reduce
from pathlib import Path

import numpy as np
import pytest

from pyprof.analysis.summary.overview import overview, summary
from pyprof.inputs import source
from pyprof.records.merging import merge_sums
from pyprof.render.page.content import html, summarise_page
from pyprof.render.page.cross_filter import row_facts
from pyprof.render.page.parts import PartInput
from pyprof.render.page.parts.steps import step_times
from tests.analysis.captured import capture
from tests.answers.checked import ask
from tests.builders import Range, Work, nsys_db
from tests.commands import run
from tests.render.page import shown_parts


@pytest.mark.long
def test_steps_have_the_mfu_of_the_json(captures: Path) -> None:
    """And that of the summary for the slowest ones."""
    trace = captures / "kineto-v100-resnet50-2021" / "trace.json.gz"
    found = summarise_page(source.load(str(trace)))
    drawn = shown_parts.shown(found)["steps"]["shares"]["series"]
    steps = ask("summary", trace)["steps"]
    assert drawn == {"MFU": [round(100 * mfu, 3) for mfu in steps["mfu"]]}
    assert steps["hfu"] == steps["mfu"]
    assert steps["mbu"] == [None] * steps["count"]
    slowest = int(np.argmax(steps["duration_ns"]))
    said = run("summary", "-qv", trace).stdout
    assert f"steps {slowest} (182 ms, MFU {100 * steps['mfu'][slowest]:.1f} %)" in said


def test_guessed_steps_are_marked_so(tmp_path: Path) -> None:
    """In the head, on the card and beside the figure: layers may be what repeats."""
    net = nsys_db(
        tmp_path / "net.sqlite",
        [
            Work(name, (10_000 * n + 1000 * k, 10_000 * n + 1000 * k + 500), None)
            for n in range(12)
            for k, name in enumerate(("a", "b", "c", "d"))
        ],
    )
    page = html(summarise_page(source.load(str(net))))
    assert page.count("(guessed: may be layers of a step)") >= 2


def test_steps_by_rank_are_those_of_each_alone(tmp_path: Path) -> None:
    """A slower rank has its own row; the trend is the slower one's in each step."""
    files = [
        str(capture(tmp_path / f"rank{rank}.sqlite", steps=3, slower=slower))
        for rank, slower in enumerate((1, 4))
    ]
    alone = [summarise_page(source.load(file)) for file in files]
    steps = shown_parts.shown(reduce(merge_sums, alone))["steps"]
    times = steps["heat"]["measures"]
    assert times["step"] == [[*summary(found.summary).steps.duration_ns] for found in alone]
    assert times["computing"] == [[200 + 300 + 50] * 3, [4 * 200 + 300 + 50] * 3]
    assert steps["trend"]["longest"].tolist() == np.max(times["step"], axis=0).tolist()
    assert shown_parts.shown(alone[0])["steps"]["heat"] is None


def test_times_of_a_gpu_beside_another_are_of_the_chosen_steps(tmp_path: Path) -> None:
    """From the end of the previous step on the GPU."""
    work = [
        Work("mm", (at + 100, at + 200 + 50 * device), (at, at + 9), device=device)
        for at in (0, 1000, 2000) for device in range(2)
    ]  # fmt: skip
    ranges = [Range(f"step {step}", (1000 * step, 1000 * step + 900)) for step in range(3)]
    net = source.load(str(nsys_db(tmp_path / "net.sqlite", work, ranges)))
    view = overview(net, "0:2")
    times = step_times(PartInput(net, view, row_facts(net.table, view.rows)))
    for found, first, second in (
        (times.duration_ns, [100, 1000], [150, 1000]),
        (times.computing_ns, [100, 100], [150, 150]),
    ):
        assert np.array_equal(found, [[*first, np.nan], [*second, np.nan]], equal_nan=True)
