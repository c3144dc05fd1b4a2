"""A run of 32 ranks with planted findings, which every executor finds."""

import json
import sqlite3
from collections import defaultdict
from collections.abc import Sequence
from contextlib import closing
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any

import pytest

from pyprof.analysis.ranks.findings import RankComparison, compare_ranks
from pyprof.analysis.ranks.rank_tables import measure_ranks
from pyprof.analysis.ranks.stream_alignment import TOGETHER_NS
from pyprof.inputs.executor import InProcess
from pyprof.inputs.ranks import ranked_captures
from pyprof.records.merging import merge_sums
from pyprof.render.text import ranks_text
from tests import commands
from tests.programs import TOP, python

RANKS = 32
CORRUPT = 26
SLOW_PAIR = 20


@dataclass(frozen=True)
class Run:
    folder: Path
    truth: dict[str, Any]
    found: RankComparison


def _generate(folder: Path, *options: str) -> dict[str, Any]:
    done = python(str(TOP / "benchmarks" / "generate_ranks.py"), str(folder), *options)
    assert not done.returncode, done.stderr
    truth: dict[str, Any] = json.loads(done.stdout)
    return truth


def _measured(folder: Path) -> RankComparison:
    executor = InProcess()
    handles = executor.map(measure_ranks, ranked_captures([str(folder)], executor), "")
    return compare_ranks(executor.reduce(merge_sums, handles))


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("ranks")
    numbers = {"ranks": RANKS, "kernels": 60, "corrupt": CORRUPT, "slow-pair": SLOW_PAIR}
    options = [word for name, value in numbers.items() for word in (f"--{name}", str(value))]
    truth = _generate(folder, *options)
    return Run(folder, truth, _measured(folder))


@pytest.mark.slow
def test_the_straggler_is_found_and_what_it_costs(run: Run) -> None:
    """1 ms a step more than the others, who each wait that long."""
    (found,) = ranks_text.stragglers(run.found)
    planted = run.truth["straggler_ns_per_step"]
    assert found.rank == run.truth["straggler"] == run.found.stragglers[0].rank
    assert found.excess_ns == pytest.approx(planted, rel=0.02)
    each = found.cost_ns / run.truth["steps"] / (RANKS - 2)
    assert each == pytest.approx(planted, rel=0.1)  # no rank waits for its last computation
    assert found.last == found.of == run.truth["collectives"]


@pytest.mark.slow
def test_the_slow_link_is_found_and_how_slow_it_is(run: Run) -> None:
    """One of 16 pairs takes three times as long; nothing else is called slow."""
    (slow,) = run.found.slow
    assert slow.speed.groups[0].ranks.tolist() == run.truth["slow_pair"]
    assert slow.like == RANKS // 2 - 2  # itself, and the one whose file is cut short
    assert slow.speed.transfer_ns == pytest.approx(
        run.truth["slow_transfer_ns"], abs=run.truth["leave_ns"]
    )
    assert slow.usual_ns == pytest.approx(run.truth["transfer_ns"], abs=run.truth["leave_ns"])


@pytest.mark.long
def test_clocks_are_right_within_the_residual(run: Run) -> None:
    """Hosts are up to a second apart; ranks leave within microseconds."""
    for rank, clock in run.found.clocks.items():
        assert abs(clock.offset_ns - run.truth["offsets_ns"][rank]) <= run.truth["leave_ns"]
        few = rank == CORRUPT + 1  # it has no partner, and shares but a step's last collective
        assert 0 < clock.residual_ns <= (TOGETHER_NS if few else run.truth["leave_ns"])
    assert sorted(run.found.clocks) == [rank for rank in range(RANKS) if rank != CORRUPT]


@pytest.mark.slow
def test_waiting_equals_that_by_the_true_clocks(run: Run) -> None:
    """Read with sqlite3 and added up in lists."""
    came: dict[tuple[Any, int], dict[int, int]] = defaultdict(dict)
    for rank in run.found.rank_numbers:
        for group, number, start in _collectives(run.folder / f"net.rank{rank}.sqlite", rank):
            came[group, number][rank] = start - run.truth["offsets_ns"][rank]
    waited: dict[int, int] = defaultdict(int)
    for ranks in came.values():
        for rank, start in ranks.items():
            waited[rank] += max(ranks.values()) - start
    least = 4 * run.truth["leave_ns"] * run.truth["collectives"]
    for one in run.found.stragglers:
        assert one.waited_ns == pytest.approx(waited[one.rank], abs=least)


def _collectives(path: Path, rank: int) -> Sequence[tuple[Any, int, int]]:
    with closing(sqlite3.connect(path)) as db:
        rows = db.execute(
            "SELECT streamId, start FROM CUPTI_ACTIVITY_KIND_KERNEL JOIN StringIds"
            " ON id = demangledName WHERE value LIKE 'nccl%' ORDER BY start"
        ).fetchall()
    streams = defaultdict(list)
    for stream, start in rows:
        streams[stream].append(start)
    big = max(streams, key=lambda stream: -len(streams[stream]))
    return [
        ("world" if stream == big else ("pair", rank // 2), number, start)
        for stream, starts in streams.items()
        for number, start in enumerate(starts)
    ]


@pytest.mark.slow
def test_of_two_causes_the_costlier_comes_first(tmp_path: Path) -> None:
    """Many blocks: the slow pair costs more than the straggler, which it hides."""
    truth = _generate(tmp_path / "ranks", "--ranks", "16", "--slow-pair", "4", "--blocks", "8")
    found = _measured(tmp_path / "ranks")
    speed, straggler, *_ = ranks_text.in_words(found)
    assert speed.startswith("The link between ranks 4 and 5 is slow")
    assert straggler.startswith(f"Rank {truth['straggler']} is the straggler")
    assert "hides most of it" in straggler
    late = [one.ranks for one in found.together] + [(one.rank,) for one in found.late]
    assert {rank for ranks in late[:1] for rank in ranks} <= {4, 5}


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


def _speeds(found: RankComparison) -> list[tuple[object, ...]]:
    return sorted(
        (speed.groups[0].ranks.tolist(), *astuple(speed.key), speed.ranks, speed.calls,
         speed.bus_rate)
        for speed in found.group_speeds
    )  # fmt: skip


@pytest.mark.long
def test_markers_give_the_same_groups_as_nccl(tmp_path: Path) -> None:
    """Without NCCL's payloads the answer is the same, bus bandwidth included."""
    found = []
    for told in ("payloads", "markers"):
        _generate(tmp_path / told, "--ranks", "16", "--slow-pair", "4", "--told", told)
        found.append(_measured(tmp_path / told))
    one, other = found
    assert _speeds(one) == _speeds(other)
    assert all(speed.bus_rate for speed in other.group_speeds)
    assert (one.stragglers, one.clocks) == (other.stragglers, other.clocks)
    assert {group.name for group in other.groups} == {*map(str, range(9))}


@pytest.mark.long
def test_without_group_names_the_findings_are_the_same(tmp_path: Path) -> None:
    """As in most captures of nsys: groups are found from who leaves together."""
    truth = _generate(tmp_path / "ranks", "--ranks", "16", "--slow-pair", "4", "--told", "nowhere")
    found = _measured(tmp_path / "ranks")
    (straggler,) = ranks_text.stragglers(found)
    assert straggler.rank == truth["straggler"]
    assert found.slow[0].speed.groups[0].ranks.tolist() == truth["slow_pair"]
    assert {speed.bus_rate for speed in found.group_speeds} == {None}  # of how many ranks?
