"""Collectives of a group by kind, algorithm and size."""

from pyprof.analysis.ranks.findings import compare_ranks
from tests.analysis.ranks.literal import Collective, gathered

MS = 1_000_000


def _calls(*calls: tuple[str, int | None]) -> list[Collective]:
    """Return the same calls, of a kind and size, of two ranks."""
    return [
        Collective(rank, (place * MS, place * MS + 500), kind=kind, size=2, bytes=size)
        for rank in (0, 1)
        for place, (kind, size) in enumerate(calls)
    ]


def _keys(*calls: tuple[str, int | None]) -> dict[tuple[object, ...], int]:
    speeds = compare_ranks(gathered(_calls(*calls))).group_speeds
    return {(each.key.kind, each.key.bytes, each.key.mixed): each.calls for each in speeds}


def test_each_kind_and_size_is_counted_apart() -> None:
    assert _keys(("all_reduce", 8), ("all_gather", 8), ("all_reduce", 16), ("all_reduce", 8)) == {
        ("all_reduce", 8, False): 2,
        ("all_reduce", 16, False): 1,
        ("all_gather", 8, False): 1,
    }


def test_sizes_that_are_unknown_stay_unknown() -> None:
    assert _keys(("all_reduce", None)) == {("all_reduce", None, False): 1}


def test_of_very_many_sizes_the_rarer_are_one_kind_of_mixed_size() -> None:
    found = _keys(*(("all_reduce", 8 * size) for size in range(1, 101)))
    (mixed,) = [calls for (_, _, is_mixed), calls in found.items() if is_mixed]
    assert mixed == 100 - (len(found) - 1)
    assert sum(found.values()) == 100
