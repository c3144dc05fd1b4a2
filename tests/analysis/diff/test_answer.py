"""From A's time to B's, op by op."""

from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from hypothesis import given
from hypothesis import strategies as st

from pyprof.analysis.diff.answer import diff, waterfall
from pyprof.analysis.diff.compare import Comparison, compare
from pyprof.analysis.diff.side import DEFAULT, summarise_side
from pyprof.inputs.source import load
from tests.analysis.captured import capture

_TIMES = st.tuples(st.sampled_from("abcdefgh"), st.integers(0, 99), st.integers(0, 99))


def _compared(changes: list[tuple[str, int, int]]) -> Comparison:
    listed: list[Any] = [
        SimpleNamespace(key=(name, "4x4"), a_ns=a, b_ns=b, delta_ns=b - a) for name, a, b in changes
    ]
    return cast("Comparison", SimpleNamespace(changes=listed))


@given(st.lists(_TIMES, max_size=20), st.integers(1, 5))
def test_stages_lead_from_the_time_of_a_to_that_of_b(
    changes: list[tuple[str, int, int]], most: int
) -> None:
    stages = waterfall(_compared(changes), most)
    a_ns, b_ns = sum(a for _, a, _ in changes), sum(b for *_, b in changes)
    edges = [a_ns, *(stage.to_ns for stage in stages)]
    assert edges[:-1] == [stage.from_ns for stage in stages]
    assert [b - a for a, b in pairwise(edges)] == [stage.change_ns for stage in stages]
    assert edges[-1] == b_ns
    assert len(stages) <= most + 1


def test_an_op_of_several_shapes_is_one_stage() -> None:
    (stage,) = waterfall(_compared([("mm", 5, 9), ("mm", 3, 1), ("add", 2, 2)]))
    assert (stage.name, stage.change_ns, stage.op_count) == ("mm", 2, 1)


def test_the_rest_is_one_stage_that_counts_its_ops() -> None:
    *_, rest = waterfall(_compared([("a", 0, 50), ("b", 0, 2), ("c", 3, 0)]), most=1)
    assert (rest.name, rest.op_count, rest.change_ns) == ("all others", 2, -1)


def test_changes_left_out_are_counted(tmp_path: Path) -> None:
    side = summarise_side(load(str(capture(tmp_path / "net.sqlite"))), DEFAULT)
    for top, left_out in ((None, 0), (1, 3)):
        assert diff(compare(side, side), top=top).changes_left_out == left_out
