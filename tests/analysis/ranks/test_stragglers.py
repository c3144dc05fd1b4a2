"""What a rank is compared with, and how evenly layers lie on the ranks."""

import pyarrow as pa
import pytest

from pyprof.analysis.ranks.stragglers import layer_spreads, slowest, stragglers
from pyprof.analysis.ranks.tables import LAYERS
from pyprof.answers.ranks_answer import StragglerCost


def _layers(*rows: tuple[int, str, int]) -> pa.Table:
    rank, layer, gpu_ns = zip(*rows, strict=True) if rows else ([], [], [])
    return pa.table({"rank": rank, "layer": layer, "gpu_ns": gpu_ns}, schema=LAYERS)


def test_layers_are_compared_among_the_ranks_that_have_them() -> None:
    """The layer with the largest excess over its mean comes first; for equal ranks, the lower."""
    loads = layer_spreads(_layers(
        (0, "embed", 900), (0, "block", 100), (1, "block", 400), (2, "block", 100),
        (1, "head", 60), (2, "head", 60), (0, "even", 10),
        (0, "idle", 0), (1, "idle", 0),
    ))  # fmt: skip
    assert [(load.layer, load.mean_ns, load.most_ns, load.rank, load.ranks) for load in loads] == [
        ("block", 200, 400, 1, 3),
        ("embed", 900, 900, 0, 1),
        ("even", 10, 10, 0, 1),
        ("head", 60, 60, 1, 2),
        ("idle", 0, 0, 0, 2),
    ]
    assert [load.imbalance for load in loads] == [2, 1, 1, 1, None]
    assert [load.uneven for load in loads] == [True, False, False, False, False]
    assert layer_spreads(_layers()) == []


@pytest.mark.parametrize(
    ("low_ns", "expected"), [(95, [2]), (70, [])], ids=["steadily", "now and then"]
)
def test_a_rank_is_slow_if_it_exceeds_the_others_in_most_steps(
    low_ns: int, expected: list[int]
) -> None:
    """Where each rank is held up in turn, one of them has the largest median by chance."""
    own_ns = {0: 80, 1: 81, 2: 100, 3: 82}
    costs = stragglers([], own_ns, [*own_ns])
    assert [(one.rank, one.excess_ns) for one in costs] == [(2, 19), (3, 1), (1, -1), (0, -2)]
    assert slowest(costs, {**own_ns, 2: low_ns}, 200, ()) == expected


@pytest.mark.parametrize(("costs_ns", "expected"), [
    ((9, 4, 0, 0), [0]),
    ((9, 5, 0, 0), [0, 1]),
    ((9, 5, 5, 0), []),
    ((9, 5), []),
    ((0, 0), []),
])  # fmt: skip
def test_without_steps_those_are_slow_whom_the_others_wait_for(
    costs_ns: tuple[int, ...], expected: list[int]
) -> None:
    """Where most ranks cost alike, they hold each other up, and the dearest one is chance."""
    costs = [StragglerCost(rank, 1, 2, ns, 0, None, None) for rank, ns in enumerate(costs_ns)]
    assert slowest(costs, {}, None, ()) == expected
