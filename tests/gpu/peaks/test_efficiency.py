"""Shares of the roofline: which are known, and that the table is its script's."""

from pathlib import Path

import pytest

from pyprof.gpu.peaks import find_card
from pyprof.gpu.peaks.ceilings import Ceilings, save
from pyprof.gpu.peaks.efficiency import TABLE, efficiency, measured_as, measured_cards
from tests.known import known
from tests.programs import TOP, python

MEASURED = TOP / ".." / "shared" / "whatif"


@pytest.mark.parametrize(
    ("device", "card"),
    [
        ("Tesla V100-PCIE-32GB", "V100 PCIe"),
        ("Tesla V100-SXM2-16GB", "V100 PCIe"),
        ("NVIDIA A100-PCIE-40GB", "A100 40GB"),
        ("NVIDIA A100-SXM4-40GB", "A100 PCIe 80GB"),
        ("NVIDIA H100 80GB HBM3", "H100 SXM"),
        ("NVIDIA H100 PCIe", None),
        ("NVIDIA B200", None),
        ("AMD Instinct MI300X", None),
        ("no such GPU", None),
    ],
)
def test_a_device_has_the_shares_of_its_chip(device: str, card: str | None) -> None:
    """An SXM module has its PCIe card's; an H100 PCIe differs in SMs and memory."""
    assert measured_as(device) == card


def test_the_cards_of_the_table_are_known_and_their_shares_are_shares() -> None:
    for card in measured_cards():
        assert find_card(card) is not None
        for family in ("gemm", "bmm", "softmax", "norm", "pointwise"):
            share = known(efficiency(card, family, "float32"))
            assert 0 < share < 1
    assert efficiency("H100 SXM", "gemm", "bfloat16") is None


@pytest.mark.slow
@pytest.mark.skipif(not MEASURED.is_dir(), reason="needs the measurements beside the project")
def test_the_table_is_what_its_script_makes(tmp_path: Path) -> None:
    made = tmp_path / "efficiencies.csv"
    done = python(str(TOP / "benchmarks" / "calibration.py"), str(MEASURED), str(made))
    assert done.returncode == 0, done.stderr
    assert made.read_text() == TABLE.read_text()


def test_a_device_measured_here_has_its_own_shares(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By its name in captures; what is missing is not taken from another card."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    name = "NVIDIA H100 PCIe"
    save(Ceilings(name, {"float32": 5e13}, 1.9e12, {"gemm float32": 0.7}))
    assert measured_as(name) == name
    assert efficiency(name, "gemm", "float32") == 0.7
    assert efficiency(name, "norm", "float32") is None
    assert measured_as("NVIDIA H100 80GB HBM3") == "H100 SXM"
