"""`pyprof peaks`: figures of cards, and measurements on this machine."""

import json

import pytest

from pyprof.gpu.peaks.card_table import CARDS
from tests.commands import refused, run

pytestmark = pytest.mark.usefixtures("nothing_measured")


def test_the_table_marks_cards_with_caveats() -> None:
    text = run("peaks").stdout
    for card in CARDS:
        assert f"\n{card.name}{'*' if card.doubts else ' '}" in text
    assert "T4: some pages say 300 GB/s" in text


def test_an_unknown_card_has_no_peaks() -> None:
    assert "--gpu flops=F" in refused("peaks", "NVIDIA B9000")


def test_measuring_prints_and_saves_rates(
    tmp_path: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("torch")
    monkeypatch.setattr("pyprof.gpu.peaks.microbenchmark.CPU_SIDE", 32)
    monkeypatch.setattr("pyprof.gpu.peaks.microbenchmark.CPU_COPY_BYTES", 1 << 12)
    monkeypatch.setattr("pyprof.gpu.peaks.microbenchmark.measure.__kwdefaults__", {"side": None,
                        "copy_bytes": None, "budget_s": 0.0})  # fmt: skip
    done = run("peaks", "--measure", "cpu")
    assert done.code == 0
    assert done.stdout.startswith("cpu (measured)\n")
    place = done.stderr.split("saved to ")[1].split(";")[0]
    assert place.startswith(str(tmp_path))
    with open(place, encoding="utf-8") as file:  # noqa: PTH123 - a text that the command wrote
        assert json.load(file)["cpu"]["bandwidth"] > 0
