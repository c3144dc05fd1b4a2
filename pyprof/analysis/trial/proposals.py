"""What to try: the changes that the advice on a capture proposes, and then those that helped."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyprof.trial.change import Chosen, changes

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pyprof.analysis.trial.verdict import Finding
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


def together(findings: Sequence[Finding]) -> Variant | None:
    """Return the changes that helped as one variant; None if fewer than two did.

    Of several values of a change, or of a variable, the fastest is taken.
    """
    best: dict[str, tuple[float, Chosen]] = {}
    for finding in findings:
        if not finding.helped or finding.timing is None:
            continue
        (chosen,) = finding.variant
        tried = (finding.timing.ratio.mid, chosen)
        subject = _subject(chosen)
        best[subject] = min(tried, best.get(subject, tried))
    return tuple(chosen for _, chosen in best.values()) if len(best) >= _MIN_TOGETHER else None


def _subject(chosen: Chosen) -> str:
    """Return the subject that a change sets: only one value per subject is combined."""
    if changes()[chosen.name].stage == "torch":
        return chosen.name
    return str(chosen).rpartition("=")[0] if "=" in chosen.value else str(chosen)
