"""What `pyprof whatif` says: kernel time now and after each change, with intervals."""

from __future__ import annotations

from dataclasses import dataclass, replace

from pyprof.answers import answer
from pyprof.answers.base import Answer


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictedTime:
    """Summed time now, and after a change, ns."""

    now: int
    """As recorded."""
    low: int
    """The shortest that is likely."""
    expected: int
    """By the rule's formula."""
    high: int
    """The longest that is likely."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictedChange:
    """A change and what it would do."""

    change: str
    """The option that asks for it."""
    kernels_ns: PredictedTime
    """Summed time of all rows."""
    step_ns: PredictedTime | None
    """Time of a step; null: not predicted."""
    rows: int
    """How many rows would change."""
    formula: str
    """How the expected time is computed."""
    assumption: str
    """What must hold."""
    validation: str
    """On what the rule was tried, and its error there."""
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
@dataclass(frozen=True, slots=True, kw_only=True)
class WhatIf(Answer):
    """What changes would gain."""

    changes: tuple[PredictedChange, ...]
    """Each by itself, the largest gain first."""
    refused: tuple[RefusedChange, ...]
    """Those that no rule can predict here."""


def merge_whatif(a: WhatIf, b: WhatIf) -> WhatIf:
    """Add up the captures of one run; a change that one of them refuses is refused."""
    others = {each.change: each for each in b.changes}
    summed = [_sum_of(each, others[each.change]) for each in a.changes if each.change in others]
    refused = {each.change: each for each in (*b.refused, *a.refused)}
    return WhatIf(
        changes=tuple(sorted(summed, key=lambda each: each.kernels_ns.expected)),
        refused=tuple(refused[change] for change in sorted(refused)),
    )


def _sum_of(a: PredictedChange, b: PredictedChange) -> PredictedChange:
    one, other = a.kernels_ns, b.kernels_ns
    total = PredictedTime(
        now=one.now + other.now,
        low=one.low + other.low,
        expected=one.expected + other.expected,
        high=one.high + other.high,
    )
    return replace(a, kernels_ns=total, rows=a.rows + b.rows)
