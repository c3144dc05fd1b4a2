"""Steps on the page, compared with the summary's."""

from functools import reduce
from pathlib import Path

import numpy as np
import pytest

from pyprof.analysis.summary.composition import summary
from pyprof.records.merging import merge_sums
from tests.analysis.captured import capture
from tests.answers.checked import ask
from tests.builders import Work, nsys_db
from tests.commands import run
from tests.render.page.shown_parts import page_of, shown, sums_of


@pytest.mark.long
def test_steps_have_the_mfu_of_the_json(captures: Path) -> None:
    """And that of the summary for the slowest ones."""
    trace = captures / "kineto-v100-resnet50-2021" / "trace.json.gz"
    found = sums_of(trace)
    drawn = shown(found)["steps"]["shares"]["series"]
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
    page = page_of(net)
    assert page.count("(guessed: may be layers of a step)") >= 2


def test_steps_by_rank_are_those_of_each_alone(tmp_path: Path) -> None:
    """A slower rank has its own row; the trend is the slower one's in each step."""
    alone = [
        sums_of(capture(tmp_path / f"rank{rank}.sqlite", steps=3, slower=slower))
        for rank, slower in enumerate((1, 4))
    ]
    steps = shown(reduce(merge_sums, alone))["steps"]
    times = steps["heat"]["measures"]
    assert times["step"] == [[*summary(found.summary).steps.duration_ns] for found in alone]
    assert times["computing"] == [[200 + 300 + 50] * 3, [4 * 200 + 300 + 50] * 3]
    assert steps["trend"]["longest"].tolist() == np.max(times["step"], axis=0).tolist()
    assert shown(alone[0])["steps"]["heat"] is None
    assert [*steps["colours"]] == ["compute", "copy"], "there is no communication"
