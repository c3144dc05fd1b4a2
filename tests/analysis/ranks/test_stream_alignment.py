"""Collectives of two ranks, aligned by their end times."""

import numpy as np

from pyprof.analysis.ranks.stream_alignment import UNALIGNED, group_by_end_times, place
from pyprof.analysis.ranks.tables import Collectives
from tests.analysis.ranks.literal import Collective, collectives

MS = 1_000_000
RANDOM = np.random.default_rng(0)
ENDS, OTHERS = (np.cumsum(RANDOM.integers(MS, 9 * MS, 80)).tolist() for _ in range(2))


def _ranks(*ends: list[int]) -> Collectives:
    return collectives(
        Collective(rank, (end - MS // 2, end))
        for rank, of_rank in enumerate(ends)
        for end in of_rank
    )


def _rows(columns: Collectives, rank: int) -> np.ndarray:
    return np.flatnonzero(columns.signatures.rank[columns.signature] == rank)


def test_ranks_align_by_equal_times_between_ends_alone() -> None:
    """An offset of the clock does not matter, nor that a capture begins later."""
    columns = _ranks(ENDS, [end + 77 * MS for end in ENDS[5:]], OTHERS)
    first, later, other = (_rows(columns, rank) for rank in range(3))
    assert place(columns, first, later).at.tolist() == [*range(5, 80)]
    found = place(columns, first, other)
    assert found is UNALIGNED or found.spread_ns > MS / 10


def test_streams_that_end_together_are_one_bundle() -> None:
    columns = _ranks(ENDS, OTHERS, [end + 1000 for end in ENDS])
    bundles = group_by_end_times(columns, [_rows(columns, rank) for rank in range(3)])
    together = sorted(sorted(columns.rank_of(one.rows) for one in bundle) for bundle in bundles)
    assert together == [[0, 2], [1]]
