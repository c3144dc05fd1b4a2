"""From A's time to B's: what changed, added up by op."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyprof.answers.diff_answer import Stage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyprof.answers.diff_answer import Change

MAX_STAGES = 8


def waterfall(changes: Sequence[Change], most: int = MAX_STAGES) -> list[Stage]:
    """Add up the changes by the first key, which is the op unless others were asked for.

    The `most` largest have a stage of their own; all stages add up to the change of the time.
    """
    delta_by_name: dict[str | None, float] = {}
    for change in changes:
        name = next(iter(change.key.values()), None)
        delta_by_name[name] = delta_by_name.get(name, 0.0) + change.change_ns
    ordered = sorted(delta_by_name.items(), key=lambda entry: (-abs(entry[1]), entry[0] or ""))
    moved = [(name, 1, delta) for name, delta in ordered if delta]
    shown = moved[:most]
    if rest := moved[most:]:
        shown.append(("all others", len(rest), sum(delta for _, _, delta in rest)))
    stages: list[Stage] = []
    time_ns = sum(change.a_ns or 0.0 for change in changes)
    for name, ops, delta in shown:
        stages.append(Stage(name, ops, delta, time_ns, time_ns + delta))
        time_ns += delta
    return stages
