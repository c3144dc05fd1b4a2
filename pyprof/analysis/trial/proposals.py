"""The changes that the advice on a capture proposes to try."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyprof.trial.change import Chosen, changes

if TYPE_CHECKING:
    from collections.abc import Iterable


def proposals(rules: Iterable[str]) -> list[Chosen]:
    """Return the changes that rules of advice propose, in the order of the advice.

    Changes that need a value of the user's are left out.
    """
    entries = changes().values()
    matching = (
        Chosen(entry.name, entry.default or "")
        for rule in rules
        for entry in entries
        if rule in entry.advised_by and (entry.default is not None or not entry.takes)
    )
    return list(dict.fromkeys(matching))
