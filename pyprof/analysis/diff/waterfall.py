"""The way from A's time to B's: what each op adds or saves, the largest first, and the rest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyprof.analysis.diff.compare import Comparison

MOST = 8
"""Ops that have a step of their own."""


@dataclass(frozen=True, slots=True)
class Stage:
    """One op, over all its shapes, types and layers; or all that are left."""

    name: str | None
    """None: nothing names it."""
    ops: int
    """How many ops it stands for."""
    delta_ns: float
    """What B takes more. All stages add up to the change of the time."""
    from_ns: float
    """The time before this stage; the first begins at A's."""

    @property
    def to_ns(self) -> float:
        """The time after it; the last ends at B's."""
        return self.from_ns + self.delta_ns


def waterfall(comparison: Comparison, most: int = MOST) -> list[Stage]:
    """Add up the changes by the first key, which is the op unless others were asked for."""
    delta_by_name: dict[str | None, float] = {}
    for change in comparison.changes:
        name = change.key[0] if change.key else None
        delta_by_name[name] = delta_by_name.get(name, 0.0) + change.delta_ns
    ordered = sorted(delta_by_name.items(), key=lambda entry: (-abs(entry[1]), entry[0] or ""))
    moved = [(name, 1, delta) for name, delta in ordered if delta]
    shown = moved[:most]
    if rest := moved[most:]:
        shown.append(("all others", len(rest), sum(delta for _, _, delta in rest)))
    stages: list[Stage] = []
    time_ns = sum(change.a_ns for change in comparison.changes)
    for name, ops, delta in shown:
        stages.append(Stage(name, ops, delta, time_ns))
        time_ns += delta
    return stages
