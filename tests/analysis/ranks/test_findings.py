"""A run of 32 ranks with planted findings, which every executor finds."""

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from pyprof.answers.ranks_answer import Ranks
from pyprof.render.text import ranks_text
from tests import commands
from tests.analysis.ranks import compare
from tests.programs import generate

RANKS = 32
CORRUPT = 26
SLOW_PAIR = 20

_generate = partial(generate, program="generate_ranks.py")


@dataclass(frozen=True)
class Run:
    folder: Path
    truth: dict[str, Any]
    found: Ranks


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("ranks")
    numbers = {"ranks": RANKS, "kernels": 60, "corrupt": CORRUPT, "slow-pair": SLOW_PAIR}
    options = [word for name, value in numbers.items() for word in (f"--{name}", str(value))]
    truth = _generate(folder, *options)
    return Run(folder, truth, compare(folder))


@pytest.mark.slow
def test_the_straggler_is_found_and_what_it_costs(run: Run) -> None:
    """1 ms a step more than the others, who each wait that long."""
    found = run.found.stragglers[0]
    planted = run.truth["straggler_ns_per_step"]
    assert run.found.slowest_ranks == (found.rank,) == (run.truth["straggler"],)
    assert found.excess_ns == pytest.approx(planted, rel=0.02)
    each = found.cost_ns / run.truth["steps"] / (RANKS - 2)
    assert each == pytest.approx(planted, rel=0.1)  # no rank waits for its last computation
    assert found.last == found.of == run.truth["collectives"]


@pytest.mark.slow
def test_the_slow_link_is_found_and_how_slow_it_is(run: Run) -> None:
    """One of 16 pairs takes three times as long; nothing else is called slow."""
    (slow,) = run.found.slow_groups
    assert slow.members == " ".join(map(str, run.truth["slow_pair"]))
    assert slow.like_groups == RANKS // 2 - 2  # itself, and the one whose file is cut short
    assert slow.transfer_ns == pytest.approx(
        run.truth["slow_transfer_ns"], abs=run.truth["leave_ns"]
    )
    assert slow.usual_ns == pytest.approx(run.truth["transfer_ns"], abs=run.truth["leave_ns"])


@pytest.mark.slow
def test_of_two_causes_the_costlier_comes_first(tmp_path: Path) -> None:
    """Many blocks: the slow pair costs more than the straggler, which it hides."""
    truth = _generate(tmp_path / "ranks", "--ranks", "16", "--slow-pair", "4", "--blocks", "8")
    found = compare(tmp_path / "ranks")
    speed, straggler, *_ = ranks_text.in_words(found)
    assert speed.startswith("The link between ranks 4 and 5 is slow")
    assert straggler.startswith(f"Rank {truth['straggler']} is the straggler")
    assert "hides most of it" in straggler
    late = [one.ranks.split() for one in found.together] + [[str(one.rank)] for one in found.late]
    assert {*late[0]} <= {"4", "5"}


@pytest.mark.long
def test_a_truncated_file_is_named(run: Run) -> None:
    """On stderr and in the report; its partner's collectives are reported as unmatched."""
    done = commands.run("ranks", str(run.folder), "--top", "2")
    assert done.code == 0
    assert run.truth["corrupt"] in done.stderr
    assert "1 of 32 captures could not be read" in done.stderr
    assert f"Left out  {run.truth['corrupt']}" in done.stdout
    assert [one.rank for one in run.found.unmatched] == [CORRUPT + 1]
    assert f"Rank {run.truth['straggler']} is the straggler" in done.stdout
    assert "The link between ranks 20 and 21 is slow" in done.stdout


@pytest.mark.long
def test_without_group_names_the_findings_are_the_same(tmp_path: Path) -> None:
    """As in most captures of nsys: groups are found from who leaves together."""
    truth = _generate(tmp_path / "ranks", "--ranks", "16", "--slow-pair", "4", "--told", "nowhere")
    found = compare(tmp_path / "ranks")
    assert found.slowest_ranks == (truth["straggler"],)
    assert found.slow_groups[0].members == " ".join(map(str, truth["slow_pair"]))
    assert {speed.bus_bytes_per_s for speed in found.groups} == {None}  # of how many ranks?
