"""Columns that explain others: idle time, queueing, peaks and reasons."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyprof.gpu.eligible import FAMILIES, eligible
from pyprof.prof.sharing import family

if TYPE_CHECKING:
    from pyprof.parse.records import Records
    from pyprof.prof.situations import Work
    from pyprof.prof.table import Judgement, Table


def idle_before(records: Records) -> pa.Array:
    """Give how long each row's device had been idle before it, ns; null for a device's first."""
    if "start" not in records.columns:
        return pa.nulls(records.rows, pa.int64())
    start, end = records.numpy("start"), records.numpy("end")
    pid, device = records.numpy("pid"), records.numpy("device")
    gap = np.full(records.rows, -1)
    # Two processes may share a device or each call another one device 0: keep them apart.
    order = np.lexsort((start, device, pid))
    changed = (np.diff(device[order]) != 0) | (np.diff(pid[order]) != 0)
    for rows in np.split(order, np.flatnonzero(changed) + 1):
        busy_until = np.maximum.accumulate(end[rows])
        gap[rows[1:]] = np.maximum(start[rows[1:]] - busy_until[:-1], 0)
    return pa.array(gap, mask=gap < 0)


def queued(records: Records) -> pa.Array:
    """Give the time from each row's launching call to its start, ns; null without a call."""
    if "launch" not in records.columns:
        return pa.nulls(records.rows, pa.int64())
    launch = records.arrow("launch")
    called = pc.list_element(
        pc.if_else(pc.greater(pc.list_value_length(launch), 0), launch, None), 0
    )
    return pc.subtract(records.arrow("start"), called)


def peaks(table: Table) -> pa.Array:
    """Name the peak of each row that limits it: of FLOP/s or of bandwidth."""
    number, judged = table.judged
    flops = pa.array([_label(entry.flops_peak) for entry in judged], pa.string()).take(
        pa.array(number)
    )
    memory = pa.array([_label(entry.bandwidth_peak) for entry in judged], pa.string()).take(
        pa.array(number)
    )
    known = np.isfinite(table.roofline.share)
    rates = table.roofline
    with np.errstate(invalid="ignore"):
        compute = _share(rates.flops_per_s, judged, number, "flops_peak") >= _share(
            rates.bytes_per_s, judged, number, "bandwidth_peak"
        )
    return pc.if_else(pa.array(known), pc.if_else(pa.array(compute), flops, memory), None)


def _share(rate: np.ndarray, judged: list[Judgement], number: np.ndarray, name: str) -> np.ndarray:
    tops = [getattr(entry, name).value if getattr(entry, name) else np.nan for entry in judged]
    share = rate / np.array([*tops, np.nan])[number]
    return np.asarray(np.nan_to_num(share, nan=0.0))


def _label(rate: object) -> str | None:
    return getattr(rate, "label", None)


def reasons(table: Table) -> pa.Array:
    """Say why a row's cost is not known; else how its Tensor Core use was decided."""
    costs, (number, judged) = table.costs, table.judged
    verdicts = [_verdict(entry) for entry in judged]
    decided = pa.array(verdicts, pa.string()).take(pa.array(number))
    unknown = pa.array([reason or None for reason in costs.reason], pa.string()).take(
        pa.array(costs.reason_of)
    )
    helper = pc.if_else(pa.array(costs.helper), "helper: serves the op's other kernels", None)
    unused = _unused(table)
    return pc.coalesce(helper, unknown, unused, decided)


def _verdict(judgement: Judgement) -> str | None:
    return judgement.tc.rule if judgement.tc.value != "-" else None


def _unused(table: Table) -> pa.Array:
    """Say why matrix products ran without Tensor Cores, or slower than they could."""
    costs, (number, judged) = table.costs, table.judged
    pairs, index = np.unique(costs.params_of << 32 | number, return_inverse=True)
    _, first = np.unique(index, return_index=True)
    works = [costs.work[place] for place in costs.work_of[first].tolist()]
    gpu = table.records.coded("gpu")
    names = [*gpu.values, None]
    found = [
        _eligible(table, works[place], pair >> 32, judged[pair & 0xFFFFFFFF], names[gpu.index[row]])
        for place, (pair, row) in enumerate(zip(pairs.tolist(), first.tolist(), strict=True))
    ]
    return pa.array(found, pa.string()).take(pa.array(index))


def _eligible(
    table: Table, work: Work, params: int, judgement: Judgement, gpu: str | None
) -> str | None:
    kind = family(work)
    if kind not in FAMILIES or judgement.tc.value == "-":
        return None
    known = table.costs.params[params]
    m, n, k = (known.get(name) for name in "MNK")
    return eligible(
        kind,
        judgement.tc.value,
        dtype=judgement.dtype,
        cc=table.device_of(gpu).cuda_cc,
        sizes=(_int(m), _int(n), _int(k)),
    )


def _int(value: object) -> int | None:
    return value if isinstance(value, int) else None
