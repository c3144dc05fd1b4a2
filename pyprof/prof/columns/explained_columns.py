"""Columns that explain others: idle time, queueing, peaks and reasons."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyprof import schema
from pyprof.arrays import or_null
from pyprof.gpu.eligible import FAMILIES, eligible
from pyprof.parse.launches import launch_bounds
from pyprof.prof.calls.attributed_call import family
from pyprof.records.records import DictionaryColumn, combinations

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyprof.arrays import Mask
    from pyprof.prof.table import KernelClass, Table
    from pyprof.records.records import Records


def idle_before(records: Records) -> pa.Array:
    """Idle time of the device before each row, as left by the row's own process, ns.

    Null for the first row of a process on a device, in each window of the capture.
    """
    if "start" not in records.columns:
        return pa.nulls(records.rows, pa.int64())
    start, end = records.numpy("start"), records.numpy("end")
    gap = np.full(records.rows, -1)
    # Two processes may share a device or each call another one device 0: keep them separate.
    keys = [records.numpy(name) for name in ("window", "device", "pid")]
    order = np.lexsort((start, *keys))
    changed = np.any([np.diff(key[order]) != 0 for key in keys], axis=0)
    for rows in np.split(order, np.flatnonzero(changed) + 1):
        busy_until = np.maximum.accumulate(end[rows])
        gap[rows[1:]] = np.maximum(start[rows[1:]] - busy_until[:-1], 0)
    return pa.array(gap, mask=(gap < 0) | np.asarray(records.arrow("start").is_null()))


def queued(records: Records) -> pa.Array:
    """Time from each row's launching call to its start, ns; null without a call."""
    called, _ = launch_bounds(records)
    return pc.subtract(records.arrow("start"), or_null(called))


def peaks(table: Table) -> pa.Array:
    """Name the peak of each row that limits it: of FLOP/s or of bandwidth."""
    classified = table.classified
    flops = [_label(entry.flops_peak) for entry in classified.values]
    memory = [_label(entry.bandwidth_peak) for entry in classified.values]
    number = classified.index.astype(np.int64)
    nearer = np.where(table.roofline.compute, number, len(flops) + number)
    placed = np.isfinite(table.roofline.share)
    return DictionaryColumn(np.where(placed, nearer, -1), [*flops, *memory]).dictionary_array()


def _label(rate: object) -> str | None:
    return getattr(rate, "label", None)


def reasons(table: Table) -> pa.Array:
    """Say why a row's time or cost is not known; else how its Tensor Core use was decided.

    For a row that ran faster than its device can, a possible cause comes first.
    """
    costs = table.costs
    reason = _first_text(
        _text_of_rows(~table.timed, _UNTIMED),
        _text_of_rows(costs.autotuning, _AUTOTUNING),
        _text_of_rows(costs.helper, "helper: serves the op's other kernels"),
        costs.reason,
        costs.via,
        _why_no_tensor_cores(table),
        table.classified.map(_verdict),
    )
    above = above_peak(table)
    first, both = combinations(above.index, reason.index)
    pairs = [(above.at(row), reason.at(row)) for row in first.tolist()]
    joined = ["; ".join(text for text in pair if text) for pair in pairs]
    return DictionaryColumn(both, [text or None for text in joined]).dictionary_array()


def _text_of_rows(rows: Mask, text: str) -> DictionaryColumn:
    return DictionaryColumn(np.where(rows, 0, -1), [text])


def _first_text(*columns: DictionaryColumn) -> DictionaryColumn:
    """For each row, the text of the first column that has one."""
    index = np.full(len(columns[0]), -1)
    values: list[str | None] = []
    for column in reversed(columns):
        index = np.where(column.matches(), len(values) + column.index, index)
        values += column.values
    return DictionaryColumn(index, values)


def above_peak(table: Table, share: float = 1) -> DictionaryColumn:
    """Say what may be wrong with rows above a share of their roof; null for the others."""
    rates = table.roofline
    fills = table.records.of_kind(schema.MEMSET)
    # rows of op calls that transform their data to multiply less often
    call = table.costs.call
    transforms = table.records.dictionary("kLongName").matches(
        lambda name: _TRANSFORMS.search(name) is not None
    )
    chosen = [fills, rates.compute & np.isin(call, call[transforms]), rates.compute]
    cause = np.select(chosen, [0, 1, 2], 3)
    return DictionaryColumn(np.where(rates.share > share, cause, -1), [*_ABOVE])


_TRANSFORMS = re.compile(r"winograd|Sp3AsmConv|fft\dd_|fft_[rc]2[rc]", re.IGNORECASE)

_UNTIMED = "no time: none is recorded, or an impossible one"
_AUTOTUNING = "trial: cuDNN's benchmark tried it and chose another, which ran after it"

ABOVE = "above peak: "
_ABOVE = (
    f"{ABOVE}fills can be compressed in memory, or go on after the recorded time",
    f"{ABOVE}by Winograd or FFT, which needs fewer FLOPs than the counted definition",
    f"{ABOVE}its FLOPs, its type or the clock is not what it seems",
    f"{ABOVE}faster than DRAM: its data was in cache, or its bytes are overestimated",
)
"""In the order of the conditions in `above_peak`; the last if none holds."""


def _verdict(judgement: KernelClass) -> str | None:
    if judgement.over_link:
        return "link: limited by PCIe or NVLink, whose speed is not in the capture"
    return judgement.tc.rule if judgement.tc.value != "-" else None


def _why_no_tensor_cores(table: Table) -> DictionaryColumn:
    """Say why matrix products ran without Tensor Cores, or slower than they could."""
    costs, classified = table.costs, table.classified
    first, index = combinations(costs.params.index, classified.index)
    gpu = table.records.dictionary("gpu")
    reasons = []
    for row in first.tolist():
        kind, judgement = family(costs.work.at(row)), classified.at(row)
        reason = None
        if kind in FAMILIES and judgement.tc.value != "-":
            sizes, groups = _product(kind, costs.params.at(row))
            reason = eligible(
                kind,
                judgement.tc.value,
                dtype=judgement.dtype,
                cc=table.device_of(gpu.at(row)).cuda_cc,
                sizes=sizes,
                groups=groups,
            )
        reasons.append(reason)
    return DictionaryColumn(index, reasons)


_Sizes = tuple[int | None, int | None, int | None]


def _product(kind: str, params: Mapping[str, object]) -> tuple[_Sizes, int]:
    """M, N, K and number of groups of the matrix product that an op is; None if unknown.

    A convolution calls its batch N and its output channels K: these are not the product's.
    """
    sizes = {name: value for name, value in params.items() if isinstance(value, int)}
    if kind == "gemm":
        return (sizes.get("M"), sizes.get("N"), sizes.get("K")), 1
    if kind != "conv":
        return (None, None, None), 1
    groups = sizes.get("g", 1)
    positions = [sizes[name] for name in "NOPQ" if name in sizes]
    m = math.prod(positions) if "Q" in sizes and "N" in sizes else None
    n, k = (sizes[name] // groups if name in sizes else None for name in "KC")
    return (m, n, k), groups
