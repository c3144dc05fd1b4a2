"""Advice, and the evidence that it rests on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from pyprof.answers.parts import PredictedGain

MAX_IDS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """Equal rows that are evidence for advice."""

    what: str
    """Name of the op, else of the kernel or the range."""
    line: str | None
    """Source line, where known."""
    count: int
    total_ns: int
    detail: str = ""
    """What sets these rows apart from others of the same op and line; "" if nothing does."""
    row_ids: tuple[int, ...] = ()
    """`idx` of the rows with most time, at most `MAX_IDS`; none if the evidence is not rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """Something that the user could change."""

    rule: str
    """Name of the rule: its function."""
    title: str
    """What was found."""
    action: str
    """What to do."""
    gain_ns: int | None
    """The most time that the GPU with the largest gain could save; None if unknown. Gains of
    different advice overlap.
    """
    evidence: tuple[Evidence, ...]
    """The most time first."""
    rows: NDArray[np.int64]
    """Rows of the table that it rests on, from 0; empty if the evidence is not rows."""
    predicted: PredictedGain | None = None
    """The gain as an interval, where the rule was tried on real changes."""
    of_ns: int = 0
    """The time that the gain is a part of: the loop's, or that of the whole capture."""
    steps: int | None = None
    """How many steps that time has; None without steps, and for what happens once."""
    once: bool = False
    """The gain is in start-up, warm-up or after the loop: once a run, not in every step."""

    @property
    def likely_ns(self) -> int:
        """The expected gain; without one, the upper bound; 0 if unknown."""
        return self.predicted.expected_ns if self.predicted else self.gain_ns or 0
