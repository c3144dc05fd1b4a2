"""The answer of `pyprof whatif`: kernel time now and after each change, with intervals."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pyprof.answers import answer, not_in_json
from pyprof.answers.base import Answer
from pyprof.records.merging import merge_sums, merge_unique

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictedTime:
    """Summed time in ns, now and after a change."""

    now: int
    """The recorded time."""
    low: int
    """The shortest likely time."""
    expected: int
    """The time by the rule's formula."""
    high: int
    """The longest likely time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictedChange:
    """A change and its predicted effect."""

    change: str
    """The option that asks for it."""
    kernels_ns: PredictedTime
    """Summed time of all rows."""
    step_ns: PredictedTime | None
    """Time of a mean step, or of the whole capture without steps; null if not predicted."""
    step_why: str | None
    """Why `step_ns` is not predicted; null if it is."""
    rows: int
    """Number of rows that would change."""
    formula: str
    """How the expected time is computed."""
    assumption: str
    """What must hold for the prediction."""
    validation: str
    """The data that the rule was tested on, and its error there."""
    code: str
    """The change in the program."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UpperBound:
    """The most that a change could gain which was not tested on real pairs of captures."""

    change: str
    """The option that asks for it."""
    gain_ns: int
    """The most that the loop could gain, or the whole capture without a loop."""
    gain_step_ns: float | None
    """The same in a mean step; null without steps."""
    rows: int
    """Number of rows that it is based on."""
    title: str
    """What was found."""
    code: str
    """The change in the program."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusedChange:
    """A change that cannot be predicted."""

    change: str
    """The option that asks for it."""
    why: str
    """The reason."""


@answer("whatif")
@dataclass(frozen=True, slots=True, repr=False, kw_only=True)
class WhatIf(Answer):
    """What changes to a program would gain."""

    steps: int | None
    """Number of steps that `step_ns` is a mean of; null if it is the capture's, or null itself."""
    changes: tuple[PredictedChange, ...]
    """The changes, each by itself, the largest gain first."""
    bounds: tuple[UpperBound, ...]
    """Changes whose gain has only an upper bound, the largest first."""
    refused: tuple[RefusedChange, ...]
    """Changes that no rule can predict here."""
    warnings: tuple[str, ...] = not_in_json(default=())
    """What the captures hide or distort."""

    def merged(self, other: WhatIf) -> WhatIf:
        """Add up the captures of one run; a change that one of them refuses is refused.

        Of bounds the largest counts: GPUs work side by side.
        """
        others = {each.change: each for each in other.changes}
        summed = [
            replace(
                each,
                kernels_ns=merge_sums(each.kernels_ns, others[each.change].kernels_ns),
                step_ns=None,
                step_why="several processes wait for one another",
                rows=each.rows + others[each.change].rows,
            )
            for each in self.changes
            if each.change in others
        ]
        bounds = largest_first([*self.bounds, *other.bounds])
        bounded = {each.change: each for each in reversed(bounds)}
        refused = {each.change: each for each in (*other.refused, *self.refused)}
        return WhatIf(
            steps=None,
            changes=tuple(sorted(summed, key=lambda each: each.kernels_ns.expected)),
            bounds=tuple(largest_first([*bounded.values()])),
            refused=tuple(refused[name] for name in sorted(refused.keys() - bounded.keys())),
            warnings=merge_unique(self.warnings, other.warnings),
        )


def largest_first(bounds: Sequence[UpperBound]) -> list[UpperBound]:
    """Sort bounds by their gain."""
    return sorted(bounds, key=lambda each: (-each.gain_ns, each.change))
