"""The tables of one rank."""

from pathlib import Path

import pytest

from pyprof.analysis.ranks.rank_tables import measure_ranks
from pyprof.inputs.executor import InProcess
from pyprof.inputs.ranks import ranked_captures
from tests.analysis.captures import GEMM, NCCL
from tests.builders import Range, Work, nsys_db
from tests.commands import run
from tests.readers.kineto_json import event, op, trace_file


@pytest.mark.slow
@pytest.mark.parametrize(("pause", "second"), [(0, 200), (1_000_000, 170)])
def test_exposed_communication_of_a_step_after_a_pause(
    pause: int, second: int, tmp_path: Path
) -> None:
    """Two steps, 20 and 70 ns of only communication; a window begins with its first kernel."""
    again = 1000 + pause
    work = [
        Work(GEMM, (500, 580), call=(110, 120)),
        Work(NCCL, (570, 600), call=(130, 140)),
        Work(kind="none", api="cudaProfilerStop_v4000", call=(590, 600)),
        Work(kind="none", api="cudaProfilerStart_v4000", call=(600 + pause, 601 + pause)),
        Work(GEMM, (again - 370, again - 270), call=(again - 390, again - 380)),
        Work(NCCL, (again - 270, again - 200), call=(again - 375, again - 371)),
    ]
    ranges = [Range("step 0", (100, 200)), Range("step 1", (again - 395, again - 300))]
    executor = InProcess()
    (member,) = ranked_captures([str(nsys_db(tmp_path / "net.sqlite", work, ranges))], executor)
    (rank,) = measure_ranks(member).ranks
    assert [(gpu.steps, gpu.step_ns) for gpu in rank.gpus] == [(2, (100 + second) / 2)]
    own_ns = (100 - 20, second - 70)
    assert rank.own_ns == sum(own_ns) / 2
    assert rank.own_low_ns == min(own_ns) + abs(own_ns[1] - own_ns[0]) / 4


def test_a_step_that_holds_an_unknown_wait_has_no_own_time(tmp_path: Path) -> None:
    """The op returns at once; a `gloo:` range, if there is one, shows how long ranks wait."""
    steps = [event("user_annotation", f"ProfilerStep#{n}", 100 * n, 99) for n in range(3)]
    ops = [op("c10d::allreduce_", 100 * n + 10, 5) for n in range(3)]
    waits = [event("user_annotation", "gloo:all_reduce", 100 * n + 12, 80, tid=9) for n in range(3)]
    mms = [op("aten::mm", 100 * n + at, 4) for n in range(3) for at in (2, 94)]
    own = []
    for more in ([], waits):
        path = trace_file(tmp_path, [*steps, *ops, *mms, *more])
        (member,) = ranked_captures([str(path)], InProcess())
        own.append(measure_ranks(member).ranks[0].own_ns)
    assert own == [None, 100_000 - 80_000]


@pytest.mark.slow
def test_warnings_that_captures_share_are_shown_once(tmp_path: Path) -> None:
    for rank in range(3):
        nsys_db(tmp_path / f"net.rank{rank}.sqlite", [Work()], [])
    said = [line for line in run("ranks", tmp_path).stderr.splitlines() if "NVTX" in line]
    assert len(said) == 1
    assert "net.rank0.sqlite and 2 more: " in said[0]
