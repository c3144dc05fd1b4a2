"""Names of serving steps state their requests."""

from __future__ import annotations

import pytest

from pyprof.marker import batch
from pyprof.marker.batch import Batch, Phase

MIXED = (
    "execute_8192_context_9(sq8155sk8430sqsq7475785sqsk7671310)"
    "_generation_37(sq37sk34489sqsq37sqsk34489)"
)


def test_sums_of_both_phases_are_read() -> None:
    """Requests, new tokens, cached tokens, squares and products."""
    assert batch.read(MIXED) == Batch(
        Phase(9, 8155, 8430, 7475785, 7671310), Phase(37, 37, 34489, 37, 34489)
    )
    assert batch.read("execute_context_0(0)_generation_2(sq2sk9sqsq2sqsk9)") == Batch(
        Phase(), Phase(2, 2, 9, 2, 9)
    )


@pytest.mark.parametrize(
    "text",
    [
        "execute_context_1(888)_generation_0(0)",  # how many keys, an old version does not say
        "step[DECODE bs=32]",
        f"{MIXED} again",
        MIXED.replace("sk8430", ""),
        MIXED.replace("8155", "9" * 30),
        "",
    ],
)
def test_what_states_no_sums_is_nothing(text: str) -> None:
    """Nothing is guessed."""
    assert batch.read(text) is None


def test_scores_are_an_area() -> None:
    """Of new tokens the causal triangle, of a decoded token the whole row."""
    found = batch.read("execute_9_context_1(sq6sk8sqsq36sqsk48)_generation_2(sq2sk10sqsq2sqsk10)")
    assert found is not None
    assert (found.queries, found.keys, found.twice_scores) == (8, 18, 2 * 48 - 36 + 2 * 10)
