"""Keys by which rows of two captures are matched, and layers that are named differently in the two.

Keys name what a row computes, not the kernel that did it.
"""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from pyprof.arrays import ints
from pyprof.marker.user_ranges import is_step, step_name
from pyprof.prof.columns.column_values import format_distinct
from pyprof.records.records import first_rows, number_combinations

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from pyprof.analysis.diff.side import Key
    from pyprof.prof.table import Table


def _op(table: Table) -> pa.DictionaryArray:
    """Name the op with its direction; work without an op is named by its kernel."""
    columns = [table.dictionary_array(name) for name in ("op", "dir", "kernel")]
    number = number_combinations(*(ints(column.indices) for column in columns))
    first = pa.array(first_rows(number))
    op, part, kernel = (column.take(first).cast(pa.string()) for column in columns)
    named = pc.coalesce(op, kernel)
    backward = pc.fill_null(pc.equal(part, "bprop"), False)  # noqa: FBT003 - Arrow's spelling
    texts = pc.if_else(backward, pc.binary_join_element_wise(named, "(backward)", " "), named)
    return texts.dictionary_encode().take(pa.array(number))


def _shape(value: list[list[int]]) -> str | None:
    return " ".join("x".join(map(str, size)) for size in value) or None


def _dtype(value: list[str]) -> str | None:
    return ",".join(dict.fromkeys(name for name in value if name)) or None


def _layer(layers: Sequence[str]) -> str | None:
    """Name the layers; a step's range gets the name of its loop, so that steps match each other."""
    return ":".join(step_name(name) if is_step(name) else name for name in layers) or None


KEYS: dict[str, Callable[[Table], pa.DictionaryArray]] = {
    "op": _op,
    "shape": lambda table: format_distinct(table.records.dictionary("sizes"), _shape),
    "dtype": lambda table: format_distinct(table.records.dictionary("dtypes"), _dtype),
    "layer": lambda table: format_distinct(table.own_or_forward("layer"), _layer),
    "line": lambda table: table.dictionary_array("line"),
    "kernel": lambda table: table.dictionary_array("kernel"),
}
"""What rows can be matched by."""


MAX_PAIRS = 10_000
"""With more layers for the same op call, the n-th is matched to the n-th."""
_MAX_WORDS = 64
"""Maximum words of a name; of a longer one the beginning counts."""
_SAME_CALLS = 0.1
"""Calls may differ by this share, since a capture may end within a step."""


def renamed_layers(
    keys: Sequence[str], a: Mapping[Key, float], b: Mapping[Key, float]
) -> dict[Key, Key]:
    """Return the new key for each key of A whose layer alone has another name in B.

    `a` and `b` hold the op calls of each key. A key that only A has matches one that only B has if
    all but the layer is equal, and both have as many calls.
    """
    if "layer" not in keys or not {"op", "kernel"} & {*keys}:
        return {}
    at = keys.index("layer")
    gone, new = _group_by_rest(a, b, at), _group_by_rest(b, a, at)
    return {
        x: y
        for rest in gone.keys() & new.keys()
        for x, y in _pairs(gone[rest], new[rest], at)
        if abs(a[x] - b[y]) <= _SAME_CALLS * max(a[x], b[y])
    }


def _group_by_rest(
    own: Mapping[Key, float], other: Mapping[Key, float], at: int
) -> dict[Key, list[Key]]:
    """Group the keys that only one side has by all but the layer, in the order of its name."""
    grouped: dict[Key, list[Key]] = defaultdict(list)
    for key in own:
        if key not in other:
            grouped[key[:at] + key[at + 1 :]].append(key)
    return {
        rest: sorted(same, key=lambda key: _natural_key(key[at])) for rest, same in grouped.items()
    }


def _words(name: str | None) -> list[str]:
    words = _WORD.findall(name or "")
    return words if len(words) <= _MAX_WORDS else words[:_MAX_WORDS]


def _natural_key(name: str | None) -> list[tuple[int, str]]:
    """Order `h.2` before `h.10`."""
    words = _words(name)
    return [(int(word), "") if word.isdecimal() else (-1, word) for word in words]


_WORD = re.compile(r"[0-9]{1,9}|[^0-9.:/]+")


def _pairs(gone: Sequence[Key], new: Sequence[Key], at: int) -> Iterator[tuple[Key, Key]]:
    """Pair the names whose beginnings and ends have most in common; among equals, in order."""
    if len(gone) * len(new) > MAX_PAIRS:
        yield from zip(gone, new, strict=False) if len(gone) == len(new) else ()
        return
    words = [[_words(key[at]) for key in side] for side in (gone, new)]
    alike = [
        (-_count_common(x, y), abs(i - j), i, j)
        for i, x in enumerate(words[0])
        for j, y in enumerate(words[1])
    ]
    for i, j in pair_once(alike):
        yield gone[i], new[j]


def pair_once(candidates: Iterable[tuple[int, ...]]) -> Iterator[tuple[int, int]]:
    """Yield pairs of indices, the lowest candidates first, each index of either side once.

    Candidates end with a pair, after what they are sorted by.
    """
    paired: tuple[set[int], set[int]] = (set(), set())
    for *_, i, j in sorted(candidates):
        if i not in paired[0] and j not in paired[1]:
            paired[0].add(i)
            paired[1].add(j)
            yield i, j


def _count_common(one: Sequence[str], other: Sequence[str]) -> int:
    """Count the words that two names share at their beginning and at their end."""
    count = 0
    for words in (zip(one, other, strict=False), zip(one[::-1], other[::-1], strict=False)):
        for x, y in words:
            if x != y:
                break
            count += 1
    return count
