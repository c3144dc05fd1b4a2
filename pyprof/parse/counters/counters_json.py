"""The counters of a row as JSON: sampled and counted values together."""

from __future__ import annotations

import numpy as np
import orjson

from pyprof.arrays import MISSING
from pyprof.records.records import DictionaryColumn, combinations
from pyprof.schema import json_object

STATES = ("clock_hz", "power_w")
"""The device's state, which only samples of this run can show."""
_SAME = {"dram_pct": "dram_bytes"}
"""A sampled metric, and the counter of the same quantity."""


def join_counters(sampled: DictionaryColumn, counted: DictionaryColumn) -> DictionaryColumn:
    """Merge counted and sampled values row by row; counted ones win.

    Clock and power are the sampled ones, since a kernel may have been counted in another run.
    Sampled values are recognized by their standard error.
    """
    first, number = combinations(sampled.index, counted.index)
    texts = [_join_texts(sampled.at(row), counted.at(row)) for row in first.tolist()]
    index = np.array([MISSING if text is None else at for at, text in enumerate(texts)], np.int64)
    return DictionaryColumn(index[number], texts)


def _join_texts(sampled: str | None, counted: str | None) -> str | None:
    if sampled is None or counted is None:
        return counted if sampled is None else sampled
    ours, theirs = json_object(sampled), json_object(counted)
    rest = {}
    for key, value in ours.items():
        name = key.removesuffix("_err")
        is_state = name in STATES and f"{name}_err" in ours
        if is_state or not {name, _SAME.get(name)} & theirs.keys():
            rest[key] = value
    return orjson.dumps({**theirs, **rest}).decode()
