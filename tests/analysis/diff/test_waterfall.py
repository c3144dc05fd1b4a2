"""From A's time to B's, op by op."""

from itertools import pairwise
from types import SimpleNamespace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from pyprof.analysis.diff.waterfall import waterfall

_TIMES = st.tuples(st.sampled_from("abcdefgh"), st.integers(0, 99), st.integers(0, 99))


def _changes(taken: list[tuple[str, int, int]]) -> list[Any]:
    return [
        SimpleNamespace(key={"op": name, "shape": "4x4"}, a_ns=a, b_ns=b, change_ns=b - a)
        for name, a, b in taken
    ]


@given(st.lists(_TIMES, max_size=20), st.integers(1, 5))
def test_stages_lead_from_the_time_of_a_to_that_of_b(
    changes: list[tuple[str, int, int]], most: int
) -> None:
    stages = waterfall(_changes(changes), most)
    a_ns, b_ns = sum(a for _, a, _ in changes), sum(b for *_, b in changes)
    edges = [a_ns, *(stage.to_ns for stage in stages)]
    assert edges[:-1] == [stage.from_ns for stage in stages]
    assert [b - a for a, b in pairwise(edges)] == [stage.change_ns for stage in stages]
    assert edges[-1] == b_ns
    assert len(stages) <= most + 1


def test_an_op_of_several_shapes_is_one_stage() -> None:
    (stage,) = waterfall(_changes([("mm", 5, 9), ("mm", 3, 1), ("add", 2, 2)]))
    assert (stage.name, stage.change_ns, stage.op_count) == ("mm", 2, 1)


def test_the_rest_is_one_stage_that_counts_its_ops() -> None:
    *_, rest = waterfall(_changes([("a", 0, 50), ("b", 0, 2), ("c", 3, 0)]), most=1)
    assert (rest.name, rest.op_count, rest.change_ns) == ("all others", 2, -1)
