"""`pyprof peaks`: what is known of cards, and what was measured here."""

import json

import pytest

from pyprof.gpu.peaks.card_table import CARDS
from tests.commands import refused, run


@pytest.fixture(autouse=True)
def _kept_nowhere(tmp_path: object, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("XDG_CONFIG_HOME", "APPDATA"):
        monkeypatch.setenv(name, str(tmp_path))


def test_the_table_marks_and_tells_doubts() -> None:
    """A star beside a card stands for a sentence below; no card is cut."""
    text = run("peaks").stdout
    for card in CARDS:
        assert f"{card.name}{'*' if card.doubts else ' '}" in text
    assert "T4: some pages say 300 GB/s" in text


def test_an_unknown_card_has_no_peaks() -> None:
    """One line on stderr says what to do; nothing is on stdout."""
    assert "--gpu flops=F" in refused("peaks", "NVIDIA B9000")


def test_measuring_keeps_what_it_shows(tmp_path: object, monkeypatch: pytest.MonkeyPatch) -> None:
    """--measure writes the rates, keeps them, and says where."""
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


@pytest.mark.parametrize(
    "arguments", [["--measure", "T4"], ["--measure", "tpu"], ["T4", "--measure", "cpu"]]
)
def test_options_that_do_not_go_together(arguments: list[str]) -> None:
    """Wrong usage is exit code 2."""
    assert run("peaks", *arguments).code == 2
