"""Layers and ranges that have another name in the other capture, with the same ops in them."""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pyprof.analysis.diff.side import Key

_MOST_PAIRS = 10_000
"""Of more layers with the same op call, the n-th is the n-th."""
_MOST_WORDS = 64
"""Of a longer name, the beginning."""
_SAME_CALLS = 0.1
"""Calls may differ by this share, as a capture ends within a step."""


def renamed_layers(
    keys: Sequence[str], a: Mapping[Key, float], b: Mapping[Key, float]
) -> dict[Key, Key]:
    """Return the new key for each key of A whose layer alone has another name in B.

    `a` and `b` hold the op calls of each key. A key that only A has and one that only B has belong
    together if all but the layer is equal, and they are called as often.
    """
    if "layer" not in keys or not {"op", "kernel"} & {*keys}:
        return {}
    at = keys.index("layer")
    gone, new = _by_rest(a, b, at), _by_rest(b, a, at)
    return {
        x: y
        for rest in gone.keys() & new.keys()
        for x, y in _pairs(gone[rest], new[rest], at)
        if abs(a[x] - b[y]) <= _SAME_CALLS * max(a[x], b[y])
    }


def _by_rest(own: Mapping[Key, float], other: Mapping[Key, float], at: int) -> dict[Key, list[Key]]:
    """Group the keys that only one side has by all but the layer, in the order of its name."""
    grouped: dict[Key, list[Key]] = defaultdict(list)
    for key in own:
        if key not in other:
            grouped[key[:at] + key[at + 1 :]].append(key)
    return {rest: sorted(same, key=lambda key: _natural(key[at])) for rest, same in grouped.items()}


def _words(name: str | None) -> list[str]:
    words = _WORD.findall(name or "")
    return words if len(words) <= _MOST_WORDS else words[:_MOST_WORDS]


def _natural(name: str | None) -> list[tuple[int, str]]:
    """Order `h.2` before `h.10`."""
    words = _words(name)
    return [(int(word), "") if word.isdecimal() else (-1, word) for word in words]


_WORD = re.compile(r"[0-9]{1,9}|[^0-9.:/]+")


def _pairs(gone: Sequence[Key], new: Sequence[Key], at: int) -> Iterator[tuple[Key, Key]]:
    """Pair the names that have most in common at their ends; among equals by their order."""
    if len(gone) * len(new) > _MOST_PAIRS:
        yield from zip(gone, new, strict=False) if len(gone) == len(new) else ()
        return
    words = [[_words(key[at]) for key in side] for side in (gone, new)]
    alike = sorted(
        (-_common(x, y), abs(i - j), i, j)
        for i, x in enumerate(words[0])
        for j, y in enumerate(words[1])
    )
    paired: tuple[set[int], set[int]] = (set(), set())
    for _, _, i, j in alike:
        if i not in paired[0] and j not in paired[1]:
            paired[0].add(i)
            paired[1].add(j)
            yield gone[i], new[j]


def _common(one: Sequence[str], other: Sequence[str]) -> int:
    """Count the words that two names share at their beginning and at their end."""
    count = 0
    for words in (zip(one, other, strict=False), zip(one[::-1], other[::-1], strict=False)):
        for x, y in words:
            if x != y:
                break
            count += 1
    return count
