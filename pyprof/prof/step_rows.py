"""Which step of the loop each row is of, and what part of the work that is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyprof.arrays import Ints

OUTSIDE = -1

PARTS = {
    "fprop": "forward",
    "bprop": "backward",
    "optim": "optimizer",
    "comm": "communication",
    "copy": "copy",
}
"""Parts of a training step, by what records call them."""


@dataclass(frozen=True, slots=True)
class StepRows:
    """The steps of some rows."""

    of_row: Ints
    """The step of each row, from 0; OUTSIDE where it is in none."""
    phases: tuple[str, ...] = ()
    """Of each step, where the ranges around them tell: prefill, decode or mixed; "" for none."""
