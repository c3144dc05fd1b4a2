"""Collectives of two ranks, aligned by their end times."""

import numpy as np

from pyprof.analysis.ranks.stream_alignment import UNALIGNED, group_by_end_times, place
from pyprof.analysis.ranks.tables import Collectives
from tests.analysis.ranks.literal import Collective, collectives

MS = 1_000_000
RANDOM = np.random.default_rng(0)
ENDS = np.cumsum(RANDOM.integers(MS, 9 * MS, 80)).tolist()


def _ranks(*ends: list[int]) -> Collectives:
    return collectives(
        Collective(rank, (end - MS // 2, end))
        for rank, of_rank in enumerate(ends)
        for end in of_rank
    )


def _rows(columns: Collectives, rank: int) -> np.ndarray:
    return np.flatnonzero(columns.signatures.rank[columns.signature] == rank)


def test_a_capture_that_begins_later_is_shifted() -> None:
    """An offset of the clock does not matter."""
    columns = _ranks(ENDS, [end + 77 * MS for end in ENDS[5:]])
    found = place(columns, _rows(columns, 0), _rows(columns, 1))
    assert found.at.tolist() == [*range(5, 80)]


def test_other_end_times_do_not_align() -> None:
    others = np.cumsum(RANDOM.integers(MS, 9 * MS, 80)).tolist()
    columns = _ranks(ENDS, others)
    found = place(columns, _rows(columns, 0), _rows(columns, 1))
    assert found is UNALIGNED or found.spread_ns > MS / 10


def test_streams_that_end_together_are_one_bundle() -> None:
    others = np.cumsum(RANDOM.integers(MS, 9 * MS, 80)).tolist()
    columns = _ranks(ENDS, others, [end + 1000 for end in ENDS])
    bundles = group_by_end_times(columns, [_rows(columns, rank) for rank in range(3)])
    together = sorted(sorted(columns.rank_of(one.rows) for one in bundle) for bundle in bundles)
    assert together == [[0, 2], [1]]
