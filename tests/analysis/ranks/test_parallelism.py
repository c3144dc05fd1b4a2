"""Roles of process groups, exposed time, pipeline bubbles, and uneven experts."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pyprof.analysis.ranks.match import match
from pyprof.analysis.ranks.parallelism import Role, axes, group_role
from tests.analysis.ranks.literal import Collective, collectives
from tests.commands import printed, run
from tests.readers.kineto_json import kernel, text

RANKS = 4
STEP_US = 1000


@pytest.mark.parametrize(
    ("description", "name", "kinds", "expected"),
    [
        ("TENSOR_MODEL_PARALLEL_GROUP", "3", ["all_reduce"], ("TP", "description")),
        ("EXPERT_MODEL_PARALLEL_GROUP", "3", ["all_to_all"], ("EP", "description")),
        ("EXPERT_DATA_PARALLEL_GROUP", "3", ["all_reduce"], ("DP", "description")),
        ("PIPELINE_MODEL_PARALLEL_GROUP", "3", ["send_recv"], ("PP", "description")),
        ("CONTEXT_PARALLEL_GROUP", "3", ["send_recv"], ("CP", "description")),
        ("mesh_dp_shard_cp", "4", ["all_gather"], ("DP", "description")),
        ("mesh_tp", "4", ["all_gather"], ("TP", "description")),
        (None, "tp:0", ["all_reduce"], ("TP", "name")),
        (None, "7", ["send_recv"], ("PP", "traffic")),
        (None, "7", ["send_recv", "broadcast"], ("PP", "traffic")),
        (None, "7", ["all_reduce", "send_recv"], ("", "")),
        (None, "0", ["all_reduce"], ("", "")),
        ("default_pg", "0", ["all_reduce"], ("", "")),
        ("adapter", "step", ["all_reduce"], ("", "")),  # holds no word, though letters of one
    ],
)
def test_roles_follow_from_descriptions_names_or_traffic(
    description: str | None, name: str, kinds: list[str], expected: tuple[str, str]
) -> None:
    """Megatron's and meshes' descriptions, vLLM's names; else unknown."""
    assert group_role(description, name, kinds) == Role(*expected)


def test_crossing_groups_are_told_apart_by_their_ranks() -> None:
    """Without descriptions, neighbours are one role and strided ranks another."""
    groups = {"a": (0, 1), "b": (2, 3), "c": (0, 2), "d": (1, 3)}
    found = axes(*_crossing(groups))
    axes_found = {(axis.role, axis.evidence, axis.groups) for axis in found}
    assert axes_found == {("TP", "layout", 2), ("DP", "layout", 2)}
    del groups["d"]  # rank 3 and 1 in no second group: no more than a guess
    assert {axis.role for axis in axes(*_crossing(groups))} == {""}


def _crossing(groups: Mapping[str, tuple[int, ...]]) -> Any:  # noqa: ANN401 - arguments of axes
    columns = collectives(
        Collective(rank, (at, at + 1), group=name, members=str(ranks))
        for place, (name, ranks) in enumerate(groups.items())
        for rank in ranks
        for at in range(1000 * place, 1000 * place + 900, 300)
    )
    return columns, match(columns).matrices


def _collective(
    corr: int, ts: float, dur: float, what: str, group: tuple[str, str, list[int]], got: int
) -> dict[str, Any]:
    name, description, ranks = group
    event = kernel(corr, ts, dur, name=f"ncclDevKernel_{what}_RING_LL(ncclDevKernelArgsStorage)")
    event["args"] |= {
        "stream": 20 + int(name), "Collective name": what, "Process Group Name": name,
        "Process Group Description": description, "Process Group Ranks": str(ranks),
        "Group size": len(ranks), "dtype": "BFloat16", "In msg nelems": 512, "Out msg nelems": got,
    }  # fmt: skip
    return event


@pytest.fixture
def ranks(tmp_path: Path) -> Path:
    """Return four ranks, two stages of two: the second stage waits, rank 3's experts get most."""
    for rank in range(RANKS):
        stage, place = divmod(rank, 2)
        pipeline = ("1", "PIPELINE_MODEL_PARALLEL_GROUP", [place, place + 2])
        experts = ("2", "EXPERT_MODEL_PARALLEL_GROUP", [2 * stage, 2 * stage + 1])
        events: list[dict[str, Any]] = []
        for step in range(5):
            at, corr = step * STEP_US, 100 * step
            wait, got = 300 if stage else 100, 3072 if rank == 3 else 1024
            events += [
                kernel(corr + 1, at, 400),
                _collective(corr + 2, at + 400, wait, "send", pipeline, 512),
                _collective(corr + 3, at + 700, 200, "all_to_all", experts, got),
                kernel(corr + 4, at + 750, 100),
            ]  # fmt: skip
        trace = text(events, distributedInfo={"rank": rank, "world_size": RANKS})
        (tmp_path / f"rank{rank}.json").write_text(trace)
    return tmp_path


@pytest.mark.slow
def test_bubbles_exposure_and_experts(ranks: Path) -> None:
    """As planted: bubbles of 100 and 300 us, 100 of 200 us hidden, three times the tokens."""
    out = ranks / "found.json"
    printed("ranks", "-q", ranks, "-o", out)
    found = json.loads(out.read_text())
    assert [row["bubble_ns"] for row in found["ranks"]] == [500e3, 500e3, 1500e3, 1500e3]
    by_role = {row["role"]: row for row in found["parallelism"]}
    assert by_role["EP"]["exposed_ns"] == by_role["EP"]["communication_ns"] / 2 == 500e3
    assert by_role["PP"]["exposed_ns"] == np.mean([500e3, 1500e3])
    assert (by_role["PP"]["groups"], by_role["PP"]["ranks"], by_role["PP"]["calls"]) == (2, 2, 5)
    assert (by_role["EP"]["busiest"], by_role["EP"]["imbalance"]) == (3, 2.0)


def test_the_text_has_roles_bubbles_and_both_findings(ranks: Path) -> None:
    text = run("ranks", ranks).stdout
    assert "Bubble%" in text
    assert "Parallelism  Known by" in text
    assert "2.00x, rank 3" in text
    assert "Rank 2 spends 30.6 % of its time in pipeline bubbles" in text
    assert "Experts are unevenly used: rank 3 receives 2.00 times" in text


def test_without_stages_there_is_no_column_of_bubbles(ranks: Path) -> None:
    unsaid = {"PIPELINE_MODEL_PARALLEL_GROUP": "", "EXPERT_MODEL_PARALLEL_GROUP": "",
              '"send"': '"allreduce"', "_send_": "_AllReduce_"}  # fmt: skip
    for path in ranks.glob("*.json"):
        text = path.read_text()
        for said, nothing in unsaid.items():
            text = text.replace(said, nothing)
        path.write_text(text)
    text = run("ranks", ranks).stdout
    assert "Bubble%" not in text
    assert "Parallelism" not in text
