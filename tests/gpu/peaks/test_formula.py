"""Rates by SMs and clock agree with datasheets, none of whose figures is for sparsity."""

import re

import pytest

from pyprof.gpu.peaks.card_table import CARDS, Card
from pyprof.gpu.peaks.formula import generation, quoted_at_tensor_clock, torch_device
from tests.known import known

LOOSER = {
    ("T4", "float64"): 0.02,  # 0.254, printed as 0.25
    ("L4", "float64"): 0.04,  # 0.473, printed as 0.49
    ("L4", "tf32 tensor"): 0.01,  # 60.6, printed as 60
    ("L40S", "float64"): 0.03,  # 1.43, printed as 1.4
    ("L40S", "half tensor"): 0.013,  # 366.4; 362.05 is printed
    ("V100 PCIe", "float64"): 0.01,  # 7.07 and 113, printed as 7 and 112
    ("V100 PCIe", "float16 tensor"): 0.01,
    ("B200", "tf32 tensor"): 0.02,  # 1121, printed as 1.1 PFLOP/s
}


def _checked() -> list[tuple[Card, str]]:
    """Return each rate of the rows marked F, and that which implies a laptop's tensor clock.

    A10G and L40 (conflicting sources) are not marked.
    """
    return [
        (card, key)
        for card in CARDS
        for key in card.rates_tflops
        if "F" in card.sources.split() or (card.name.endswith("Laptop") and key == "half tensor")
    ]


def _geforce(card: Card) -> str:
    """Return a device name with GeForce for cards such as the RTX 4090, else none."""
    return "GeForce" if re.fullmatch(r"RTX \d{4}(?: Ti)?(?: Laptop)?", card.name) else ""


@pytest.mark.parametrize(("card", "key"), _checked(), ids=lambda part: getattr(part, "name", part))
def test_formula_agrees_with_the_datasheet(card: Card, key: str) -> None:
    """SMs x clock x FLOPs per clock is within 0.85 % of it, unless it is rounded by more."""
    assert card.cc is not None
    assert card.clock_mhz is not None
    per_clock = known(generation(card.cc, _geforce(card)))
    tensor_mhz = card.tensor_clock_mhz or card.clock_mhz
    mhz = tensor_mhz if quoted_at_tensor_clock(key) else card.clock_mhz
    formula = per_clock.rates[key] * card.sm_count * mhz * 1e6 / 1e12
    assert formula == pytest.approx(
        card.rates_tflops[key], rel=LOOSER.get((card.name, key), 0.0085)
    )


@pytest.mark.parametrize("card", CARDS, ids=[card.name for card in CARDS])
def test_no_figure_is_sparse(card: Card) -> None:
    """A figure of twice the formula's would be (or GeForce's for float16 sums)."""
    if card.cc is None or card.clock_mhz is None:
        assert card.cc is None or card.name in {"GB200", "B300", "GB300", "GB10", "H20"}
        return
    per_clock = known(generation(card.cc, _geforce(card)))
    for key in card.rates_tflops.keys() & per_clock.rates.keys():
        mhz = max(card.clock_mhz, card.tensor_clock_mhz or 0 if "tensor" in key else 0)
        formula = per_clock.rates[key] * card.sm_count * mhz * 1e6 / 1e12
        assert card.rates_tflops[key] < 1.1 * formula


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        *((kind, kind.lower()) for kind in ("NPU", "XPU", "HPU", "MTIA", "MLU", "GCU", "IPU")),
        *(("TPU", "xla"), ("PrivateUse1", "privateuseone"), ("MLU370-X8", "mlu")),
        ("Ascend910B3", "npu"),
        *((name, "cuda") for name in ("NVIDIA L4", "AMD Instinct MI300X", None)),
    ],
)
def test_devices_without_cuda_are_known_by_the_kinds_in_traces(name: str | None, kind: str) -> None:
    """A trace's labels state nothing but the kind where it describes no device."""
    assert torch_device(name) == kind
