"""The steps of a loop that ranges mark: `pyprof.step()`, iterations, engines' steps, optimizers'.

Steps are numbered from 0 in each process. A row belongs to the step in which the host launched it.
A step belongs to one window of the capture: if a pause of the profiler cuts it, to the last one.
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyprof import schema
from pyprof.arrays import MISSING, latest_before, or_null
from pyprof.marker import (
    STEP_END,
    STEP_OF,
    STEP_PATTERN,
    Kind,
    plain_layer,
    serving_step,
    step_name,
    unnumbered,
)
from pyprof.parse.launches import launch_bounds
from pyprof.parse.ranges.texts import map_texts, of_kinds
from pyprof.parse.steps import step_bounds
from pyprof.parse.steps.step_bounds import Bounds, assign_rows
from pyprof.records.records import DictionaryColumn, Records, number_combinations

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pyprof.arrays import Int64Array
    from pyprof.records.records import Column
    from pyprof.schema import Capture


_DIGITS = re.compile(r"\d+")


def iterations(capture: Capture) -> Bounds | None:
    """Find ranges that name iterations; of several loops, an engine's, else the longest in all."""
    ranges = capture.ranges
    is_iteration = partial(pc.match_substring_regex, pattern=STEP_PATTERN)
    texts = _choose_ranges(ranges, is_iteration)
    texts = texts.filter(pa.array(of_kinds(texts, (Kind.STEP, Kind.LAYER))))
    distinct = _to_strings(texts.column("text").unique())
    named: dict[str, list[str]] = {}
    for text in distinct:
        named.setdefault(loop_of(text), []).append(text)
    best = max(
        ((bool(serving_step(listed[0])), bounds.total_ns, name, bounds)
         for name, listed in sorted(named.items())
         for bounds in [_drop_overlapping(_choose_by_text(texts, listed))]),
        key=lambda candidate: candidate[:2],
        default=None,
    )  # fmt: skip
    return None if best is None or not best[1] else replace(best[3], origin=f'ranges "{best[2]}"')


def loop_of(text: str) -> str:
    """Name the loop that a step's range belongs to: names differ in numbers, in serving in more."""
    if serving_step(text):
        name = step_name(text).partition("[")[0]
        return _ATOM if name in _ATOM_NAMES else name
    return _DIGITS.sub("N", plain_layer(unnumbered(text)))


_ATOM, _ATOM_NAMES = "prefill, decode", ("prefill", "decode", "eager_decode")
"""One loop of the engine ATOM, whose steps have no name in common."""


def engine_steps(capture: Capture) -> Bounds | None:
    """Find vLLM's steps: each begins where it prepares or runs the model, and ends at the next."""
    for text, beside in _ENGINE:
        bounds = _drop_overlapping(_choose_by_text(capture.ranges, [text]))
        if len(bounds.start) > 1 and (not beside or len(_choose_by_text(capture.ranges, [beside]))):
            last = bounds.end[-1:]
            return replace(bounds, origin=f'ranges "{text}"', end=np.append(bounds.start[1:], last))
    return None


_ENGINE = (
    ("gpu_model_runner: preprocess", ""),
    ("gpu_model_runner: forward", ""),
    # vLLM in 2025: plain words, but only vLLM has "Bookkeep"
    ("Preprocess", "Bookkeep"),
    ("Forward", "Bookkeep"),
)
"""Ranges of vLLM around a part of each step, and another one that must exist, too."""


def _choose_by_text(ranges: pa.Table, texts: Sequence[str]) -> pa.Table:
    return _choose_ranges(ranges, partial(pc.is_in, value_set=pa.array(texts)))


def _choose_ranges(ranges: pa.Table, question: Callable[[pa.Array], pa.Array]) -> pa.Table:
    """Times and threads of the ranges with the requested texts."""
    bounds = ranges.select(["start", "end", "thread", "text"])
    if not any(pc.any(question(part.dictionary)).as_py() for part in bounds["text"].chunks):
        return bounds.slice(0, 0)  # the usual case
    return bounds.filter(map_texts(bounds["text"], question))


def _drop_overlapping(ranges: pa.Table) -> Bounds:
    """Bounds of ranges that do not overlap: the busiest thread's outermost ones."""
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
    texts = _to_strings(ranges.column("text").take(pa.array(rows)))
    return Bounds("", start[rows], end[rows], tuple(texts))


def _to_strings(texts: pa.Array | pa.ChunkedArray) -> list[str]:
    """A dictionary's texts as Python strings, which are slow to look up one by one."""
    return list(texts.cast(pa.string()).to_pylist())


def step_ends(capture: Capture) -> Bounds | None:
    """End a step at each `pyprof.step()` of the script; of several threads, the busiest counts.

    The first step begins with the capture: what is before the training loop is best not captured.
    """
    marks = _choose_by_text(capture.ranges, [STEP_END])
    thread, end = (np.asarray(pc.fill_null(marks.column(name), -1)) for name in ("thread", "end"))
    if not len(end):
        return None
    threads, count = np.unique(thread, return_counts=True)
    end = np.sort(end[thread == threads[count.argmax()]].astype(np.int64))
    return Bounds("pyprof.step", np.append(_begin(capture), end[:-1]), end)


def optimizer_ranges(capture: Capture) -> Bounds | None:
    """End steps where the optimizer's ends; of several, take the rarest, then the last.

    A single step has no known beginning: before it the script may have made its model.
    """
    is_step = partial(pc.starts_with, pattern=STEP_OF)
    texts = _choose_ranges(capture.ranges, is_step)
    counts = texts.column("text").value_counts().to_pylist()
    counts = [entry for entry in counts if entry["counts"] > 1]
    rarest = min((entry["counts"] for entry in counts), default=0)
    ends = {
        text: end
        for text in sorted(entry["values"] for entry in counts if entry["counts"] == rarest)
        if len(end := _drop_overlapping(_choose_by_text(texts, [text])).end) > 1
    }
    if not ends:
        return None
    text = max(ends, key=lambda text: int(ends[text][-1]))
    end = ends[text]
    return Bounds(text.partition("#")[0], np.append(_begin(capture), end[:-1]), end)


def _begin(capture: Capture) -> int:
    """The first instant at which the host did anything."""
    firsts = (pc.min(frame.column("start")).as_py() for frame in (capture.calls, capture.ranges))
    return min(int(first) for first in firsts if first is not None)


_FINDERS = (step_ends, iterations, engine_steps, optimizer_ranges)
"""The most reliable ones first."""


def find_marked(
    capture: Capture, records: Records, launch_ns: Int64Array
) -> tuple[Bounds, Int64Array] | None:
    """Find the steps marked by ranges, and each row's step, in the most reliable way that works.

    Steps without GPU work are dropped: a profiler opens a last one when it stops. If no launch is
    known, no range marks a step: the GPU runs work up to a step later than the host launches it.
    """
    if (launch_bounds(records)[0] < 0).all():
        return None
    window = records.numpy("window", 0)
    for find in _FINDERS:
        if (bounds := find(capture)) is None:
            continue
        if find is optimizer_ranges:
            bounds = step_bounds.whole_steps(bounds, records, launch_ns)
        of_row, start = assign_rows(bounds, launch_ns, window)
        count = int(of_row.max(initial=MISSING)) + 1
        if capture.is_truncated:
            count = min(count, _count_whole(records, of_row))
            of_row = np.where(of_row < count, of_row, MISSING)
        if count:
            texts = bounds.texts[:count]
            return Bounds(bounds.origin, start[:count], bounds.end[:count], texts), of_row
    return None


def _count_whole(records: Records, of_row: Int64Array) -> int:
    """Count the steps that a truncated trace holds whole: it lists kernels in order of time.

    The step of the last kernel with a launch is cut, if it is in one. The stream with most kernels
    tells which that is: others may run ahead.
    """
    is_copy = records.of_kind(schema.MEMCPY, schema.MEMSET)
    kernels = np.flatnonzero(~is_copy & (launch_bounds(records)[0] >= 0))
    streams = (records.numpy(name)[kernels] for name in ("stream", "device", "pid"))
    stream = number_combinations(*streams)
    busiest = kernels[stream == np.bincount(stream).argmax()] if len(kernels) else kernels
    steps: list[int] = of_row[busiest].tolist() or [0]
    return max(steps) + 1 if steps[-1] == MISSING else steps[-1]


def launch_times(records: Records) -> Int64Array:
    """When the host launched each row, if known.

    Otherwise at the latest possible time: its start on the GPU, or the next known launch on its
    stream, which keeps the order of launches. On a stream without launches pages of unified memory
    move, for the kernel that runs then: it counts with that.
    """
    begin, _ = launch_bounds(records)
    known = begin >= 0
    if known.all():
        return begin
    start, *streams = (records.numpy(name) for name in ("start", "stream", "device", "pid"))
    order = np.lexsort((start, *streams))
    last = len(order) - 1
    after = np.where(known[order], np.arange(len(order)), last)
    after = order[np.minimum.accumulate(after[::-1])[::-1]]
    same = np.all([each[after] == each[order] for each in streams], axis=0) & known[after]
    latest = start.copy()
    latest[order] = np.where(same, np.minimum(start[order], begin[after]), start[order])
    stream = number_combinations(*streams)
    alone = ~np.isin(stream, stream[known])
    if alone.any():
        device = number_combinations(*streams[1:])
        running = latest_before(device[known], start[known], device[alone], start[alone])
        called = np.append(begin[known], MISSING)[running]
        latest[alone] = np.where(called == MISSING, latest[alone], called)
    return np.where(known, begin, latest)


MAX_PROCESSES = 256
"""Maximum number of processes whose steps are looked for, those with most rows."""


_NEEDED = (
    *("kind", "dir", "kLongName", "start", "end", "pid", "device", "stream", "window", "replay"),
    *("launch", "grid", "sizes", "trace", "layer", "step", "stepRange"),
)


def keep_needed(records: Records) -> Records:
    """Keep only the columns that finding steps needs."""
    return Records(
        records.rows, {name: records.columns[name] for name in _NEEDED if name in records.columns}
    )


def processes(records: Records) -> Int64Array:
    """Process of each row; the busiest process if unknown."""
    pid = records.numpy("pid")
    is_known = pid != MISSING
    if is_known.all():
        return pid
    known_pids = pid[is_known]
    if not len(known_pids):
        return np.zeros_like(pid)
    numbers, index = np.unique(known_pids, return_inverse=True)
    return np.where(is_known, pid, numbers[np.bincount(index).argmax()])


def select_process(capture: Capture, pid: int) -> Capture:
    """Keep only the ranges and calls of one process."""
    of_thread = pc.fill_null(pc.equal(capture.threads.column("pid"), pid), fill_value=False)
    mine = np.append(np.asarray(of_thread), np.False_)
    ranges, calls = (
        table.filter(pa.array(mine[np.asarray(pc.fill_null(table.column("thread"), -1))]))
        for table in (capture.ranges, capture.calls)
    )
    return replace(capture, ranges=ranges, calls=calls)


def columns(records: Records, capture: Capture) -> dict[str, Column]:
    """The columns of each row's step and the text of its range; {} without steps."""
    if "start" not in records.columns or not records.rows:
        return {}
    launch_ns = launch_times(records)
    step, text = np.full(records.rows, MISSING), np.full(records.rows, MISSING, np.int32)
    texts: dict[str, int] = {}
    for process, rows in _busiest(processes(records)):
        bounds_and_steps = (
            find_marked(capture, records, launch_ns)
            if process is None
            else find_marked(
                select_process(capture, process), keep_needed(records).take(rows), launch_ns[rows]
            )
        )
        if bounds_and_steps is None:
            continue
        bounds, step[rows] = bounds_and_steps
        every = bounds.texts or (bounds.origin,) * len(bounds.start)
        number = np.array(
            [*(texts.setdefault(one, len(texts)) for one in every), MISSING], np.int32
        )
        text[rows] = number[step[rows]]
    if not texts:
        return {}
    return {
        "step": or_null(step),
        "stepRange": DictionaryColumn(text, [*texts]),
    }


def _busiest(pid: Int64Array) -> Iterator[tuple[int | None, Int64Array]]:
    """The processes with most rows, with those rows; None for the only one."""
    if pid.min() == pid.max():
        yield None, np.arange(len(pid))
        return
    numbers, index = np.unique(pid, return_inverse=True)
    for process in np.argsort(-np.bincount(index), kind="stable")[:MAX_PROCESSES].tolist():
        yield int(numbers[process]), np.flatnonzero(index == process)


_HIGHEST = 1 << 20
"""Limit of the step numbers in a file of fewer rows: a damaged one must not exhaust memory."""


def of_records(records: Records, launch_ns: Int64Array) -> tuple[Bounds, Int64Array] | None:
    """The steps that parse found, and each row's; None if it found none.

    A step begins and ends with the launches of its rows; one without rows begins and ends where the
    last one ended.
    """
    if "step" not in records.columns:
        return None
    of_row = records.numpy("step", MISSING)
    of_row = np.where((of_row >= 0) & (of_row < max(_HIGHEST, records.rows)), of_row, MISSING)
    rows = np.flatnonzero(of_row != MISSING)
    if not len(rows):
        return None
    count = int(of_row[rows].max()) + 1
    end = np.full(count, np.iinfo(np.int64).min)
    np.maximum.at(end, of_row[rows], launch_ns[rows] + 1)
    start = np.full(count, np.iinfo(np.int64).max)
    np.minimum.at(start, of_row[rows], launch_ns[rows])
    end = np.maximum.accumulate(np.maximum(end, launch_ns[rows].min()))
    start = np.where(start == np.iinfo(np.int64).max, end, start)
    named = records.dictionary("stepRange")
    texts = [""] * count
    for number, text in zip(of_row[rows].tolist(), named.index[rows].tolist(), strict=True):
        texts[number] = named.values[text] if text >= 0 else texts[number]
    # what marks the steps, by the text of the last step that has one
    text = next(filter(None, reversed(texts)), "")
    is_origin = text == STEP_END or text.startswith("Optimizer.")
    origin = text if is_origin else f'ranges "{loop_of(text)}"'
    return Bounds(origin, start, end, tuple(texts)), of_row
