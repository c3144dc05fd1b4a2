"""Make the table of shares of the roofline that kernels reach, by card, family and type.

`python benchmarks/calibration.py FOLDER [FILE]` writes `pyprof/gpu/peaks/efficiencies.csv`, or
FILE, from NeuSight's micro-benchmarks in FOLDER. The shares of a family are fitted two ways, by
card and by shape: a card that was measured at other shapes is not thought faster or slower for it.
"""

import csv
import sys
from collections import defaultdict
from pathlib import Path

import neusight
import numpy as np
from numpy.typing import NDArray

from pyprof.gpu.peaks import Device, peaks
from pyprof.gpu.peaks.efficiency import COLUMNS, TABLE

_MIN_NS = 50_000
"""Shorter times are a tenth launching or more, on the slower cards at any size."""
_ITERATIONS = 30
_SOURCE = "NeuSight (ASPLOS 2025), PyTorch 2.1"
_LIKE = "not measured: median of the A100 cards"
_ALIKE = "A100"
"""Cards whose shares stand for families that were not measured on a newer one."""


def roof_ns(device: str, flops: float, moved: float) -> float | None:
    """Return the least time of some work in float32; None for a device without peaks."""
    known = peaks(Device(device))
    rate = known.flops("float32", tensor_core=False) if known else None
    if known is None or rate is None or known.bandwidth is None:
        return None
    return max(flops / rate.value, moved / known.bandwidth.value) * 1e9


def fitted(shares: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return each card's share at the median shape; rows are shapes, columns cards, NaN if missing.

    The logarithm of a share is an effect of the card plus one of the shape (a median polish).
    """
    logs = np.log(shares[np.isfinite(shares).sum(axis=1) > 1])
    card = np.nanmedian(logs, axis=0)
    for _ in range(_ITERATIONS):
        shape = np.nanmean(logs - card, axis=1, keepdims=True)
        card = np.nanmedian(logs - shape, axis=0)
    return np.asarray(np.exp(card + np.median(shape)))


def efficiencies(folder: Path) -> list[tuple[str, str, str, float, int, str]]:
    """Return the rows of the table."""
    found: dict[str, dict[tuple[object, ...], dict[str, list[float]]]] = defaultdict(
        lambda: defaultdict(lambda: defaultdict(list))
    )
    for each in neusight.micro(folder):
        roof = roof_ns(each.device, each.flops, each.bytes)
        if roof is not None and each.ns > _MIN_NS:
            found[each.family][(each.op, *each.shape)][each.device].append(roof / each.ns)
    devices = sorted(
        {device for shapes in found.values() for at in shapes.values() for device in at}
    )
    rows = []
    for family, shapes in sorted(found.items()):
        measured = np.array(
            [
                [np.exp(np.mean(np.log(at[d]))) if d in at else np.nan for d in devices]
                for at in shapes.values()
            ]
        )
        count = np.isfinite(measured).sum(axis=0)
        share = np.where(
            count > 0, fitted(measured[:, count > 0])[np.cumsum(count > 0) - 1], np.nan
        )
        alike = np.median([s for d, s in zip(devices, share, strict=True) if _ALIKE in d])
        for device, value, shapes_of in zip(devices, share, count.tolist(), strict=True):
            known = peaks(Device(device))
            card = known.name if known else device
            source = _SOURCE if shapes_of else _LIKE
            rows.append(
                (card, family, "float32", float(value if shapes_of else alike), shapes_of, source)
            )
    return sorted(rows)


def main(folder: Path, target: Path = TABLE) -> int:
    """Write the table."""
    with target.open("w", encoding="utf-8", newline="") as out:
        lines = csv.writer(out, lineterminator="\n")
        lines.writerow(COLUMNS)
        for card, family, dtype, share, shapes, source in efficiencies(folder):
            lines.writerow((card, family, dtype, f"{share:.3f}", shapes, source))
    return 0


if __name__ == "__main__":
    sys.exit(main(*map(Path, sys.argv[1:])))
