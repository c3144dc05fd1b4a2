"""Impossible times of GPU work. Works on intervals, independent of files and tables.

Streams run one thing after another, and nothing runs before it was launched: a time that
contradicts this was damaged. Intact captures have none of these, so that even one is no
coincidence.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from pyprof.arrays import Int64Array, Mask


NO_TIME = -(2**63)
"""Stands for an unknown time."""

LONGEST_NS = 24 * 3600 * 10**9
"""No kernel runs for a day, and no job is captured for one."""
LATEST_NS = 2**62
"""In the year 2116 if times count from 1970. Sums of a few smaller ones fit 64 bits."""

NO_START, NO_END = "have no start", "have no end"
TOO_LARGE = "are beyond the calendar"
BACKWARDS = "end before they start"
NOT_TIMED = "start and end at 0"
TOO_LONG = "take more than a day"
FAR_TOO_LONG = "take far longer than everything else recorded"
NEGATIVE = "began before the clock of the capture"
"""Reasons why a time is impossible, in the words of warnings."""

START_IS_WRONG = (NO_START, TOO_LARGE, NOT_TIMED, NEGATIVE)
"""Reasons that make not only the end but also the start unreliable."""

_MAX_OUTSIDE = 10
"""Nothing ends further outside the recording than this multiple of its length ..."""
_FAR_NS = 60 * 10**9
"""... and at least this: a long kernel may be the last one of a capture."""
_ROUNDED_NS = 2_000
"""The error of tools that round to microseconds."""


@dataclass(frozen=True, slots=True)
class Spans:
    """When work ran, by row; `NO_TIME` if not recorded."""

    start: Int64Array
    end: Int64Array
    stream: Int64Array
    """A number for process, device and stream."""
    launch: Int64Array
    """The correlation id, which work of one launch shares; negative without one."""
    is_serialized: Mask
    """Whether the work is of a kind that a stream runs one after the other."""


def invalid_intervals(spans: Spans, launched: Int64Array) -> dict[str, Mask]:
    """Return the rows whose time is impossible, by the first reason that holds.

    `launched` are the starts of all API calls.
    """
    start, end = spans.start, spans.end
    wrong: dict[str, Mask] = {}
    left = np.ones(len(start), bool)

    def note(why: str, rows: Mask) -> None:
        new = rows & left
        if new.any():
            wrong[why] = new
            left[new] = False

    note(NO_START, start == NO_TIME)
    note(NO_END, end == NO_TIME)
    note(TOO_LARGE, (np.abs(start) >= LATEST_NS) | (np.abs(end) >= LATEST_NS))
    note(NOT_TIMED, (start == 0) & (end == 0))  # as CUPTI writes it
    note(BACKWARDS, end < start)
    duration = np.where(left, end, 0) - np.where(left, start, 0)
    begun = _bounds(launched[launched != NO_TIME])
    if begun is not None and begun[0] >= 0:
        note(NEGATIVE, start < 0)  # older than any call that can have launched it
    note(TOO_LONG, duration > LONGEST_NS)
    if begun is not None:
        far = max(_MAX_OUTSIDE * (begun[1] - begun[0]), _FAR_NS)
        outside = (end > begun[1] + far) | (start < begun[0] - far)
        note(FAR_TOO_LONG, (duration > far) & outside)
    return wrong


def _bounds(start: Int64Array) -> tuple[int, int] | None:
    """Return the first and last of the starts that are within a day of the median."""
    near = start[np.abs(start - int(np.median(start))) < LONGEST_NS] if len(start) else start
    return (int(near.min()), int(near.max())) if len(near) else None


def overlapping_on_stream(spans: Spans, possible: Mask) -> Mask:
    """Mark rows that end after the next row of their stream ended.

    Their time is too long, though less than what `invalid_intervals` takes for damage. Work of one
    launch, such as a graph's, may overlap.
    """
    overtaken_rows = np.zeros(len(spans.start), bool)
    rows = np.flatnonzero(possible & spans.is_serialized & (spans.end > spans.start))
    if (np.diff(spans.start[rows]) < 0).any():
        rows = rows[np.argsort(spans.start[rows], kind="stable")]
    rows = rows[np.argsort(spans.stream[rows], kind="stable")]
    stream, end = spans.stream[rows], spans.end[rows]
    pair = np.flatnonzero((stream[1:] == stream[:-1]) & (end[:-1] > end[1:] + _ROUNDED_NS))
    if len(pair):
        launch, times = np.unique(spans.launch[rows], return_counts=True)
        alone = (times == 1)[np.searchsorted(launch, spans.launch[rows])]
        overtaken_rows[rows[pair[alone[pair] & alone[pair + 1]]]] = True
    return overtaken_rows
