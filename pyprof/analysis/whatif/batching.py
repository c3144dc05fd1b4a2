"""A larger or smaller batch: kernels whose grids fill the GPU take as many times as long."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from pyprof.analysis.back_test import tried
from pyprof.analysis.whatif.kernels import Prediction
from pyprof.gpu.peaks.efficiency import POWER_LIMITED
from pyprof.quantities import percent

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyprof.analysis.whatif.kernels import Kernels

OPTION = "--batch"
LIMITED = "--batch of 70 W"
"""The key of outcomes on cards that are limited by their power."""
FILLED = 4
"""From this many blocks per SM on, time grows with the number of blocks."""
_MIN_FILLED = 0.8
_FACTOR = re.compile(r"(\d+(?:\.\d+)?)x?")


def factor_of(text: str) -> float:
    """Return the factor of `2x`, `2` or `0.5x`; raises ValueError."""
    match = _FACTOR.fullmatch(text)
    if match is None or not float(match[1]):
        raise ValueError(f"{text!r} is not a factor of the batch, such as 2x or 0.5x")
    return float(match[1])


def rule(text: str) -> Callable[[Kernels], Prediction | str]:
    """Return the rule of a factor; raises ValueError."""
    factor = factor_of(text)
    return lambda kernels: predict(kernels, f"{OPTION} {text}", factor)


def outcomes_of(*cards: str) -> str:
    """Return the key of the outcomes on some cards."""
    return LIMITED if POWER_LIMITED.intersection(cards) else OPTION


def predict(kernels: Kernels, change: str, factor: float) -> Prediction | str:
    """Multiply the time of all but the optimizer and communication: these have no batch."""
    if factor == 1:
        return "the batch stays as it is"
    context = kernels.context
    follows = context.chosen & ~context.is_one("dir", "optim", "comm")
    blocks = context.blocks_per_sm
    filled = follows & ((np.minimum(blocks, blocks * factor) >= FILLED) | context.persistent)
    ns = kernels.ns
    share = ns[filled].sum() / max(ns[follows].sum(), 1)
    if share < _MIN_FILLED:
        return (
            f"only {percent(share)} of the time is of kernels with {FILLED} and more thread"
            " blocks per SM; with fewer, time does not follow the batch"
        )
    rows = np.flatnonzero(follows)
    outcomes = tried(outcomes_of(*(each.name for each in context.table.devices.values if each)))
    return Prediction(
        change=change,
        kernels=kernels.retimed(rows, ns[rows] * factor, outcomes.interval),
        rows=rows,
        formula=f"time x {factor:g}",
        assumption="all but the optimizer and communication scales with the batch, which fits"
        f" into memory; {percent(share)} of the time is in kernels whose grids fill the GPU",
        validation=outcomes.text,
        code=f"a batch {factor:g} times as large",
    )
