"""The share of the roofline that kernels reach on a card, by family and type, as measured.

The table beside this file is made by `benchmarks/calibration.py`, which explains how. The ratio of
two cards' shares and of their roofs is how much longer a kernel takes on the other card.
"""

from __future__ import annotations

import csv
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from pyprof.gpu.peaks import find_card
from pyprof.gpu.peaks.ceilings import load

if TYPE_CHECKING:
    from collections.abc import Mapping

TABLE = Path(__file__).with_name("efficiencies.csv")
COLUMNS = ("card", "family", "dtype", "share", "shapes", "source")
POWER_LIMITED = frozenset({"T4", "L4"})
"""Cards that cannot hold their clock at 70 W, so that their share depends on what ran before."""
_SAME_CHIP = {
    "A100 SXM 80GB": "A100 PCIe 80GB",
    "V100 SXM2": "V100 PCIe",
    "V100 DGXS": "V100 PCIe",
    "P100 SXM2": "P100 PCIe",
}
"""Boards whose chip was measured on another board; if on two, the one with more power."""
_A100_40GB, _MODULE = "A100 40GB", "SXM"
"""This entry of the card table is both a card and a module; the card (250 W) was measured."""


@lru_cache(maxsize=1)
def _table() -> Mapping[tuple[str, str, str], float]:
    with TABLE.open(encoding="utf-8", newline="") as lines:
        return {
            (row["card"], row["family"], row["dtype"]): float(row["share"])
            for row in csv.DictReader(lines)
        }


def _measured_shares() -> Mapping[str, Mapping[str, float]]:
    """Return the shares that `pyprof peaks --measure` found on this machine, by device."""
    return {name: each.shares for name, each in load().items() if each.shares}


def measured_here(device: str) -> bool:
    """Whether the shares of a device are those of `pyprof peaks --measure`."""
    return device in _measured_shares()


def measured_as(device: str) -> str | None:
    """Return the card whose shares apply to a device; None if no card with its chip was measured.

    For a device that was measured on this machine, it is the device itself. Raises PyprofError
    for an unusable file of measurements.
    """
    if measured_here(device):
        return device
    card = find_card(device)
    if card is None:
        return None
    if card.name == _A100_40GB and _MODULE in device.upper():
        return _SAME_CHIP["A100 SXM 80GB"]
    name = _SAME_CHIP.get(card.name, card.name)
    return name if name in measured_cards() else None


@lru_cache(maxsize=1)
def measured_cards() -> list[str]:
    """Return the cards of the table, sorted."""
    return sorted({card for card, _, _ in _table()})


def efficiency(card: str, family: str, dtype: str) -> float | None:
    """Return the share of the roofline that kernels of a family reach; None if not measured."""
    if (shares := _measured_shares().get(card)) is not None:
        return shares.get(f"{family} {dtype}")
    return _table().get((card, family, dtype))
