"""Transfer of each process group, and groups that are slower than similar ones."""

from pyprof.analysis.ranks.findings import compare_ranks
from pyprof.answers.ranks_answer import Ranks
from tests.analysis.ranks.literal import Collective, gathered

BYTES = 1 << 20
MS = 1_000_000


def _pairs(slow_ms: float, calls: int = 20) -> Ranks:
    """Return four groups of two ranks; the last transfers for `slow_ms`, the others for 1 ms."""
    rows = []
    for group in range(4):
        length = int(MS * (slow_ms if group == 3 else 1))
        for rank in (2 * group, 2 * group + 1):
            members = f"{2 * group},{2 * group + 1}"
            rows += [
                Collective(rank, (at, at + length), group=str(group), members=members, size=2,
                           bytes=BYTES)
                for at in range(0, 10 * calls * MS, 10 * MS)
            ]  # fmt: skip
    return compare_ranks(gathered(rows))


def test_a_group_that_transfers_longer_than_similar_ones_is_slow() -> None:
    """One or two calls do not show it."""
    assert _pairs(3, calls=2).slow_groups == ()
    assert _pairs(3, calls=3).slow_groups
    (slow,) = _pairs(3).slow_groups
    assert slow.members == "6 7"
    assert (slow.usual_ns, slow.times_like_groups, slow.like_groups) == (MS, 3, 3)
    assert slow.lost_ns == 2 * MS * slow.calls


def test_equal_groups_are_one_row_and_none_is_slow() -> None:
    found = _pairs(1)
    (joined,) = found.collectives
    assert (joined.groups, found.slow_groups) == (4, ())
    assert joined.algorithm_bytes_per_s == BYTES / 1e-3
