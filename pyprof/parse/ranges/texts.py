"""What ranges state, each distinct statement read once, and the layers and steps they name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from pyprof import marker
from pyprof.arrays import ints
from pyprof.marker import Kind

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from numpy.typing import NDArray

    from pyprof.arrays import Int64Array, Mask
    from pyprof.marker import Statement


@dataclass(frozen=True, slots=True)
class Texts:
    """Distinct statements, and the statement of each range."""

    code: NDArray[np.int32]
    """Per range: its statement."""
    seq: Int64Array
    """Per range: its sequence number; MISSING where it has none."""
    statements: list[Statement]
    kind: NDArray[np.int8]
    """Per statement: what it is (`marker.Kind`)."""


def read_texts(ranges: pa.Table) -> Texts:
    """Read the statements of a table of ranges."""
    text = ranges.column("text").unify_dictionaries()
    templates = text.chunk(0).dictionary.to_pylist() if text.num_chunks else []
    kind = [marker.classify(marker.without_sizes(each)) for each in templates]
    code = np.concatenate([np.zeros(0, np.int32), *(part.indices for part in text.chunks)])
    return Texts(
        code,
        ints(ranges.column("seq")),
        [*map(marker.statement, templates)],
        np.array(kind, np.int8),
    )


def map_texts(text: pa.ChunkedArray, question: Callable[[pa.Array], pa.Array]) -> pa.ChunkedArray:
    """Apply a predicate to each text of a table of ranges, by evaluating it once per template."""
    mapped = [question(part.dictionary).take(part.indices) for part in text.chunks]
    return pa.chunked_array(mapped, pa.bool_())


def kinds(texts: Texts) -> NDArray[np.int8]:
    """The kind of each range."""
    return texts.kind[texts.code]


def matching_statements(texts: Texts, kind: Kind, question: Callable[[Statement], bool]) -> Mask:
    """Mark the statements of a kind that satisfy a condition."""
    matching = np.zeros(len(texts.statements), bool)
    for index in np.flatnonzero(texts.kind == kind).tolist():
        matching[index] = question(texts.statements[index])
    return matching


def matches(texts: Texts, kind: Kind, question: Callable[[Statement], bool]) -> Mask:
    """Mark the ranges of a kind whose statement satisfies a condition."""
    return matching_statements(texts, kind, question)[texts.code]


LAYERS = (Kind.LAYER, Kind.USER)
"""Kinds of ranges that name a layer."""


def of_library(ranges: pa.Table) -> Mask:
    """Mask of ranges in a library's own NVTX domain."""
    in_library = np.zeros(len(ranges), bool)
    if ranges.column("domain").null_count == len(ranges):
        return in_library
    domain = ranges.column("domain").combine_chunks()
    theirs = [name is not None and marker.is_library_domain(name)
              for name in domain.dictionary.to_pylist()]  # fmt: skip
    return np.asarray(np.append(np.array(theirs, bool), [False])[ints(domain.indices)])


def of_kinds(ranges: pa.Table, chosen: Collection[Kind]) -> Mask:
    """Mask of the ranges of some kinds.

    Only texts that occur in these ranges are classified: they may be few of many long ones.
    """
    text = ranges.column("text").combine_chunks()
    used, index = np.unique(ints(text.indices), return_inverse=True)
    used_texts = text.dictionary.take(pa.array(used)).to_pylist()
    return np.array([marker.classify(each) in chosen for each in used_texts], bool)[index]


def name(text: str, kind: Kind | None = None) -> str:
    """The layer, or loop, that a range names."""
    return _NAME[marker.classify(text) if kind is None else kind](text)


_NAME: dict[Kind, Callable[[str], str]] = {
    Kind.LAYER: marker.layer_name,
    Kind.USER: marker.range_name,
    Kind.STEP: marker.step_name,
}


NAMED = frozenset(_NAME)
"""Kinds of ranges that name a part of the program."""


def direction_hint(name: str, kind: Kind) -> str:
    """The direction that a named range implies; "" for none.

    A layer may be a module of a backward RNN: its name counts only if it is one of `_PARTS`.
    """
    return "" if kind == Kind.LAYER and name.lower() not in _PARTS else marker.direction(name)


_PARTS = frozenset({"forward", "backward", "optimizer"})


def codes(read: Texts) -> NDArray[np.int32]:
    """Template of each range; ranges with one meaning, such as steps, share one.

    Otherwise the ranges inside would have a separate path in each step.
    """
    shared = np.arange(len(read.statements), dtype=np.int32)
    first: dict[tuple[int, str], int] = {}
    for kind in (Kind.USER, Kind.STEP):
        for index in np.flatnonzero(read.kind == kind).tolist():
            shared[index] = first.setdefault((kind, name(read.statements[index].text, kind)), index)
    return shared[read.code]
