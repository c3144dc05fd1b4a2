"""The gain of a suggestion in words, the same on the terminal, on pages and in notebooks."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from pyprof.quantities import duration, percent

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyprof.answers.parts import Suggestion

_MIN_SHARE = 0.01
"""Gains below this share of a step are not worth a look."""


class Gain(NamedTuple):
    """A gain in words: an interval if it was predicted, else `up to 2.33 ms`."""

    time: str
    """Time gained, per step if there are steps; "unknown" without a bound."""
    share: str
    """Share of a step, or of the whole capture without steps; "" if unknown."""
    per_step: bool

    @property
    def words(self) -> str:
        """Time and share as one phrase: `up to 2.33 ms a step (26 %)`."""
        share = f" ({self.share})" if self.share else ""
        return f"{self.time}{' a step' if self.per_step else ''}{share}"


def gain_of(entry: Suggestion) -> Gain:
    """Format a gain: `1.20 to 1.41 ms` and `12 to 14 %` if predicted, else the upper bound."""
    bound = entry.gain_ns
    if bound is None:
        return Gain("unknown", "", per_step=False)
    per_step = entry.gain_step_ns is not None
    ns = bound if entry.gain_step_ns is None else entry.gain_step_ns
    if entry.predicted is None or not bound:
        share = "" if entry.gain_share is None else percent(entry.gain_share)
        return Gain(f"up to {duration(ns)}", share, per_step)
    parts = entry.predicted.low_ns / bound, entry.predicted.high_ns / bound
    low, high = (duration(ns * part) for part in parts)
    share = ""
    if entry.gain_share is not None:
        share = _interval(*(percent((entry.gain_share or 0.0) * part) for part in parts))
    return Gain(_interval(low, high), share, per_step)


def _interval(low: str, high: str) -> str:
    """Format an interval with its unit once: `1.20 to 1.41 ms`."""
    number, _, unit = low.partition(" ")
    if low == high:
        return low
    return f"{number if high.endswith(f' {unit}') else low} to {high}"


def in_order(advice: Sequence[Suggestion], *, per_step: bool) -> tuple[Suggestion, ...]:
    """The largest gain first; beside times per step, what happens once is apart and comes last."""
    return tuple(sorted(advice, key=lambda each: (per_step and each.once, -likely_ns(each))))


def worth_a_look(advice: Sequence[Suggestion]) -> list[Suggestion]:
    """The suggestions whose gain is large enough to matter, or unknown, in their order."""
    return [each for each in advice if each.gain_share is None or each.gain_share >= _MIN_SHARE]


def likely_ns(entry: Suggestion) -> int:
    """The middle of a predicted gain; the upper bound if none was predicted; 0 if unknown."""
    return entry.predicted.middle_ns if entry.predicted else entry.gain_ns or 0
