"""Ranges that name data loading."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pyarrow.compute as pc

from pyprof.marker import Kind, classify
from pyprof.parse.ranges.texts import where

if TYPE_CHECKING:
    from pyprof.arrays import Int64Array
    from pyprof.schema import Capture

_NAMES = (Kind.CONTEXT, Kind.LAYER, Kind.USER, Kind.STEP)
_LOADING = r"(?i)data_?loader|next_?batch|get_?batch|(?:load|fetch)_?(?:data|batch)"


def loading_ranges(capture: Capture) -> dict[str, tuple[Int64Array, Int64Array]]:
    """Return starts and ends of the ranges that name data loading, by their names."""
    is_named = partial(pc.match_substring_regex, pattern=_LOADING)
    ranges = capture.ranges
    ranges = ranges.filter(where(ranges.column("text"), is_named))
    text = ranges.column("text").unify_dictionaries().combine_chunks()
    index = text.indices.to_numpy()
    start, end = (np.asarray(pc.fill_null(ranges.column(name), -1)) for name in ("start", "end"))
    names = {code: text.dictionary[code].as_py() for code in np.unique(index).tolist()}
    return {
        name: (start[index == code], end[index == code])
        for code, name in names.items()
        if classify(name) in _NAMES  # no stack, or op, of a file so called
    }
