"""What marks the steps of a loop: the user's iteration ranges, or the optimizer's steps.

Each gives the bounds of the steps in ns on the capture's clock; the host's, or those of launches.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import partial, reduce
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyprof import schema
from pyprof.arrays import numbered
from pyprof.marker import (
    STEP_PATTERN,
    Kind,
    classify,
    plain_layer,
    serving_step,
    step_name,
)
from pyprof.parse.paths import unnumbered
from pyprof.parse.records import Records
from pyprof.parse.texts import where
from pyprof.report.analysis import host_api
from pyprof.report.analysis.repetition import repetition
from pyprof.report.analysis.windows import recorded

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from pyprof.arrays import Ints
    from pyprof.schema import Capture


_DIGITS = re.compile(r"\d+")

# --- from ranges --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Bounds:
    """Where steps begin and end, by what marks them."""

    origin: str
    start: Ints
    end: Ints
    texts: tuple[str, ...] = ()
    """Of the ranges that mark them, one each."""

    @property
    def total_ns(self) -> int:
        """Sum up their lengths."""
        return int((self.end - self.start).sum())


def iterations(capture: Capture) -> Bounds | None:
    """Find ranges that name iterations; of several sorts, the one that covers most time."""
    ranges = capture.ranges
    is_iteration = partial(pc.match_substring_regex, pattern=STEP_PATTERN)
    texts = ranges.filter(where(ranges.column("text"), is_iteration))
    distinct = texts.column("text").unique().to_pylist()
    named: dict[str, list[str]] = {}
    for text in distinct:
        if classify(text) in (Kind.STEP, Kind.LAYER):
            named.setdefault(_loop_of(text), []).append(text)
    best = max(
        ((bool(serving_step(spelt[0])), bounds.total_ns, name, bounds)
         for name, spelt in sorted(named.items())
         for bounds in [_apart(_named(texts, spelt))]),
        key=lambda candidate: candidate[:2],
        default=None,
    )  # fmt: skip
    return None if best is None or not best[1] else replace(best[3], origin=f'ranges "{best[2]}"')


def _loop_of(text: str) -> str:
    """Name the loop that a step's range is of: its steps differ in numbers, in serving in more."""
    if serving_step(text):
        return step_name(text).partition("[")[0]
    return _DIGITS.sub("N", plain_layer(unnumbered(text)))


def engine_steps(capture: Capture) -> Bounds | None:
    """Let a step begin where vLLM prepares or runs its model, and end where the next begins."""
    for text in _ENGINE:
        bounds = _apart(_named(capture.ranges, [text]))
        if len(bounds.start) > 1:
            last = bounds.end[-1:]
            return replace(bounds, origin=f'ranges "{text}"', end=np.append(bounds.start[1:], last))
    return None


_ENGINE = ("gpu_model_runner: preprocess", "gpu_model_runner: forward")


def _named(ranges: pa.Table, texts: Sequence[str]) -> pa.Table:
    is_named = partial(pc.is_in, value_set=pa.array(texts))
    return ranges.filter(where(ranges.column("text"), is_named))


def _apart(ranges: pa.Table) -> Bounds:
    """Give the bounds of ranges that do not overlap: the longest thread's, the outermost."""
    start, end, thread = (
        np.asarray(pc.fill_null(ranges.column(name), -1)).astype(np.int64)
        for name in ("start", "end", "thread")
    )
    closed = np.flatnonzero(end > start)
    if not len(closed):
        return Bounds("", start[:0], start[:0])
    total = np.bincount(thread[closed], weights=(end - start)[closed].astype(float))
    rows = closed[thread[closed] == int(total.argmax())]
    rows = rows[np.lexsort((-end[rows], start[rows]))]
    outermost = np.append([True], start[rows[1:]] >= np.maximum.accumulate(end[rows])[:-1])
    rows = rows[outermost]
    texts = ranges.column("text").take(pa.array(rows)).to_pylist()
    return Bounds("", start[rows], end[rows], tuple(texts))


# --- from the optimizer -------------------------------------------------------------------------


def optimizer_ranges(capture: Capture) -> Bounds | None:
    """Let a step end where the optimizer's does; of several optimizers, the rarest tells."""
    ranges = capture.ranges
    is_step = partial(pc.starts_with, pattern="Optimizer.step#")
    texts = ranges.filter(where(ranges.column("text"), is_step))
    counts = texts.column("text").value_counts().to_pylist()
    named = [(entry["counts"], entry["values"]) for entry in counts]
    if not named:
        return None
    _, text = min(named)
    end = _apart(_named(texts, [text])).end
    if not len(end):
        return None
    return Bounds(text.partition("#")[0], np.append(_begin(capture), end[:-1]), end)


def _begin(capture: Capture) -> int:
    """Give the first instant at which the host did something."""
    firsts = (pc.min(frame.column("start")).as_py() for frame in (capture.calls, capture.ranges))
    return min(int(first) for first in firsts if first is not None)


def optimizer_rows(records: Records, launched: Ints) -> Bounds | None:
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
    return Bounds("Optimizer.step", np.append(int(launched.min()), end[:-1]), end)


# The steps of a training or inference loop: where each begins, and which rows are its.
#
# Found from the user's iteration ranges, else from the optimizer's steps, else from the kernels'
# own repetition. A row belongs to the step in which the host launched it. A step is of one window
# of the capture: of one that the profiler's pause cuts, what comes after it.


OUTSIDE = -1

_WARM_UP = 1.5
"""A leading step that takes this many times the median is warm-up."""


@dataclass(frozen=True, slots=True)
class Steps:
    """What was found. Times in ns on the capture's clock."""

    origin: str
    """Where from, for people: `ranges "step N"`, `Optimizer.step`,
    `repetition of 118 kernels`; "" for none."""
    start_ns: Ints
    """When the host began each step; for repetition, when it launched the first row."""
    end_ns: Ints
    duration_ns: Ints
    """From the GPU's last end in the step before (for the first of a window: its first start) to
    that in this one; the host, which runs ahead, may take less. Without rows, the host's time."""
    of_row: Ints
    """The step of each row; OUTSIDE where it is in none."""
    texts: tuple[str, ...] = ()
    """Of the range around each step; () where none is."""

    @property
    def guessed(self) -> bool:
        """Tell whether only repeated kernels tell the steps: they may be layers of one."""
        return self.kind == "repetition"

    def __len__(self) -> int:
        return len(self.start_ns)

    @property
    def kind(self) -> str:
        """Where from, without what differs between the steps of two processes."""
        return self.origin.partition(" ")[0]

    def rows(self, chosen: tuple[int, int] | None) -> NDArray[np.bool_] | None:
        """Find the rows of the steps from the first to before the last; None (all) for None."""
        if chosen is None:
            return None
        return np.asarray((self.of_row >= chosen[0]) & (self.of_row < chosen[1]))

    @property
    def warm_up(self) -> int:
        """Count the leading steps that take much longer than the median; half of them at most."""
        if not len(self):
            return 0
        slow = self.duration_ns > _WARM_UP * np.median(self.duration_ns)
        leading = int(np.argmin(slow))  # the median itself is not slow
        return min(leading, len(self) // 2)

    @property
    def steady(self) -> tuple[int, int] | None:
        """The steps after warm-up, the first and the one after the last; None where none are known.

        What is said of a step is of these, unless others are chosen.
        """
        return (self.warm_up, len(self)) if len(self) else None

    def mean_ns(self, chosen: tuple[int, int]) -> float:
        """Give the mean of the steps from the first to before the last."""
        return float(np.mean(self.duration_ns[chosen[0] : chosen[1]]))

    @property
    def median_ns(self) -> float | None:
        """The median step after warm-up; None where there are no steps."""
        return float(np.median(self.duration_ns[self.warm_up :])) if len(self) else None


def choose(text: str, count: int) -> tuple[int, int]:
    """Read `3:`, `3:7`, `:7`, `-2:` or `3` as the steps from the first to before the last.

    Raises ValueError, with what to write instead, where it names none of `count` steps.
    """
    first, colon, last = text.partition(":")
    if not count:
        raise ValueError("no steps were found; call pyprof.annotate('step') around each")
    try:
        low = int(first) if first or not colon else 0
        high = (int(last) if last else count) if colon else low + 1 or count
    except ValueError:
        raise ValueError(f"{text!r} is not a range of steps; write 3: or 3:7 or 3") from None
    low, high, _ = slice(low, high).indices(count)
    if low >= high:
        raise ValueError(f"no step in {text!r}; there are {count}, counted from 0")
    return low, high


def find_steps(records: Records, capture: Capture | None = None) -> Steps:
    """Find the steps; of length 0 where nothing tells them.

    Each process steps on its own, on its own host's clock; its nth step is the nth of all.
    """
    if "start" not in records.columns or not records.rows:
        return _none(records)
    launched, _ = host_api.launches(records)
    launched = np.where(launched >= 0, launched, records.numpy("start"))
    pid = _processes(records)
    numbers, place = numbered(pid)
    count = np.bincount(place)
    if len(numbers) == 1:
        return _of_process(records, capture, launched)
    steps_of_process = {}
    for number in numbers[np.argsort(-count, kind="stable")][:_MOST].tolist():
        rows = np.flatnonzero(pid == number)
        theirs = _only(capture, number) if capture is not None else None
        steps_of_process[number] = (
            rows,
            _of_process(_needed(records).take(rows), theirs, launched[rows]),
        )
    return _side_by_side(records, [*steps_of_process.values()])


_MOST = 256
"""Processes whose steps are looked for, those with most rows; no machine trains with as many."""


def _processes(records: Records) -> Ints:
    """Give the process of each row; the busiest one's for a row of which it is not known."""
    pid = records.numpy("pid")
    known_pids = pid[pid >= 0]
    if not len(known_pids):
        return np.zeros_like(pid)
    numbers, place = numbered(known_pids)
    return np.where(pid >= 0, pid, numbers[np.bincount(place).argmax()])


_COLUMNS = (
    *("kind", "dir", "kLongName", "start", "end", "pid", "device", "stream", "window", "replay"),
)


def _needed(records: Records) -> Records:
    return Records(
        records.rows, {name: records.columns[name] for name in _COLUMNS if name in records.columns}
    )


def _only(capture: Capture, pid: int) -> Capture:
    """Leave of a capture what one process did on the host."""
    of_thread = pc.fill_null(pc.equal(capture.threads.column("pid"), pid), fill_value=False)
    mine = np.append(np.asarray(of_thread), np.False_)
    ranges, calls = (
        table.filter(pa.array(mine[np.asarray(pc.fill_null(table.column("thread"), -1))]))
        for table in (capture.ranges, capture.calls)
    )
    return replace(capture, ranges=ranges, calls=calls)


def _of_process(records: Records, capture: Capture | None, launched: Ints) -> Steps:
    if capture is not None:
        for find in (iterations, engine_steps, optimizer_ranges):
            if (named_ranges := find(capture)) is not None:
                return _steps(records, named_ranges, launched)
    if (boundaries := optimizer_rows(records, launched)) is not None:
        return _steps(records, boundaries, launched)
    repeated = repetition(records, launched)
    return _none(records) if repeated is None else _steps(records, Bounds(*repeated), launched)


def _side_by_side(records: Records, steps_of_process: Sequence[tuple[Ints, Steps]]) -> Steps:
    """Join the steps of processes, of which some rows each are."""
    joined = reduce(merge_steps, (steps for _, steps in steps_of_process))
    of_row = np.full(records.rows, OUTSIDE)
    for rows, steps in steps_of_process:
        if steps.kind == joined.kind:
            of_row[rows] = np.where(steps.of_row < len(joined), steps.of_row, OUTSIDE)
    return replace(joined, of_row=of_row)


def merge_steps(a: Steps, b: Steps) -> Steps:
    """Make the steps of two processes one: each takes as long as in the slower. No rows are in it.

    Bounds and number are those of `a`, if it has steps; steps of another kind, an evaluation
    beside the training say, do not count.
    """
    main = a if len(a) else b
    duration = main.duration_ns.copy()
    if len(a) and a.kind == b.kind:
        both = min(len(a), len(b))
        duration[:both] = np.maximum(duration[:both], b.duration_ns[:both])
    return replace(main, duration_ns=duration, of_row=duration[:0])


def _none(records: Records) -> Steps:
    nothing = np.zeros(0, np.int64)
    return Steps("", nothing, nothing, nothing, np.full(records.rows, OUTSIDE))


def _steps(records: Records, bounds: Bounds, launched: Ints) -> Steps:
    start, end = bounds.start, bounds.end
    place = np.searchsorted(start, launched, side="right") - 1
    inside = (place >= 0) & (launched < end[np.maximum(place, 0)])
    of_row = np.where(inside, place, OUTSIDE)
    start, of_row = _uncut(records, start, of_row, launched)
    duration = _on_gpu(records, of_row, start, end)
    return Steps(bounds.origin, start, end, duration, of_row, bounds.texts)


def _uncut(records: Records, start: Ints, of_row: Ints, launched: Ints) -> tuple[Ints, Ints]:
    """Let each step begin in the window in which it ends."""
    window = records.numpy("window", 0)
    last = np.full(len(start) + 1, OUTSIDE)  # the last place is for what is in no step
    np.maximum.at(last, of_row, window)
    step_of_row = np.where(window == last[of_row], of_row, OUTSIDE)
    cut = np.unique(of_row[step_of_row != of_row])
    first = np.full(len(start) + 1, np.iinfo(np.int64).max)
    np.minimum.at(first, step_of_row, launched)
    start = start.copy()
    start[cut] = first[cut]
    return start, step_of_row


def _on_gpu(records: Records, of_row: Ints, start: Ints, end: Ints) -> Ints:
    """Measure each step from the GPU's end of the one before to its own, without pauses."""
    bounds = bounds_on_gpu(records, of_row, len(start))
    if bounds is None:
        return end - start
    inside = of_row != OUTSIDE
    times = [records.numpy(name, 0)[inside] for name in ("window", "start", "end")]
    paused = recorded(np.ones_like(times[0], bool), *times).paused
    return np.asarray(np.diff(bounds) - paused.length_within(bounds[:-1], bounds[1:]))


def bounds_on_gpu(records: Records, of_row: Ints, count: int) -> Ints | None:
    """Give the first start of any of `count` steps and each one's end; None where none has rows."""
    rows = np.flatnonzero(of_row != OUTSIDE)
    if not len(rows):
        return None
    finished = np.full(count, np.iinfo(np.int64).min)
    np.maximum.at(finished, of_row[rows], records.numpy("end")[rows])
    finished = np.maximum.accumulate(finished)
    first_row = int(records.numpy("start")[rows[of_row[rows] == of_row[rows].min()]].min())
    return np.append(first_row, np.maximum(finished, first_row))
