"""Each row of the table of cards is complete, has its sources, and is found by its spellings."""

from collections.abc import Mapping

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


_CDNA2 = {
    "float64": 128, "float64 tensor": 256, "float32": 128, "float32 tensor": 256,
    "half tensor": 1024, "int8 tensor": 1024,
}  # fmt: skip
_CDNA3 = {
    "float64": 128, "float64 tensor": 256, "float32": 256, "float32 tensor": 256,
    "tf32 tensor": 1024, "half tensor": 2048, "float8 tensor": 4096, "int8 tensor": 4096,
}  # fmt: skip
_CDNA4 = {
    "float64": 128, "float64 tensor": 128, "float32": 256, "float32 tensor": 256,
    "half tensor": 4096, "float8 tensor": 8192, "int8 tensor": 8192, "float4 tensor": 16384,
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "cus", "mhz", "per_clock"),
    [("MI210", 104, 1700, _CDNA2), ("MI250", 104, 1700, _CDNA2), ("MI250X", 110, 1700, _CDNA2),
     ("MI300X", 304, 2100, _CDNA3), ("MI325X", 304, 2100, _CDNA3),
     ("MI350X", 256, 2200, _CDNA4), ("MI355X", 256, 2400, _CDNA4)],
)  # fmt: skip
def test_amds_rates_are_those_of_compute_units_and_clock(
    name: str, cus: int, mhz: int, per_clock: Mapping[str, int]
) -> None:
    """AMD's figures are CUs x clock x FLOPs per clock, as its whitepapers of CDNA 2, 3, 4 say."""
    formula = {key: cus * mhz * flops / 1e6 for key, flops in per_clock.items()}
    assert known(find_card(name)).rates_tflops == pytest.approx(formula, rel=0.003)


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
