"""What a prediction is: kernel time after a change, as an interval, and why a change is refused."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyprof.analysis.whatif.kernels import Kernels
    from pyprof.arrays import Int64Array


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """Kernel time now and after a change, summed over all rows, ns."""

    now: int
    low: int
    expected: int
    high: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """What a change would do to the time of kernels."""

    change: str
    """As on the command line: `--dtype tf32`."""
    kernels: Kernels
    """All rows after the change."""
    rows: Int64Array
    """The rows of the table whose time changes, from 0."""
    formula: str
    assumption: str
    validation: str
    """The data that the rule was tested on, and its error there."""
    code: str
    """The change in the program."""

    @property
    def kernels_ns(self) -> Span:
        """Their summed time, now and after."""
        return self.kernels.span


@dataclass(frozen=True, slots=True)
class Refusal:
    """A change that cannot be predicted for this capture."""

    change: str
    why: str
