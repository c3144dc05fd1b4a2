"""What ranges name: layers, loops and steps of the user's, and not those of libraries."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from pyprof import marker
from pyprof.arrays import ints
from pyprof.marker import Kind

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from pyprof.arrays import Mask
    from pyprof.parse.ranges import texts

LAYERS = (Kind.LAYER, Kind.USER)


def of_library(ranges: pa.Table) -> Mask:
    """Mask of ranges in an NVTX domain of a library's own."""
    in_library = np.zeros(len(ranges), bool)
    if ranges.column("domain").null_count == len(ranges):
        return in_library
    domain = ranges.column("domain").combine_chunks()
    theirs = [name is not None and marker.is_library_domain(name)
              for name in domain.dictionary.to_pylist()]  # fmt: skip
    return np.asarray(np.append(np.array(theirs, bool), [False])[ints(domain.indices)])


def named(ranges: pa.Table) -> Mask:
    """Mask of the ranges that name a layer.

    Only their own texts are looked at: they may be few among many long ones.
    """
    text = ranges.column("text").combine_chunks()
    used, index = np.unique(ints(text.indices), return_inverse=True)
    spelt = text.dictionary.take(pa.array(used)).to_pylist()
    layer = np.array([marker.classify(name) in LAYERS for name in spelt], bool)
    return layer[index] & ~of_library(ranges)


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


def says(name: str, kind: Kind) -> str:
    """The direction that a named range implies; "" for none.

    A layer may be a module of a backward RNN: only one that is named so and no more says it.
    """
    return "" if kind == Kind.LAYER and name.lower() not in _PARTS else marker.direction(name)


_PARTS = frozenset({"forward", "backward", "optimizer"})


def codes(read: texts.Texts) -> NDArray[np.int32]:
    """Template of each range; ranges with one meaning, such as steps, share one.

    Else what lies in them would have a path of its own in each step.
    """
    shared = np.arange(len(read.statements), dtype=np.int32)
    first: dict[tuple[int, str], int] = {}
    for kind in (Kind.USER, Kind.STEP):
        for place in np.flatnonzero(read.kind == kind).tolist():
            shared[place] = first.setdefault((kind, name(read.statements[place].text, kind)), place)
    return shared[read.code] if len(read.code) else read.code
