"""What an advice is, and the evidence that it rests on."""

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
    """The op and its line's place in words: an op's name, else a kernel's or a range's."""
    line: str | None
    """Source line, where known."""
    count: int
    total_ns: int
    detail: str = ""
    """What is wrong with them, where it differs from row to row."""
    row_ids: tuple[int, ...] = ()
    """`idx` of the rows that stand for most time, `MAX_IDS` at most; none for ranges."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """Something that the user could change."""

    rule: str
    """Name of the rule: its function."""
    title: str
    """What is the case."""
    action: str
    """What to do."""
    gain_ns: int | None
    """The most time that the GPU with the largest gain could save; None if unknown. Gains of
    different advice overlap.
    """
    evidence: tuple[Evidence, ...]
    """The most time first."""
    rows: NDArray[np.int64]
    """The rows of the table that it rests on, from 0; empty if it rests on ranges."""
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
        """The gain as far as is known: expected, else at most, else 0."""
        return self.predicted.expected_ns if self.predicted else self.gain_ns or 0
