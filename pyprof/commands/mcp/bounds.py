"""Answers of a size that an agent can read: long lists and texts are cut, as the answer notes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Sequence

Answer: TypeAlias = dict[str, Any]
MAX_LIMIT = 500
_MAX_TEXT = 2000
"""Maximum characters of a text; names of kernels, and stacks, can be longer."""
_FINDINGS = 3
"""Maximum entries of evidence."""
_WORDS = 64
"""Maximum length of lists of numbers or short texts, unless `limit` is larger."""
_WORD = 40


def check_limit(value: int, name: str = "limit") -> int:
    """Return the value of a parameter. Raises ValueError if it is out of range."""
    if not 1 <= value <= MAX_LIMIT:
        raise ValueError(f"{name} {value}: must be from 1 to {MAX_LIMIT}")
    return value


def bound(given: object, limit: int, warnings: Sequence[str] = ()) -> Answer:
    """Return an answer as JSON, with at most `limit` entries per list, and what was left out.

    `cut` has the number of entries, or characters, left out, by the name of the list.
    """
    from pyprof.answers import document  # noqa: PLC0415 - the server answers before it is loaded

    left_out: dict[str, int] = {}
    content = _cut_lists(json.loads(document(given, warnings)), limit, "", left_out)
    return {**content, "cut": left_out}


def _cut_lists(value: Any, limit: int, name: str, left_out: dict[str, int]) -> Any:  # noqa: ANN401 - any JSON
    if isinstance(value, dict):
        return {
            key: _cut_lists(each, limit, f"{name}.{key}".lstrip("."), left_out)
            for key, each in value.items()
        }
    if isinstance(value, list):
        short = all(
            isinstance(each, (int, float)) or (isinstance(each, str) and len(each) <= _WORD)
            for each in value
        )
        most = max(limit, _WORDS) if short else limit
        if name.endswith(("evidence", "evidence.row_ids")):
            most = _FINDINGS
        if len(value) > most:
            left_out[name] = left_out.get(name, 0) + len(value) - most
        return [_cut_lists(each, limit, name, left_out) for each in value[:most]]
    if isinstance(value, str) and len(value) > _MAX_TEXT:
        left_out[name] = left_out.get(name, 0) + len(value) - _MAX_TEXT
        return value[:_MAX_TEXT]
    return value
