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
    from collections.abc import Callable, Mapping

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
SAME_START, SAME_END = "start with others of their stream", "end with others of their stream"
COVERS = "are still running while their stream does later work"
EARLY = "began long before their launch"
NEGATIVE = "began before the clock of the capture"

START_IS_WRONG = (NO_START, TOO_LARGE, NOT_TIMED, SAME_START, EARLY, NEGATIVE)
"""Reasons that make not only the end but also the start unreliable."""

_MAX_OUTSIDE = 10
"""Nothing ends further outside the recording than this multiple of its length ..."""
_FAR_NS = 60 * 10**9
"""... and at least this: a long kernel may be the last one of a capture."""
_ALIKE = 3
"""Minimum of rows of one stream that begin, or end, at one instant."""
_COVERED, _COVERED_BY_LONGEST = 8, 2
"""Minimum of rows that a stream begins before half of an earlier one has passed."""
_MIN_LENGTH = 100
"""Minimum length, in medians, of a row that covers this many others."""
_TOP = 16
"""Rows that are compared with the total of all others."""


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


class _Reasons:
    """Rows by the first reason that holds."""

    def __init__(self, rows: int) -> None:
        self.wrong: dict[str, Mask] = {}
        self.left = np.ones(rows, bool)

    def note(self, why: str, rows: Mask) -> None:
        new = rows & self.left
        if new.any():
            self.wrong[why] = self.wrong.get(why, False) | new
            self.left &= ~new


def invalid_intervals(
    spans: Spans, begun: tuple[int, int] | None, launched: Callable[[Int64Array], Int64Array]
) -> Mapping[str, Mask]:
    """Return the rows whose time is impossible, by the first reason that holds.

    `begun` are the first and the last start of an API call, None without one; `launched` returns
    when rows were launched, `NO_TIME` without a call.
    """
    reasons = _Reasons(len(spans.start))
    start, end = spans.start, spans.end
    duration = _durations(spans, reasons)
    if begun is not None and begun[0] >= 0 > start.min(initial=0):
        reasons.note(
            NEGATIVE, (start < 0) & (start != NO_TIME)
        )  # older than any call that can have launched it
        duration = np.where(reasons.left, duration, 0)
    longest_ns = int(duration.max(initial=0))
    if longest_ns > LONGEST_NS:
        reasons.note(TOO_LONG, duration > LONGEST_NS)
    far = _FAR_NS if begun is None else max(_MAX_OUTSIDE * (begun[1] - begun[0]), _FAR_NS)
    if begun is not None and longest_ns > far:
        reasons.note(
            FAR_TOO_LONG, (duration > far) & ((end > begun[1] + far) | (start < begun[0] - far))
        )
    rows, bounds = _by_stream(spans, reasons.left & spans.is_serialized & (duration > 0))
    for why, one, other in ((SAME_START, start, end), (SAME_END, end, start)):
        reasons.note(why, _at_once(rows, bounds, one, other, spans.launch))
    longest = _longest(duration, reasons.left)
    launch_ns = launched(longest)
    half_gone = start[longest] + duration[longest] // 2 < launch_ns
    early = np.zeros(len(start), bool)
    early[longest[(launch_ns != NO_TIME) & half_gone]] = True
    reasons.note(EARLY, early)
    reasons.note(COVERS, _covering(spans, duration, longest, rows[reasons.left[rows]]))
    return reasons.wrong


def _durations(spans: Spans, reasons: _Reasons) -> Int64Array:
    """Note impossible bounds; return the durations, 0 if unknown."""
    start, end = spans.start, spans.end
    bounds = [bound for each in (start, end) if len(each) for bound in (each.min(), each.max())]
    if bounds and min(bounds) > 0 and max(bounds) < LATEST_NS:  # nearly always
        duration: Int64Array = end - start
        if duration.min() >= 0:
            return duration
    reasons.note(NO_START, start == NO_TIME)
    reasons.note(NO_END, end == NO_TIME)
    reasons.note(TOO_LARGE, (np.abs(start) >= LATEST_NS) | (np.abs(end) >= LATEST_NS))
    reasons.note(NOT_TIMED, (start == 0) & (end == 0))  # as CUPTI writes it
    reasons.note(BACKWARDS, end < start)
    return np.where(reasons.left, end, 0) - np.where(reasons.left, start, 0)


def overlapping_on_stream(spans: Spans, possible: Mask) -> Mask:
    """Mark rows that end after the next row of their stream ended.

    Their time is too long, though less than what `invalid_intervals` takes for damage. Work of one
    launch, such as a graph's, may overlap.
    """
    overtaken_rows = np.zeros(len(spans.start), bool)
    if all((bound[1:] >= bound[:-1]).all() for bound in (spans.start, spans.end)):
        return overtaken_rows  # nearly always where there is one stream
    rows, same = _by_stream(spans, possible & spans.is_serialized & (spans.end > spans.start))
    end = spans.end[rows]
    pair = np.flatnonzero(same[1:] & (end[:-1] > end[1:] + _ROUNDED_NS))
    if len(pair):
        launch, times = np.unique(spans.launch[rows], return_counts=True)
        alone = (times == 1)[np.searchsorted(launch, spans.launch[rows])]
        overtaken_rows[rows[pair[alone[pair] & alone[pair + 1]]]] = True
    return overtaken_rows


_ROUNDED_NS = 2_000
"""The error of tools that round to microseconds."""


def _by_stream(spans: Spans, wanted: Mask) -> tuple[Int64Array, Mask]:
    """Return the wanted rows by stream and start, and whether each shares the last one's stream."""
    rows = np.flatnonzero(wanted)
    stream, start = spans.stream[rows], spans.start[rows]
    if (start[1:] < start[:-1]).any():
        rows = rows[np.argsort(start, kind="stable")]
        stream = spans.stream[rows]
    if (stream != stream[:1]).any():
        rows = rows[np.argsort(stream, kind="stable")]
    return rows, np.append([False], spans.stream[rows[1:]] == spans.stream[rows[:-1]])[: len(rows)]


def _at_once(
    rows: Int64Array, same_stream: Mask, at: Int64Array, other: Int64Array, launch: Int64Array
) -> Mask:
    """Mark rows of several launches that share one bound, though their lengths differ much."""
    is_wrong = np.zeros(len(at), bool)
    instant = at[rows]
    same = same_stream.copy()
    same[1:] &= instant[1:] == instant[:-1]
    if same.sum() < _ALIKE - 1:
        return is_wrong
    run = np.cumsum(~same)
    several = np.ones(len(rows), bool)
    for distinct in (other[rows], launch[rows]):
        pairs = np.unique(np.stack([run, distinct]), axis=1)[0]
        several &= np.bincount(pairs, minlength=int(run[-1]) + 1)[run] >= _ALIKE
    first = np.flatnonzero(~same)
    length = np.abs(other - at)[rows]
    longest, shortest = (part.reduceat(length, first) for part in (np.maximum, np.minimum))
    several &= (longest >= 2 * shortest)[run - 1]
    is_wrong[rows[several]] = True
    return is_wrong


def _longest(duration: Int64Array, possible: Mask) -> Int64Array:
    """Return the rows that are each longer than all shorter ones together."""
    time = np.where(possible, duration, 0)
    total_ns = int(time.sum())
    if (_TOP + 1) * int(time.max(initial=0)) < total_ns:
        return np.zeros(0, np.int64)
    few = min(_TOP, len(time) - max(1, len(time) // 2))  # none of the shorter half is long
    if few <= 0:
        return np.zeros(0, np.int64)
    top = np.argpartition(time, len(time) - few)[-few:]
    top = top[np.argsort(time[top], kind="stable")]
    shorter = total_ns - int(time[top].sum()) + np.cumsum(time[top]) - time[top]
    over = np.flatnonzero(time[top] > shorter)
    return top[over[0] :] if len(over) else top[:0]


def _covering(spans: Spans, duration: Int64Array, longest: Int64Array, rows: Int64Array) -> Mask:
    """Mark too long rows: before the midpoint of one, its stream starts several other launches.

    `rows` are by stream and start.
    """
    is_covering = np.zeros(len(duration), bool)
    many = _covers(spans, duration, rows, _COVERED)
    if len(many):
        is_covering[many[duration[many] > _MIN_LENGTH * np.median(duration[rows])]] = True
    if len(longest):
        is_covering[
            np.intersect1d(_covers(spans, duration, rows, _COVERED_BY_LONGEST), longest)
        ] = True
    return is_covering


def _covers(spans: Spans, duration: Int64Array, rows: Int64Array, count: int) -> Int64Array:
    """Return the rows before whose midpoint their stream began `count` others."""
    start = spans.start[rows]
    covers = start[count:] < (start + (duration[rows] >> 1))[:-count]
    one, later = rows[:-count][covers], rows[count:][covers]
    of_others = spans.launch[later] != spans.launch[one]
    covering: Int64Array = one[of_others & (spans.stream[later] == spans.stream[one])]
    return covering
