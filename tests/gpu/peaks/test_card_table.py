"""Each row of the table of cards is complete, has its sources, and is found by its spellings."""

import pytest

from pyprof.gpu.peaks import find_card
from pyprof.gpu.peaks.card_table import CARDS, DOUBTS, SOURCES, Card
from pyprof.gpu.peaks.formula import FULL, GEFORCE
from tests.known import known


@pytest.mark.parametrize("card", CARDS, ids=[card.name for card in CARDS])
def test_each_row_is_complete(card: Card) -> None:
    assert all(find_card(spelling) is card for spelling in (card.name, *card.spellings))
    cited = card.sources.split()
    assert cited
    assert set(cited) <= {*SOURCES, "F", "C"}
    assert set(card.doubts) <= set(DOUBTS)
    assert all(rate > 0 for rate in card.rates_tflops.values())


def test_every_caveat_and_source_is_used() -> None:
    doubts = {key for card in CARDS for key in card.doubts}
    formula = {key for kind in (FULL, GEFORCE) for row in kind.values() for key in row.doubts}
    assert doubts | formula == set(DOUBTS)
    assert {key for card in CARDS for key in card.sources.split()} - {"F", "C"} == set(SOURCES)


@pytest.mark.parametrize(("cus", "mhz", "name"), [(256, 2400, "MI355X"), (256, 2200, "MI350X")])
def test_cdna4_by_compute_units_and_clock(cus: int, mhz: int, name: str) -> None:
    """AMD's figures are CUs x clock x FLOPs per clock: 256 for float32, 8192 for float8."""
    card = known(find_card(name))
    per_clock = {"float64": 128, "float32": 256, "half tensor": 4096, "float8 tensor": 8192,
                 "float4 tensor": 16384}  # fmt: skip
    for key, operations in per_clock.items():
        formula = cus * mhz * 1e6 * operations / 1e12
        assert card.rates_tflops[key] == pytest.approx(formula, rel=0.001)


@pytest.mark.parametrize(
    ("name", "tflops"),
    [
        # as hmc-tech.com has them: float32, tf32, bfloat16 and float8 with float32 sums
        ("NVIDIA GeForce RTX 5090 Laptop GPU", (45.34, 56.99, 113.99, 227.97)),
        ("NVIDIA GeForce RTX 4090 Laptop GPU", (39.71, None, None, None)),
    ],
)
def test_laptop_rates_are_those_of_published_tables(
    name: str, tflops: tuple[float | None, ...]
) -> None:
    card = known(find_card(name))
    keys = ("float32", "tf32 tensor", "half tensor", "float8 tensor")
    for key, value in zip(keys, tflops, strict=True):
        if value is not None:
            assert card.rates_tflops[key] == pytest.approx(value, rel=0.001)
