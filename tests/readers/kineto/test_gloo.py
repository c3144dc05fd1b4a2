"""Collectives on the CPU: when gloo's threads ran what ops of torch.distributed handed to them."""

from itertools import pairwise
from pathlib import Path

import pytest

from tests.readers.kineto_json import Event, event, op, read

OPS = [op("c10d::allreduce_", 10, 2), op("c10d::allreduce_", 20, 2), op("c10d::broadcast_", 30, 2)]


def _run(kind: str, ts: float, dur: float, tid: int) -> Event:
    return event("user_annotation", f"gloo:{kind}", ts, dur, tid=tid)


RUNS = [_run("all_reduce", 11, 50, 9), _run("all_reduce", 21, 44, 8), _run("broadcast", 62, 3, 9)]


def _rows(folder: Path, events: list[Event]) -> list[tuple[int, int, int]]:
    work = read(folder, events).activities.to_pylist()
    zero = min(row["start"] for row in work)
    return [
        (row["stream"], (row["start"] - zero) // 1000, (row["end"] - zero) // 1000) for row in work
    ]


def test_a_collective_lasts_as_long_as_its_range_on_a_thread_of_gloo(tmp_path: Path) -> None:
    """All are on one stream: which thread takes which is chance, and differs from rank to rank."""
    earlier = _run("all_reduce", 2, 5, 9)  # handed over before the recording
    assert _rows(tmp_path, [earlier, *OPS, *RUNS]) == [(0, 0, 50), (0, 10, 54), (0, 51, 54)]


def test_a_receive_lasts_until_it_is_waited_for_and_a_send_as_long_as_its_call(
    tmp_path: Path,
) -> None:
    """Their ranges begin inside the ops, on the same thread, and go on beside later ones."""
    events = [
        op("c10d::send", 10, 8), _run("send", 12, 90, 1),
        op("c10d::recv_", 20, 8), _run("recv", 22, 40, 1),
        op("aten::mm", 30, 20),
        op("c10d::send", 70, 8), _run("send", 72, 35, 1),
    ]  # fmt: skip
    assert _rows(tmp_path, events) == [(1, 0, 8), (0, 12, 52), (1, 20, 40), (1, 60, 68)]


def test_its_op_is_still_the_call(tmp_path: Path) -> None:
    calls = read(tmp_path, [*OPS, *RUNS]).calls.to_pylist()
    assert [call["end"] - call["start"] for call in calls] == [2000] * 3
    assert [b["start"] - a["start"] for a, b in pairwise(calls)] == [10_000] * 2


@pytest.mark.parametrize(
    "runs",
    [
        pytest.param([RUNS[0], RUNS[2]], id="one did not run"),
        pytest.param([*RUNS, _run("all_reduce", 70, 5, 8)], id="one was handed over unseen"),
        pytest.param([_run("all_reduce", 11, 50, 9), _run("all_reduce", 15, 50, 9), RUNS[2]],
                     id="one ran before its op"),
    ],
)  # fmt: skip
def test_collectives_of_a_kind_that_cannot_all_be_found_keep_the_time_of_the_call(
    tmp_path: Path, runs: list[Event]
) -> None:
    rows = _rows(tmp_path, [*OPS, *runs])
    assert rows[:2] == [(1, 0, 2), (1, 10, 12)]
    assert rows[2][1:] == (52, 55)


def test_a_reduce_scatter_is_an_all_reduce_of_gloo(tmp_path: Path) -> None:
    events = [op("c10d::_reduce_scatter_base_", 5, 2), OPS[1], *RUNS[:2]]
    assert _rows(tmp_path, events) == [(0, 0, 50), (0, 10, 54)]


def test_ops_of_other_back_ends_keep_their_time(tmp_path: Path) -> None:
    assert _rows(tmp_path, OPS) == [(1, 0, 2), (1, 10, 12), (1, 20, 22)]
