"""`pyprof peaks`: what is known of cards, and what was measured here."""

import csv
import io
import json

import pytest

from pyprof.gpu.ceilings import Ceilings, save
from pyprof.gpu.peak_table import CARDS
from tests.commands import run


@pytest.fixture(autouse=True)
def _kept_nowhere(tmp_path: object, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("XDG_CONFIG_HOME", "APPDATA"):
        monkeypatch.setenv(name, str(tmp_path))


def _csv(*arguments: str) -> list[dict[str, str]]:
    done = run("peaks", "--csv", *arguments)
    assert (done.code, done.stderr) == (0, "")
    return list(csv.DictReader(io.StringIO(done.stdout)))


def test_every_card_is_listed_with_all_its_figures() -> None:
    """The CSV holds the table of cards, figure by figure; what a card lacks is empty."""
    rows = _csv()
    assert [row["gpu"] for row in rows] == [card.name for card in CARDS]
    for row, card in zip(rows, CARDS, strict=True):
        assert {key: float(row[key]) for key in card.rates_tflops} == card.rates_tflops
        assert float(row["gb_s"]) == card.bandwidth_gb_s
        assert bool(row["doubts"]) == bool(card.doubts)


def test_the_table_marks_and_tells_doubts() -> None:
    """A star beside a card stands for a sentence below; no card is cut."""
    text = run("peaks").stdout
    for card in CARDS:
        assert f"{card.name}{'*' if card.doubts else ' '}" in text
    assert "T4: some pages say 300 GB/s" in text


@pytest.mark.parametrize(
    ("name", "cards"),
    [
        ("NVIDIA H100 80GB HBM3", ["H100 SXM"]),
        ("Tesla V100-SXM2-16GB", ["V100 SXM2"]),
        ("h1", ["H100 SXM", "H100 PCIe", "H100 NVL"]),
        ("RTX 409", ["RTX 4090", "RTX 4090 Laptop"]),
    ],
)
def test_a_name_finds_its_card_and_a_part_all_that_have_it(name: str, cards: list[str]) -> None:
    assert [row["gpu"] for row in _csv(name)] == cards
    text = run("peaks", name).stdout
    assert text.count("memory ") == len(cards)
    assert "source: " in text


def test_an_unknown_card_has_no_peaks() -> None:
    """One line on stderr says what to do; nothing is on stdout."""
    done = run("peaks", "NVIDIA B9000")
    assert (done.code, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert "--peak-flops" in done.stderr


def test_what_was_measured_stands_beside_the_datasheet() -> None:
    """A kept figure is found by the device's own name and by its card's."""
    save(Ceilings("NVIDIA H100 80GB HBM3", {"half tensor": 7.5e14}, 2.9e12))
    save(Ceilings("cpu", {"float32": 2e11}, 1.5e10))
    assert {row["basis"]: row["half tensor"] for row in _csv("H100 SXM")} == {
        "datasheet": "989.4", "measured": "750.0",
    }  # fmt: skip
    assert [row["gb_s"] for row in _csv("cpu")] == ["15.0"]
    assert "GB/s, measured" in run("peaks").stdout


def test_measuring_keeps_what_it_shows(tmp_path: object, monkeypatch: pytest.MonkeyPatch) -> None:
    """--measure writes the rates, keeps them, and says where."""
    pytest.importorskip("torch")
    monkeypatch.setattr("pyprof.gpu.microbenchmark.CPU_SIDE", 32)
    monkeypatch.setattr("pyprof.gpu.microbenchmark.CPU_COPY_BYTES", 1 << 12)
    monkeypatch.setattr("pyprof.gpu.microbenchmark.measure.__kwdefaults__", {"side": None,
                        "copy_bytes": None, "budget_s": 0.0})  # fmt: skip
    done = run("peaks", "--measure", "--device", "cpu")
    assert done.code == 0
    assert done.stdout.startswith("cpu (measured)\n")
    place = done.stderr.split("saved to ")[1].split(";")[0]
    assert place.startswith(str(tmp_path))
    with open(place, encoding="utf-8") as file:  # noqa: PTH123 - a text that the command wrote
        assert json.load(file)["cpu"]["bandwidth"] > 0


@pytest.mark.parametrize(
    "arguments", [["--device", "cpu"], ["--measure", "T4"], ["--measure", "--device", "tpu"]]
)
def test_options_that_do_not_go_together(arguments: list[str]) -> None:
    """Wrong usage is exit code 2."""
    assert run("peaks", *arguments).code == 2
