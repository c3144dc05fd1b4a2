"""The steps of a training or inference loop: where each begins, and which rows are its.

Found from the ranges that mark them, in the capture or else in the records, else from the
optimizer's rows, else from the kernels' own repetition.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial, reduce
from typing import TYPE_CHECKING

import click
import numpy as np

from pyprof import schema
from pyprof.analysis.time.repetition import repetition
from pyprof.analysis.time.timeline import recorded
from pyprof.answers.summary_answer import MIN_COVERED
from pyprof.arrays import MISSING
from pyprof.marker import ServingStep, serving_step
from pyprof.parse.steps.loop_steps import (
    MAX_PROCESSES,
    find_marked,
    keep_needed,
    launch_times,
    of_records,
    processes,
    select_process,
)
from pyprof.parse.steps.step_bounds import Bounds, assign_rows, whole_steps

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from pyprof.arrays import Int64Array, Mask
    from pyprof.inputs.source import Source
    from pyprof.records.records import Records
    from pyprof.schema import Capture


def optimizer_rows(records: Records, launch_ns: Int64Array) -> Bounds | None:
    """Find the steps that end with the last launch of each run of the optimizer's rows.

    Runs without a backward pass between them belong to one step: clipping, updates, averages.
    """
    part = records.dictionary("dir")
    rows = np.flatnonzero(records.of_kind(schema.KERNEL))
    rows = rows[np.argsort(launch_ns[rows], kind="stable")]
    inside = part.is_in("optim")[rows]
    backward = part.is_in("bprop")
    last = np.flatnonzero(inside & ~np.append(inside[1:], False))
    if backward.any():
        passes = np.cumsum(backward[rows])[last]
        last = last[np.append(np.diff(passes) > 0, True)] if len(last) else last
    if len(last) < 2:  # noqa: PLR2004 - a single one shows no period
        return None
    end = launch_ns[rows[last]] + 1
    runs = Bounds("Optimizer.step", np.append(int(launch_ns.min()), end[:-1]), end)
    return whole_steps(runs, records, launch_ns)


_WARM_UP = 1.5
"""A leading step that takes this many times the median is warm-up, unless others take as long."""
_NEARLY_ALL, _SPREAD = 0.9, 1.1
"""It takes this many times as long as this share of the later steps; a stall may take longer."""
_KINDS = ("", "repetition", "Optimizer.step", "ranges", "pyprof.step")
"""The first words of `origin`, the surest last."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Steps:
    """The steps that were found. Times in ns on the capture's clock."""

    origin: str
    """What steps were found from, for people: `pyprof.step`, `ranges "step N"`, `Optimizer.step`,
    `repetition of 118 kernels`; "" without steps."""
    start_ns: Int64Array
    """When the host began each step; for repetition, when it launched the first row."""
    end_ns: Int64Array
    duration_ns: Int64Array
    """From the GPU's last end in the step before (for the first of a window: its first start) to
    that in this one; the host, which runs ahead, may take less. Without rows, the host's time."""
    wait_ns: Int64Array = field(default_factory=lambda: np.zeros(0, np.int64))
    """The part of `duration_ns` before the host began the step: a serving engine without requests
    waits for one."""
    of_row: Int64Array
    """The step of each row; MISSING if it is in none."""
    stated: tuple[ServingStep, ...] = ()
    """What a serving engine's range states about each step; () without such ranges."""
    inside_ns: int = 0
    """Summed GPU time of the rows in steps; `all_ns` is that of all rows."""
    all_ns: int = 0

    @property
    def guessed(self) -> bool:
        """Whether steps are inferred from repeated kernels alone: they may be layers of one."""
        return self.kind == "repetition"

    @property
    def covered(self) -> float:
        """Share of the summed GPU time that is in steps."""
        return self.inside_ns / self.all_ns if self.all_ns else 0.0

    @property
    def certainty(self) -> tuple[bool, int]:
        """Sort key of how sure the steps are; those without means per step are lowest."""
        return self.averaged is not None, _KINDS.index(self.kind) if self.kind in _KINDS else 0

    def __len__(self) -> int:
        return len(self.start_ns)

    @property
    def kind(self) -> str:
        """The origin, without what differs between two processes."""
        return self.origin.partition(" ")[0]

    def rows(self, chosen: tuple[int, int] | None) -> NDArray[np.bool_] | None:
        """Mask of the rows in the chosen steps; None, which stands for all rows, for None."""
        if chosen is None:
            return None
        return np.asarray((self.of_row >= chosen[0]) & (self.of_row < chosen[1]))

    @property
    def warm_up(self) -> int:
        """Count the leading steps that take much longer than the median; at most half of all.

        Not those that take as long as later ones do, such as large batches among small ones. A
        serving engine's steps are compared with those of their phase: a prefill is no slow decode.
        """
        if not len(self):
            return 0
        took = self.duration_ns
        phase = np.array([step.phase for step in self.stated] or [""] * len(self))
        slow = np.zeros(len(self), bool)
        for name in np.unique(phase):
            slow[phase == name] = took[phase == name] > _WARM_UP * np.median(took[phase == name])
        leading = min(int(np.argmin(slow)), len(self) // 2)  # a median itself is not slow
        longer = np.zeros(leading + 1, bool)
        for name in np.unique(phase[:leading]):
            later = took[leading:][phase[leading:] == name]
            usual = _SPREAD * np.quantile(later, _NEARLY_ALL, method="higher")
            longer[:leading] |= (phase[:leading] == name) & (took[:leading] > usual)
        return int(np.argmin(longer))

    @property
    def steady(self) -> tuple[int, int] | None:
        """The steps after warm-up, the first and the one after the last; None without steps."""
        return (self.warm_up, len(self)) if len(self) else None

    @property
    def averaged(self) -> tuple[int, int] | None:
        """The steps over which times per step are averaged, unless others are chosen.

        None for guessed steps that explain little of the time: they are not those of the loop, and
        nearly all work would take 0 ms a step.
        """
        explains_little = self.inside_ns < MIN_COVERED * self.all_ns
        return None if self.guessed and explains_little else self.steady

    def mean_ns(self, chosen: tuple[int, int]) -> float:
        """Return the mean duration of the chosen steps, ns."""
        return float(np.mean(self.duration_ns[chosen[0] : chosen[1]]))

    @property
    def median_ns(self) -> float | None:
        """The median step after warm-up; None if there are no steps."""
        return float(np.median(self.duration_ns[self.warm_up :])) if len(self) else None


def without_rows(steps: Steps) -> Steps:
    """Drop the step of each row."""
    return replace(steps, of_row=np.zeros(0, np.int64))


def chosen_bounds(count: int, text: str | None) -> tuple[int, int] | None:
    """Read `3:`, `3:7`, `:7`, `-2:` or `3` as the first step and the one after the last.

    None if `--steps` is not given. Raises click.BadParameter, with what to write instead, if it
    names none of `count` steps.
    """
    if text is None:
        return None
    wrong = partial(click.BadParameter, param_hint="'--steps'")
    if not count:
        raise wrong("no steps were found; call pyprof.annotate('step') around each")
    first, colon, last = text.partition(":")
    try:
        low = int(first) if first or not colon else 0
        high = (int(last) if last else count) if colon else low + 1 or count
    except ValueError:
        raise wrong(f"{text!r} is not a range of steps; write 3: or 3:7 or 3") from None
    low, high, _ = slice(low, high).indices(count)
    if low >= high:
        raise wrong(f"no step in {text!r}; there are {count}, counted from 0")
    return low, high


def chosen_rows(source: Source, text: str | None) -> Mask | None:
    """Find the rows of the steps that `--steps` names; None, for all, where it is not given."""
    if text is None:
        return None
    capture_steps = find_steps(source.table.records, source.capture)
    return capture_steps.rows(chosen_bounds(len(capture_steps), text))


def find_steps(records: Records, capture: Capture | None = None) -> Steps:
    """Find the steps; of length 0 if nothing marks or suggests any.

    Each process steps on its own, on its own host's clock; its nth step is the nth of all.
    """
    if "start" not in records.columns or not records.rows:
        return _none(records.rows)
    launch_ns = launch_times(records)
    pid = processes(records)
    numbers, count = np.unique(pid, return_counts=True)
    if len(numbers) == 1:
        return _of_process(records, capture, launch_ns)
    steps_of_process = []
    for number in numbers[np.argsort(-count, kind="stable")][:MAX_PROCESSES].tolist():
        rows = np.flatnonzero(pid == number)
        theirs = select_process(capture, number) if capture is not None else None
        steps = _of_process(keep_needed(records).take(rows), theirs, launch_ns[rows])
        steps_of_process.append((rows, steps))
    joined = reduce(merge_steps, (steps for _, steps in steps_of_process))
    of_row = np.full(records.rows, MISSING)
    for rows, steps in steps_of_process:
        if steps.certainty == joined.certainty:
            of_row[rows] = steps.of_row
    return replace(joined, of_row=of_row)


def _of_process(records: Records, capture: Capture | None, launch_ns: Int64Array) -> Steps:
    for bounds, of_row in _marked_steps(records, capture, launch_ns):
        if not _warm_up_graph(records, bounds, of_row):
            return _measured(records, bounds, of_row)
    if (repeated := repetition(records, launch_ns)) is not None:
        return _measured(records, *_place(records, Bounds(*repeated), launch_ns))
    return _none(records.rows)


def _marked_steps(
    records: Records, capture: Capture | None, launch_ns: Int64Array
) -> Iterator[tuple[Bounds, Int64Array]]:
    """Yield steps and the step of each row, by what marks them, the surest first."""
    if capture is not None and (steps := find_marked(capture, records, launch_ns)) is not None:
        yield steps
    if (parsed := of_records(records, launch_ns)) is not None:
        yield parsed
    if (boundaries := optimizer_rows(records, launch_ns)) is not None:
        yield _place(records, boundaries, launch_ns)


def _warm_up_graph(records: Records, bounds: Bounds, of_row: Int64Array) -> bool:
    """Whether an optimizer's steps only precede replays of a CUDA graph, which take most time.

    Such replays are whole steps, in which Python calls no optimizer; unlike those of an evaluation,
    they have its kernels.
    """
    if not bounds.origin.startswith("Optimizer."):
        return False
    ns = records.numpy("end") - records.numpy("start")
    is_graph = records.of_kind(schema.GRAPH)
    later = (is_graph | (records.numpy("replay") >= 0)) & (of_row == MISSING)
    kernel = records.dictionary("kLongName").index
    updates = np.isin(kernel, kernel[records.dictionary("dir").is_in("optim") & ~later])
    return bool(2 * ns[later].sum() > ns.sum() and (later & (is_graph | updates)).any())


def merge_steps(a: Steps, b: Steps) -> Steps:
    """Merge the steps of two processes, the same in either order; the result has no rows.

    Each step takes as long as in the slower process. If the steps are of different kinds, as of a
    training and an evaluation beside it, only the surer kind counts.
    """
    # of steps that are otherwise equal, the longest loop's bounds are kept
    first, second = sorted(
        (a, b),
        key=lambda steps: (
            steps.certainty, len(steps), steps.origin, repr(steps.stated),
            steps.start_ns.tolist(), steps.end_ns.tolist(),
        ),
        reverse=True,
    )  # fmt: skip
    if first.certainty != second.certainty:
        return without_rows(first)
    duration = first.duration_ns.copy()
    both = len(second)
    duration[:both] = np.maximum(duration[:both], second.duration_ns)
    wait = first.wait_ns.copy()
    wait[:both] = np.minimum(wait[:both], second.wait_ns)
    return replace(
        without_rows(first),
        duration_ns=duration,
        wait_ns=wait,
        inside_ns=a.inside_ns + b.inside_ns,
        all_ns=a.all_ns + b.all_ns,
    )


def drop_unlikely(steps: Steps) -> Steps:
    """Drop all steps if they are only a guess that explains little of the time."""
    return steps if steps.averaged else _none(len(steps.of_row))


def _none(rows: int) -> Steps:
    nothing = np.zeros(0, np.int64)
    return Steps(
        origin="",
        start_ns=nothing,
        end_ns=nothing,
        duration_ns=nothing,
        of_row=np.full(rows, MISSING),
    )


def _place(records: Records, bounds: Bounds, launch_ns: Int64Array) -> tuple[Bounds, Int64Array]:
    of_row, start = assign_rows(bounds, launch_ns, records.numpy("window", 0))
    return replace(bounds, start=start), of_row


def _measured(records: Records, bounds: Bounds, of_row: Int64Array) -> Steps:
    duration, wait = on_gpu(records, of_row, bounds.start, bounds.end)
    row_ns = records.numpy("end") - records.numpy("start")
    stated = [serving_step(text) for text in bounds.texts]
    return Steps(
        origin=bounds.origin,
        start_ns=bounds.start,
        end_ns=bounds.end,
        duration_ns=duration,
        wait_ns=wait,
        of_row=of_row,
        stated=tuple(step or ServingStep("") for step in stated) if any(stated) else (),
        inside_ns=int(row_ns[of_row != MISSING].sum()),
        all_ns=int(row_ns.sum()),
    )


def on_gpu(
    records: Records, of_row: Int64Array, start: Int64Array, end: Int64Array
) -> tuple[Int64Array, Int64Array]:
    """Measure each step on the GPU, from the end of the previous one to its own, without pauses.

    And the part of it before the host began the step.
    """
    bounds = bounds_on_gpu(records, of_row, len(start))
    if bounds is None:
        return end - start, 0 * start
    inside = of_row != MISSING
    times = [records.numpy(name, 0)[inside] for name in ("window", "start", "end")]
    paused = recorded(np.ones(len(times[0]), bool), *times).paused
    before, after = bounds[:-1], bounds[1:]
    begun = np.clip(start, before, after)
    duration, wait = (to - before - paused.length_within(before, to) for to in (after, begun))
    return duration, wait


def bounds_on_gpu(records: Records, of_row: Int64Array, count: int) -> Int64Array | None:
    """Return the first start of `count` steps, then each one's end; None without rows."""
    inside = of_row != MISSING
    if not inside.any():
        return None
    finished = np.maximum.accumulate(last_ends(records, of_row, count))
    first_step = of_row.min(initial=count, where=inside)
    first_row = int(records.numpy("start")[of_row == first_step].min())
    return np.append(first_row, np.maximum(finished, first_row))


def _outlasting(records: Records, of_row: Int64Array, count: int) -> Mask:
    """Mark copies that still run beside kernels of a later step; none if most steps have such.

    What most steps copy, as their results, may take longer than their kernels.
    """
    start, copies = records.numpy("start"), records.of_kind(schema.MEMCPY)
    begun = np.full(count + 1, np.iinfo(np.int64).max)
    kernels = (of_row != MISSING) & ~copies
    np.minimum.at(begun, of_row[kernels], start[kernels])
    later = np.minimum.accumulate(begun[::-1])[::-1]
    beside = (of_row != MISSING) & copies & (records.numpy("end") > later[of_row + 1])
    usual = 2 * len(np.unique(of_row[beside])) > count
    return np.asarray(beside & (not usual))


def last_ends(records: Records, of_row: Int64Array, count: int) -> Int64Array:
    """Return the end of each of `count` steps' last row; the least integer without rows.

    Copies that outlast their step, as those of a checkpoint may, do not end it.
    """
    ended = np.full(count, np.iinfo(np.int64).min)
    inside = (of_row != MISSING) & ~_outlasting(records, of_row, count)
    np.maximum.at(ended, of_row[inside], records.numpy("end")[inside])
    return ended
