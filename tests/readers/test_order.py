"""Activities come in the order in which the GPU started them."""

import random

import pytest

from pyprof import schema
from pyprof.readers.order import in_order

KEYS = ("start", "end", "device", "stream", "corr")


@pytest.mark.parametrize("rows", [0, 1, 2, 200])
@pytest.mark.parametrize("seed", range(5))
def test_rows_are_sorted_as_python_sorts_them(rows: int, seed: int) -> None:
    """By start, then by what else tells two apart; what is in order is not copied."""
    chance = random.Random(seed)  # noqa: S311 - no secret
    keys = [tuple(chance.choice((None, 0, 1, 2)) for _ in KEYS) for _ in range(rows)]
    table = schema.table(
        schema.ACTIVITIES,
        {name: [key[place] for key in keys] for place, name in enumerate(KEYS)}
        | {"bytes": list(range(rows))},
    )
    found = in_order(table)
    expected = sorted(
        zip(keys, range(rows), strict=True),
        key=lambda entry: [-1 if value is None else value for value in entry[0]],
    )
    assert found.column("bytes").to_pylist() == [row for _, row in expected]
    assert in_order(found) is found
