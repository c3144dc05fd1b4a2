"""The answer of `pyprof peaks`: rows of cards and of measurements."""

import pytest

from pyprof.gpu.peaks import by_type
from pyprof.gpu.peaks.card_table import CARDS
from pyprof.gpu.peaks.ceilings import Ceilings, save
from tests.answers.checked import ask
from tests.commands import refused, run

pytestmark = pytest.mark.usefixtures("nothing_measured")


def _csv(*arguments: str) -> list[dict[str, str]]:
    return run("peaks", "--csv", *arguments).rows


def test_every_card_is_listed_with_all_its_figures() -> None:
    """The CSV is the table of cards, figure by figure; unknown figures are empty."""
    rows = _csv()
    assert [row["gpu"] for row in rows] == [card.name for card in CARDS]
    for row, card in zip(rows, CARDS, strict=True):
        rates = by_type(card.rates_tflops)
        assert {key: float(row[key]) for key in rates} == rates
        assert float(row["gb_s"]) == card.bandwidth_gb_s
        assert bool(row["doubts"]) == bool(card.doubts)


@pytest.mark.parametrize(("name", "cards"), [
    ("NVIDIA H100 80GB HBM3", ["H100 SXM"]),
    ("Tesla V100-SXM2-16GB", ["V100 SXM2"]),
    ("h1", ["H100 SXM", "H100 PCIe", "H100 NVL"]),
    ("RTX 409", ["RTX 4090", "RTX 4090 Laptop"]),
])  # fmt: skip
def test_a_name_finds_its_card_and_a_part_all_that_have_it(name: str, cards: list[str]) -> None:
    assert [row["gpu"] for row in _csv(name)] == cards
    text = run("peaks", name).stdout
    assert text.count("memory ") == len(cards)
    assert "source: " in text


def test_measured_figures_stand_beside_the_datasheet() -> None:
    """Found by the device's own name and by its card's."""
    save(Ceilings("NVIDIA H100 80GB HBM3", {"half tensor": 7.5e14}, 2.9e12))
    save(Ceilings("cpu", {"float32": 2e11}, 1.5e10))
    assert {row["basis"]: row["bfloat16 tensor"] for row in _csv("H100 SXM")} == {
        "datasheet": "989.4", "measured": "750.0",
    }  # fmt: skip
    assert [row["gb_s"] for row in _csv("cpu")] == ["15.0"]
    assert "GB/s, measured" in run("peaks").stdout


def test_peaks_are_of_all_cards_or_the_one_asked_for() -> None:
    """-o x.json is the same as --json."""
    answer = ask("peaks")
    (h100,) = [card for card in answer["devices"] if card["gpu"] == "H100 SXM"]
    assert (h100["sm_count"], h100["compute_capability"]) == (132, "9.0")
    assert 900 < h100["tflops"]["bfloat16 tensor"] < 1000
    assert ask("peaks", "H100 SXM")["devices"] == [h100]
    refused("peaks", "no such card", "--json")
