"""Waiting for the next batch."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pyarrow.compute as pc

from pyprof.marker import Kind, classify, plain_layer
from pyprof.parse.describe import unnumbered
from pyprof.parse.texts import where
from pyprof.report.advice.registry import Advice, Evidence, rule
from pyprof.report.intervals import union, union_of

if TYPE_CHECKING:
    from pyprof.report.advice.case import Case

_LOADING = r"(?i)data_?loader|next_?batch|get_?batch|(?:load|fetch)_?(?:data|batch)"


@rule
def data_loading(case: Case) -> Advice | None:
    """Find ranges that name data loading, and how long the GPUs idled inside them."""
    if case.capture is None or not case.devices:
        return None
    is_named = partial(pc.match_substring_regex, pattern=_LOADING)
    ranges = case.capture.ranges
    ranges = ranges.filter(where(ranges.column("text"), is_named))
    text = ranges.column("text").unify_dictionaries().combine_chunks()
    index = text.indices.to_numpy()
    start, end = (np.asarray(pc.fill_null(ranges.column(name), -1)) for name in ("start", "end"))
    idle = [union(device.idle.values()) for device in case.devices]
    found, most = [], 0
    for code in np.unique(index).tolist():
        name = text.dictionary[code].as_py()
        if classify(name) not in (Kind.CONTEXT, Kind.LAYER):
            continue  # a stack, or an op, of a file so called
        rows = index == code
        inside = union_of(start[rows], end[rows])
        waited = max((gaps & inside).total for gaps in idle)
        if waited:
            found.append(Evidence(plain_layer(unnumbered(name)), None, int(rows.sum()), waited))
            most = max(most, waited)
    if not found:
        return None
    return Advice(
        "data_loading",
        "the GPU waits for the next batch",
        "more DataLoader workers, persistent_workers=True, a larger prefetch_factor;"
        " decode and augment ahead of time or on the GPU",
        most,
        tuple(sorted(found, key=lambda entry: -entry.total_ns)),
        np.zeros(0, np.int64),
    )
