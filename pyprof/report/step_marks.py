"""What marks the steps of a loop: the user's iteration ranges, or the optimizer's steps.

Each gives the bounds of the steps in ns on the capture's clock; the host's, or those of launches.
"""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyprof import schema
from pyprof.marker import Kind, classify, plain_layer
from pyprof.parse.describe import unnumbered
from pyprof.parse.texts import where

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyprof.arrays import Ints
    from pyprof.parse.records import Records
    from pyprof.schema import Capture


_ITERATION = (
    r"(?i)^(?:layer:)?\W*(?:profiler|train(?:ing)?|eval|test|val(?:idation)?|inference)?[\s_.:#-]*"
    r"(?:step|iter|iteration|batch|mini-?batch)s?(?:[\s_.:#=(\[-]*\d+.*)?$"
)
"""Names of iterations; an RE2 pattern."""
_DIGITS = re.compile(r"\d+")

# --- from ranges --------------------------------------------------------------------------------


def iterations(capture: Capture) -> tuple[str, Ints, Ints] | None:
    """Find ranges that name iterations; of several sorts, the one that covers most time."""
    ranges = capture.ranges
    is_iteration = partial(pc.match_substring_regex, pattern=_ITERATION)
    texts = ranges.filter(where(ranges.column("text"), is_iteration))
    distinct = texts.column("text").unique().to_pylist()
    named: dict[str, list[str]] = {}
    for text in distinct:
        if classify(text) in (Kind.CONTEXT, Kind.LAYER):
            named.setdefault(_DIGITS.sub("N", plain_layer(unnumbered(text))), []).append(text)
    best = max(
        ((total, name, start, end)
         for name, spelt in sorted(named.items())
         for total, start, end in [_apart(_named(texts, spelt))]),
        key=lambda found: found[0],
        default=None,
    )  # fmt: skip
    return None if best is None or not best[0] else (f'ranges "{best[1]}"', best[2], best[3])


def _named(ranges: pa.Table, texts: Sequence[str]) -> pa.Table:
    is_named = partial(pc.is_in, value_set=pa.array(texts))
    return ranges.filter(where(ranges.column("text"), is_named))


def _apart(ranges: pa.Table) -> tuple[int, Ints, Ints]:
    """Give the bounds of ranges that do not overlap: the longest thread's, the outermost."""
    start, end, thread = (
        np.asarray(pc.fill_null(ranges.column(name), -1)).astype(np.int64)
        for name in ("start", "end", "thread")
    )
    closed = end > start
    if not closed.any():
        return 0, start[:0], start[:0]
    total = np.bincount(thread[closed], weights=(end - start)[closed].astype(float))
    keep = closed & (thread == int(total.argmax()))
    order = np.lexsort((-end[keep], start[keep]))
    start, end = start[keep][order], end[keep][order]
    outermost = np.concatenate([[True], start[1:] >= np.maximum.accumulate(end)[:-1]])
    start, end = start[outermost], end[outermost]
    return int((end - start).sum()), start, end


# --- from the optimizer -------------------------------------------------------------------------


def optimizer_ranges(capture: Capture) -> tuple[str, Ints, Ints] | None:
    """Let a step end where the optimizer's does; of several optimizers, the rarest tells."""
    ranges = capture.ranges
    is_step = partial(pc.starts_with, pattern="Optimizer.step#")
    texts = ranges.filter(where(ranges.column("text"), is_step))
    counts = texts.column("text").value_counts().to_pylist()
    named = [(entry["counts"], entry["values"]) for entry in counts]
    if not named:
        return None
    _, text = min(named)
    _, _, end = _apart(_named(texts, [text]))
    if not len(end):
        return None
    return text.partition("#")[0], np.concatenate([[_begin(capture)], end[:-1]]), end


def _begin(capture: Capture) -> int:
    """Give the first instant at which the host did something."""
    firsts = (pc.min(frame.column("start")).as_py() for frame in (capture.calls, capture.ranges))
    return min(int(first) for first in firsts if first is not None)


def optimizer_rows(records: Records, launched: Ints) -> tuple[Ints, Ints] | None:
    """Let a step end with the last launch of each run of the optimizer's rows."""
    kernels = records.coded("kind")
    work = np.array([*(name == schema.KINDS[schema.KERNEL] for name in kernels.values), False])
    part = records.coded("dir")
    optim = np.array([*(name == "optim" for name in part.values), False])[part.index]
    rows = np.flatnonzero(work[kernels.index])
    rows = rows[np.argsort(launched[rows], kind="stable")]
    inside = optim[rows]
    last = np.flatnonzero(inside & ~np.append(inside[1:], False))
    if len(last) < 2:  # noqa: PLR2004 - a single one tells no period
        return None
    end = launched[rows[last]] + 1
    return np.concatenate([[int(launched.min())], end[:-1]]), end
