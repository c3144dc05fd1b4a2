"""Chains of point-wise kernels as one kernel each, as torch.compile makes of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pyprof.analysis.whatif.prediction import Prediction, Refusal, span
from pyprof.gpu.role_rules import Role
from pyprof.gpu.roofline import NS_PER_S

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pyprof.analysis.advice.case import Case
    from pyprof.arrays import Int64Array

CHANGE = "--fuse pointwise"
_ROLES = (
    *(Role.ELEMENTWISE, Role.RANDOM, Role.NORM, Role.REDUCE, Role.SOFTMAX),
    *(Role.COPY, Role.LAYOUT, Role.FILL, Role.MEMSET),
)
_BANDWIDTH_SHARE = 0.75
"""Of the peak, that generated kernels reach."""
_SHORTEST_NS = 2500
"""Of a kernel, however little it does."""
_LEAST_KNOWN = 0.8
_REAL = (0.8, 1.2)
"""Real gain by the predicted one: 0.93 on the pair that the rule was tried on, and a margin."""


def predict(case: Case) -> Prediction | Refusal:
    """Predict the time of chains whose outer inputs and outputs are moved once."""
    rows, chain = _chains(case)
    if not len(rows):
        return Refusal(CHANGE, "no two point-wise kernels follow one another on a stream")
    moved = case.table.costs.bytes[rows].astype(float)
    ns, known = case.ns[rows], moved >= 0
    if ns[known].sum() < _LEAST_KNOWN * ns.sum():
        return Refusal(CHANGE, "the bytes of too many point-wise kernels are unknown")
    peaks = case.table.devices
    rates = [p.bandwidth.value if p and p.bandwidth else np.nan for p in peaks.values]
    bandwidth = np.array(rates)[peaks.index[rows]]
    if np.isnan(bandwidth).any():
        return Refusal(CHANGE, "the GPU's bandwidth is unknown: name it with --gpu")
    reached = _BANDWIDTH_SHARE * bandwidth
    moved = np.where(known, moved, ns / NS_PER_S * reached)
    now = np.bincount(chain, ns)
    fused = np.bincount(chain, (moved - _kept_inside(moved, chain)) / reached) * NS_PER_S
    gain = np.maximum(now - np.maximum(fused, _SHORTEST_NS), 0).sum()
    return Prediction(
        change=CHANGE,
        kernels_ns=span(case.ns, float(gain), *_REAL),
        rows=rows,
        formula="a chain's outer inputs and outputs / (0.75 x bandwidth), at least 2.5 us",
        assumption="each chain of point-wise kernels, norms, reductions and copies becomes one",
        validation="1 pair, error of the whole time 4 %",
        code="model = torch.compile(model)",
    )


def _chains(case: Case) -> tuple[Int64Array, Int64Array]:
    """Return rows of two and more point-wise kernels in succession, and each row's chain."""
    order, same = case.by_stream
    wanted = (case.role(*_ROLES) & ~case.is_one("dir", "optim", "comm"))[order]
    linked = same & wanted[1:] & wanted[:-1]
    member = np.r_[False, linked] | np.r_[linked, False] if len(order) else np.zeros(0, bool)
    begins = member & ~np.r_[False, linked][: len(order)]
    chain = np.cumsum(begins)[member] - 1
    return order[member], chain


def _kept_inside(moved: NDArray[np.float64], chain: Int64Array) -> NDArray[np.float64]:
    """Return the bytes that each row would not move: what it reads of the row before, twice.

    One writes and the next reads them; at most half of what either of the two moves.
    """
    kept = np.where(np.diff(chain) == 0, np.minimum(moved[1:], moved[:-1]), 0.0)
    return np.asarray(np.r_[0.0, kept])
