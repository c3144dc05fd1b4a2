"""What to try: the changes that the advice on a capture proposes, and then those that helped."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyprof.trial.change import Chosen, changes

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pyprof.answers.try_answer import TriedChange
    from pyprof.trial.experiment import Variant

_MIN_TOGETHER = 2


def proposals(rules: Iterable[str]) -> list[Chosen]:
    """Return the changes that rules of advice propose, in the order of the advice.

    Changes that need a value from the user are left out.
    """
    entries = changes().values()
    matching = (
        Chosen(entry.name, entry.proposed)
        for rule in rules
        for entry in entries
        if rule in entry.advised_by and entry.proposed is not None
    )
    return list(dict.fromkeys(matching))


def together(tried: Mapping[Variant, TriedChange]) -> Variant | None:
    """Return the changes that helped as one variant; None if fewer than two did.

    Of several values of a change, or of a variable, the fastest is taken.
    """
    best: dict[str, tuple[float, Chosen]] = {}
    for (chosen,), change in tried.items():
        if change.verdict == "faster" and change.time_ratio is not None:
            entry = (change.time_ratio.mid, chosen)
            # what the change sets, such as a variable; only one value of it is combined
            if changes()[chosen.name].stage == "torch":
                subject = chosen.name
            else:
                subject = str(chosen).rpartition("=")[0] if "=" in chosen.value else str(chosen)
            best[subject] = min(entry, best.get(subject, entry))
    return tuple(chosen for _, chosen in best.values()) if len(best) >= _MIN_TOGETHER else None
