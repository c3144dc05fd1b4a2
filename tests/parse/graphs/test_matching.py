"""Random captures of CUDA graphs: every op is found, and none is wrong if rows are missing."""

from collections import Counter, defaultdict
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import TypeVar

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pyprof.parse import parse_file
from pyprof.parse.graphs.matching import fits
from pyprof.prof.table import Table
from pyprof.records.records import Records
from tests.builders import LAYOUTS, Layout, nsys_db
from tests.capture_files.graphs import Planted, Scenario, scenario

T = TypeVar("T")
RANDOM = st.randoms(use_true_random=False)
FEWER = settings(
    max_examples=settings().max_examples // 3,  # each writes a file, and reads it
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


def parsed(folder: Path, made: Scenario, layout: Layout = LAYOUTS["2024.6"]) -> Records:
    work = [*made.work, *made.calls]
    return parse_file(nsys_db(folder / "a.sqlite", work, made.ranges, layout, made.nodes))


def sizes(records: Records) -> dict[int, int | None]:
    starts, shapes = (records.arrow(name).to_pylist() for name in ("start", "sizes"))
    return {start: size[0][0] if size else None
            for start, size in zip(starts, shapes, strict=True)}  # fmt: skip


@FEWER
@given(RANDOM)
def test_every_op_is_found_and_costs_once_a_replay(tmp_path: Path, random: Random) -> None:
    """In clones, child graphs, several streams, and processes with the same ids.

    The kernels of an op have its FLOPs once per replay, for each time that it occurs.
    """
    made = scenario(random)
    records = parsed(tmp_path, made)
    assert sizes(records) == {start: planted.size for start, planted in made.truth.items()}
    starts, layers, vias = (records.arrow(name).to_pylist() for name in ("start", "layer", "via"))
    assert layers == [[made.truth[start].layer] for start in starts]
    assert vias == ["graph node" if start in made.replay else "launch" for start in starts]
    charged: dict[tuple[int, Planted], int] = defaultdict(int)
    for start, cost in zip(starts, Table(records).costs.flops.tolist(), strict=True):
        charged[made.replay.get(start, start), made.truth[start]] += cost
    assert charged == {key: times * key[1].flops for key, times in _count_ops(made).items()}


def _count_ops(made: Scenario) -> dict[tuple[int, Planted], int]:
    """Count each op in each replay: as often as the most frequent of its captured nodes ran."""
    origin: dict[tuple[int, int | None], tuple[int, int | None]] = {}
    for node in made.nodes:
        origin[node.pid, node.id] = (
            origin[node.pid, node.of] if node.of is not None else (node.pid, node.id)
        )
    runs = Counter(
        (made.replay.get(work.at[0], work.at[0]), made.truth[work.at[0]],
         origin.get((work.pid, work.node)))
        for work in made.work
    )  # fmt: skip
    most: dict[tuple[int, Planted], int] = {}
    for (replay, planted, _), count in runs.items():
        most[replay, planted] = max(count, most.get((replay, planted), 0))
    return most


@pytest.mark.slow
@FEWER
@given(RANDOM)
def test_no_op_is_wrong_where_rows_are_missing(tmp_path: Path, random: Random) -> None:
    made = scenario(random)
    share = random.random()

    def left(rows: list[T]) -> list[T]:
        return [row for row in rows if random.random() > share]

    called = {id(work) for work in left(made.work)}
    kept = Scenario(
        work=[work if id(work) in called else replace(work, call=None)
              for work in left(made.work) or made.work[:1]],
        ranges=left(made.ranges),
        nodes=left(made.nodes),
    )  # fmt: skip
    records = parsed(tmp_path, kept)
    assert records.rows == len(kept.work)
    for start, size in sizes(records).items():
        assert size in {None, made.truth[start].size}


@pytest.mark.long
@FEWER
@given(RANDOM)
def test_no_op_is_wrong_in_exports_without_original_nodes(tmp_path: Path, random: Random) -> None:
    """They lack the node that each was cloned from: instantiated graphs have no ops."""
    made = scenario(random)
    records = parsed(tmp_path, made, replace(LAYOUTS["2024.6"], originals=False))
    replayed = {start: size for start, size in sizes(records).items() if start in made.replay}
    assert set(replayed.values()) == {None}


GEMM = "ampere_sgemm_128x64_tn"
NCCL = "ncclDevKernel_AllReduce_Sum_f16_RING_LL(ncclDevComm*)"
SOFTMAX = "void (anonymous namespace)::softmax_warp_forward<float, float, float, 8>(float*)"


@pytest.mark.parametrize(
    ("op", "kernel", "expected"),
    [
        ("aten::mm", GEMM, True),
        ("aten::add", GEMM, False),
        ("vllm::unified_attention", GEMM, True),  # a library's op may do anything
        ("c10d::allreduce_", NCCL, True),
        ("aten::mm", NCCL, False),
        ("aten::relu", SOFTMAX, False),
        ("aten::mm, seq = 3", SOFTMAX, False),
        (None, GEMM, False),
        (None, SOFTMAX, True),
    ],
)
def test_an_op_fits_unless_the_kernel_does_other_work(
    op: str | None, kernel: str, *, expected: bool
) -> None:
    assert fits(op, kernel) is expected
