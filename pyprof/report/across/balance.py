"""How evenly the work of each layer lies on the ranks."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc


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
    table = pa.table({
        "rank": layers.column("rank"),
        "layer": layers.column("layer").cast(pa.string()),
        "ns": layers.column("gpu_ns"),
    })  # fmt: skip
    table = table.sort_by([("layer", "ascending"), ("ns", "descending"), ("rank", "ascending")])
    names = table.column("layer").combine_chunks().dictionary_encode()
    first = np.unique(names.indices.to_numpy(), return_index=True)[1]
    bounds = [*first.tolist(), table.num_rows]
    found = []
    for low, high in pairwise(bounds):
        part = table.slice(low, high - low)
        total = int(pc.sum(part.column("ns")).as_py())
        found.append(LayerLoad(
            part.column("layer")[0].as_py(), total / (high - low), part.column("ns")[0].as_py(),
            part.column("rank")[0].as_py(), high - low,
        ))  # fmt: skip
    return sorted(found, key=lambda one: (one.mean_ns - one.most_ns, one.layer))
