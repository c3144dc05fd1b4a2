"""Summaries of captures merge in any order and grouping."""

from collections.abc import Sequence
from functools import reduce
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyprof.analysis.summary.overview import SummarySums, summarise, summary
from pyprof.answers import plain
from pyprof.inputs.source import load
from pyprof.records.merging import merge_sums
from tests.analysis.captured import capture

_BY_ORDER = {"row_ids", "late_row_ids"}
"""Rows are numbered on from capture to capture."""


@pytest.fixture(scope="module")
def sums(tmp_path_factory: pytest.TempPathFactory) -> list[SummarySums]:
    """Of training runs with steps, one without, and one in which much is slower."""
    folder = tmp_path_factory.mktemp("captures")
    options: Sequence[dict[str, Any]] = (
        {"steps": 4},
        {"steps": 4, "slower": 3},
        {"steps": 0},
        {"steps": 6, "hostile": "other_kernel"},
    )
    return [
        summarise(load(str(capture(folder / f"{n}.sqlite", **each))))
        for n, each in enumerate(options)
    ]


def _content(value: Any) -> Any:  # noqa: ANN401 - of JSON
    """What an answer says, without the order of what has none, to 9 digits."""
    if isinstance(value, dict):
        return {key: _content(each) for key, each in value.items() if key not in _BY_ORDER}
    if isinstance(value, list):
        return sorted((_content(each) for each in value), key=repr)
    return round(value, 9) if isinstance(value, float) else value


@pytest.mark.slow
@given(st.permutations(range(4)), st.integers(1, 3))
def test_merging_is_commutative_and_associative(
    sums: list[SummarySums], order: Sequence[int], split: int
) -> None:
    whole = reduce(merge_sums, sums)
    ordered = [sums[place] for place in order]
    parts = reduce(merge_sums, ordered[:split]), reduce(merge_sums, ordered[split:])
    assert _content(plain(summary(merge_sums(*parts)))) == _content(plain(summary(whole)))
