"""Sampled metrics of devices, as counters of the rows that ran meanwhile.

Equal rows (same kernel, launch, op and shapes, on one device) are one kind of work, whose samples
are combined: most kernels are shorter than the time between two samples. A row that is much longer,
and alone, has the value of its own samples. Clock and power are not the kernel's own: if their
level changes during the capture, samples of equal rows are combined only between changes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from pyprof.arrays import MISSING, ints
from pyprof.parse.counters import sample_regression
from pyprof.parse.counters.counters_json import STATES, join_counters
from pyprof.records.records import DictionaryColumn, Records, combinations, number_combinations

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyprof.arrays import Floats, Int64Array
    from pyprof.parse.counters.sample_regression import Estimate, Samples, Shares
    from pyprof.records.records import Column
    from pyprof.schema import Capture

_KIND = ("kLongName", "grid", "block", "mod", "op", "fwdOp", "sizes", "dtypes", "marker")
"""What equal rows have in common."""
_RATES = ("dram_pct", "tensor_pct")
"""Shares of a peak that every kind of work adds to; `STATES` do not depend on the work."""
_MAX_ERROR_PCT = 10.0
"""As a share of a peak: an estimate that may be further off is dropped."""
_MAX_ERROR = 0.1
"""The same for a state, as a share of it."""


def counters(capture: Capture, columns: Mapping[str, Column]) -> dict[str, Column]:
    """Add the sampled metrics to the `counters` column; the capture has at least one sample."""
    device, start, end = (_times(columns[name]) for name in ("device", "start", "end"))
    # what rows have in common: kernel, launch, op and shapes, and the device
    records = Records(len(device), columns)
    codes = [records.dictionary(name).index for name in _KIND if name in columns]
    kind = number_combinations(device, *codes).astype(np.int64)
    count = int(kind.max(initial=MISSING)) + 1
    of_kinds: list[dict[str, float]] = [{} for _ in range(count)]
    for number in pc.unique(capture.samples.column("device")).to_pylist():
        rows = np.flatnonzero((device == number) & (start != MISSING) & (end != MISSING))
        work = _Work(start[rows], end[rows], kind[rows], count)
        own: dict[int, dict[str, float]] = {}
        taken = _read_metrics(capture, number)
        for name, samples, estimate in _estimates(taken, work):
            _note(of_kinds, name, estimate)
            _add_long(own, name, samples, work)
        in_phases, entries = _states_in_phases(taken, work)
        if entries:
            kind[rows] = len(of_kinds) + in_phases
            of_kinds += [{**of_kinds[each], **states} for each, states in entries]
        for row, counted in own.items():
            of_kinds.append({**of_kinds[kind[rows[row]]], **counted})
            kind[rows[row]] = len(of_kinds) - 1
    texts = [orjson.dumps({"source": "samples", **each}).decode() if each else None
             for each in of_kinds]  # fmt: skip
    index = np.where(np.array([text is not None for text in texts], bool)[kind], kind, MISSING)
    sampled, of_events = DictionaryColumn(index, texts), columns.get("counters")
    both = join_counters(sampled, of_events) if isinstance(of_events, DictionaryColumn) else sampled
    return {"counters": both}


def _times(column: Column) -> Int64Array:
    return column.index.astype(np.int64) if isinstance(column, DictionaryColumn) else ints(column)


def _read_metrics(capture: Capture, device: int) -> dict[str, tuple[Int64Array, Floats]]:
    """Times and values of each metric, without duplicates; DRAM reads and writes are summed.

    Several of a chip's metrics may map to one of ours, such as the clocks of GPC and SM.
    """
    rows = capture.samples.filter(pc.equal(capture.samples.column("device"), device))
    taken = {}
    for metric in pc.unique(rows.column("metric").cast(pa.string())).to_pylist():
        chosen = rows.filter(pc.equal(rows.column("metric").cast(pa.string()), metric))
        time, first = np.unique(ints(chosen.column("time")), return_index=True)
        taken[metric] = (time, chosen.column("value").to_numpy()[first])
    parts = [taken[name] for name in ("dram_read_pct", "dram_write_pct") if name in taken]
    if "dram_pct" not in taken and len(parts) == len(("read", "write")):
        (time, read), (other, write) = parts
        both, one, two = np.intersect1d(time, other, return_indices=True)
        taken["dram_pct"] = (both, read[one] + write[two])
    return taken


class _Work(NamedTuple):
    """The rows of a device that have a time."""

    start: Int64Array
    end: Int64Array
    kind: Int64Array
    kinds: int
    """Number of kinds."""


def _estimates(
    taken: Mapping[str, tuple[Int64Array, Floats]], work: _Work
) -> Iterator[tuple[str, Samples, Estimate]]:
    shared: tuple[Int64Array, Shares] | None = None
    for name in (*_RATES, *STATES):
        if name not in taken:
            continue
        samples = sample_regression.samples(*taken[name])
        if not len(samples.end):
            continue
        if shared is None or not np.array_equal(shared[0], samples.end):  # most times are the same
            shared = samples.end, sample_regression.shares(samples, *work)
        if name in STATES:
            estimate = sample_regression.states(samples.value, shared[1])
        else:
            rounded = _is_rounded(samples)
            estimate = sample_regression.rates(samples.value, shared[1], whole_numbers=rounded)
        yield name, samples, estimate


def _states_in_phases(
    taken: Mapping[str, tuple[Int64Array, Floats]], work: _Work
) -> tuple[Int64Array, list[tuple[int, dict[str, float]]]]:
    """Split kinds of work by phases of the device's states; empty if there is only one phase.

    Returns the part of each row, and the kind and states of each part. Parts with too few samples
    have the mean of all work in the phase.
    """
    states = {name: sample_regression.samples(*taken[name]) for name in STATES if name in taken}
    cuts = np.unique(
        np.concatenate(
            [np.zeros(0, np.int64)]
            + [each.start[sample_regression.phases(each.value)[1:]] for each in states.values()]
        )
    )
    if not len(cuts):
        return np.zeros(0, np.int64), []
    phase = np.searchsorted(cuts, (work.start + work.end) // 2, "right")
    first, numbers = combinations(work.kind, phase)
    part = numbers.astype(np.int64)
    of_phases: list[dict[str, float]] = [{} for _ in range(len(cuts) + 1)]
    of_parts: list[dict[str, float]] = [{} for _ in range(len(first))]
    for name, samples in states.items():
        for entries, number in ((of_phases, phase), (of_parts, part)):
            if len(samples.end):
                of_kinds = sample_regression.shares(
                    samples, work.start, work.end, number, len(entries)
                )
                _note(entries, name, sample_regression.states(samples.value, of_kinds))
    rows = first.tolist()
    return part, [
        (int(work.kind[row]), {**of_phases[phase[row]], **entry})
        for row, entry in zip(rows, of_parts, strict=True)
    ]


def _is_rounded(samples: Samples) -> bool:
    return bool((samples.value == np.rint(samples.value)).all())


def _add_long(own: dict[int, dict[str, float]], name: str, samples: Samples, work: _Work) -> None:
    """Add the means of rows long enough to have samples of their own: calls of an op may differ."""
    rows = sample_regression.long_rows(samples, work.start, work.end)
    rounded = name in _RATES and _is_rounded(samples)
    estimate = sample_regression.within(
        samples, work.start[rows], work.end[rows], whole_numbers=rounded
    )
    counted: list[dict[str, float]] = [{} for _ in range(len(rows))]
    _note(counted, name, estimate)
    for row, entry in zip(rows.tolist(), counted, strict=True):
        if entry:
            own.setdefault(row, {}).update(entry)


def _note(entries: list[dict[str, float]], name: str, estimate: Estimate) -> None:
    """Note estimates that are accurate enough; a value up to three errors below 0 counts as 0."""
    most = _MAX_ERROR * estimate.value if name in STATES else _MAX_ERROR_PCT
    possible = (estimate.error <= most) & (estimate.value >= -3 * estimate.error)
    for index in np.flatnonzero(possible).tolist():
        entries[index] |= {
            name: max(round(float(estimate.value[index]), 4), 0.0),
            f"{name}_err": round(float(estimate.error[index]), 4),
            "samples": round(float(estimate.samples[index]), 1),
        }
