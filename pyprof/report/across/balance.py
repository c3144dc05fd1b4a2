"""How evenly the work of each layer lies on the ranks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pyprof.report.across.columns import coded

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class LayerLoad:
    """A layer's own GPU time, communication left out. Times in ns."""

    layer: str
    mean_ns: float
    most_ns: int
    rank: int
    """The one with most."""
    ranks: int
    """Those that have it."""

    @property
    def imbalance(self) -> float | None:
        """Most by mean: 1 is even. None where no rank spent time."""
        return self.most_ns / self.mean_ns if self.mean_ns else None


def layer_loads(layers: pa.Table) -> list[LayerLoad]:
    """Compare the ranks layer by layer; the layer that holds the others up most first.

    The mean is over the ranks that have the layer: stages of a pipeline have their own.
    """
    code, names = coded(layers.column("layer"))
    rank, ns = (np.asarray(layers.column(name).to_numpy()) for name in ("rank", "gpu_ns"))
    order = np.lexsort((rank, -ns, code))
    code, rank, ns = code[order], rank[order], ns[order]
    first = np.flatnonzero(np.diff(code, prepend=-1))
    if not len(first):
        return []
    counts = np.diff(first, append=len(code)).tolist()
    totals = np.add.reduceat(ns, first).tolist()
    found = [
        LayerLoad(names[code[row]], total / count, int(ns[row]), int(rank[row]), count)
        for row, total, count in zip(first.tolist(), totals, counts, strict=True)
    ]
    return sorted(found, key=lambda one: (one.mean_ns - one.most_ns, one.layer))
