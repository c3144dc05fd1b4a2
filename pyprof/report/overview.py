"""What `pyprof summary` says, as data: made once, shown by the terminal and by pages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pyprof.freed import give_back
from pyprof.prof.known import Known, known
from pyprof.report.advice import Advice, advise
from pyprof.report.steps import Steps, steps
from pyprof.report.steps_option import bounds
from pyprof.report.timeline import Timeline, timeline
from pyprof.report.topops import OpTotals, top_ops

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from pyprof.prof.table import Table
    from pyprof.report.source import Source

_PHASES = ("fprop", "bprop", "optim", "comm", "copy")


@dataclass(frozen=True, slots=True)
class Overview:
    """A capture in brief. Times in ns."""

    gpus: tuple[str | None, ...]
    """Name of each GPU used, once; None for one that the capture does not name."""
    peaks: tuple[str, ...]
    """The peaks that rows are measured against, those of most time first."""
    rows: NDArray[np.bool_] | None
    """The rows of the chosen steps; None for all rows."""
    chosen: tuple[int, int] | None
    """The chosen steps: the first, and the one after the last."""
    steps: Steps
    timeline: Timeline | None
    """None where the records hold no times."""
    phases: Mapping[str, int]
    """Summed GPU time by part of the step; "" where nothing says. Adds up to all rows'."""
    known: Known
    ops: list[OpTotals]
    advice: list[Advice]


def overview(source: Source, chosen: str | None = None) -> Overview:
    """Analyse a capture, or the steps of it that `chosen` (`3:`) names.

    Raises click.BadParameter where it names none.
    """
    table = source.table
    found = steps(table.records, source.capture)
    picked = bounds(found, chosen)
    rows = found.rows(picked)
    timed = timeline(table.records, source.capture, rows)
    ops = top_ops(table, rows, per_step(table, found, picked))
    give_back()
    return Overview(
        gpus=gpus(source),
        peaks=_peaks(source.table, rows),
        rows=rows,
        chosen=picked,
        steps=found,
        timeline=timed,
        phases=_phases(source, rows),
        known=known(table, rows),
        ops=ops,
        advice=advise(table, timed, source.capture, rows),
    )


def per_step(
    table: Table, found: Steps, chosen: tuple[int, int] | None
) -> NDArray[np.float64] | None:
    """Give what each row adds to the mean time in a step, ns; None where no steps are known.

    A step is one of those chosen, else of those after warm-up; what runs in no such step adds
    nothing.
    """
    averaged = chosen or found.steady
    if averaged is None:
        return None
    inside = np.asarray(found.rows(averaged))
    return np.where(inside, table.duration_ns / (averaged[1] - averaged[0]), 0.0)


def gpus(source: Source) -> tuple[str | None, ...]:
    """Name the GPUs that the rows ran on, each once."""
    name = source.table.records.coded("gpu")
    values = [*name.values, None]
    return tuple(dict.fromkeys(values[place] for place in np.unique(name.index).tolist()))


def _peaks(table: Table, rows: NDArray[np.bool_] | None) -> tuple[str, ...]:
    """Name the peaks and their values, those of most time first."""
    chosen = np.ones(table.records.rows, bool) if rows is None else rows
    number, judged = table.judged
    time = np.bincount(number[chosen], table.duration_ns[chosen].astype(float), len(judged))
    found: dict[str, float] = {}
    for place in np.argsort(-time, kind="stable").tolist():
        flops, memory = judged[place].flops_peak, judged[place].bandwidth_peak
        if flops is not None and time[place]:
            found[f"{_spelt(flops.value / 1e12, 4)} TFLOP/s ({flops.label})"] = time[place]
        if memory is not None:
            found[f"{_spelt(memory.value / 1e9, 5)} GB/s ({memory.label})"] = np.inf
    return tuple(sorted(found, key=lambda label: -found[label])[:MOST_PEAKS])


def _spelt(rate: float, digits: int) -> str:
    return f"{rate:,.{digits}g}" if rate < 10**digits else f"{rate:,.0f}"


MOST_PEAKS = 4
"""As many are named."""


def _phases(source: Source, rows: NDArray[np.bool_] | None) -> Mapping[str, int]:
    part = source.table.records.coded("dir")
    ns = source.table.duration_ns
    chosen = np.ones(len(ns), bool) if rows is None else rows
    known = np.array([*(value or "" for value in part.values), ""])[part.index]
    total = {name: int(ns[chosen & (known == name)].sum()) for name in (*_PHASES, "")}
    return {name: value for name, value in total.items() if value}
