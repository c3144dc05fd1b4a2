"""Parts that several answers have: chosen rows and notes."""

from pathlib import Path

import pytest

from tests.analysis.captured import capture
from tests.answers.checked import ask
from tests.builders import Work, nsys_db


@pytest.mark.long
def test_figures_of_chosen_rows_say_so(tmp_path: Path) -> None:
    """With the conditions and the share of the time; null if all rows count."""
    a = capture(tmp_path / "a.sqlite", steps=4)
    kept = {"where": "op=relu", "row_count": 8, "all_row_count": 20, "time_ns": 800,
            "all_time_ns": 3000}  # fmt: skip
    for command in ("summary", "lines"):
        assert ask(command, a)["chosen"] is None
        assert ask(command, a, "--where", "op=relu")["chosen"] == kept
    in_steps = ask("summary", a, "--where", "op=relu", "--steps", "2:")["chosen"]
    assert (in_steps["row_count"], in_steps["all_row_count"]) == (4, 10)
    given = ask("summary", a, "--where", "op=relu")["utilization"]
    assert (given["mfu"], given["why"]) == (None, "it is of all work; leave out --where")
    assert ask("prof", a)["where"] is None
    asked = ("--where", "op=relu", "--where", "sil>50")
    assert ask("prof", a, *asked)["where"] == "op=relu and sil>50"


def test_launches_that_blocked_are_noted(tmp_path: Path) -> None:
    work = [Work("k", (100 * n + 20, 100 * n + 60), (100 * n, 100 * n + 80)) for n in range(1, 21)]
    (note,) = ask("summary", nsys_db(tmp_path / "blocked.sqlite", work))["notes"]
    assert note.startswith("launches blocked (CUDA_LAUNCH_BLOCKING=1)")
    assert ask("summary", capture(tmp_path / "a.sqlite"))["notes"] == []
