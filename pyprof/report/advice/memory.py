"""Memory asked of the driver while the GPU waits."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pyprof import schema
from pyprof.report.advice.case import idle_for
from pyprof.report.advice.registry import rule
from pyprof.report.analysis import host_api
from pyprof.report.analysis.host_api import ALLOC

if TYPE_CHECKING:
    from pyprof.parse.records import Records
    from pyprof.report.advice.case import Case
    from pyprof.report.advice.finding import Advice


@rule(
    "the GPU had work meanwhile",
)
def allocation(case: Case) -> Advice | None:
    """Find gaps in which the host allocated or freed GPU memory; the evidence is what came next."""
    _, rows, idle_ns = idle_for(case, ALLOC)
    return case.advice(
        "allocation",
        "the GPU waits for memory to be allocated or freed",
        "capture after warm-up; if it persists, keep shapes constant, avoid empty_cache(), and"
        " set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True",
        rows,
        case.most(rows, idle_ns),
        weight=idle_ns,
    )


# Copies that hold up the host, as those from or to pageable memory do.


_STAGED_BYTES = 65536
"""Up to this, CUDA stages a pageable copy and returns at once (CUDA API reference, "API
synchronization behavior"); and what `.item()` copies is no matter of memory kinds."""
_MOST = 0.5
"""A copy from pinned memory goes on without its call, which returns in some microseconds."""


@rule(
    "the call returns at once, as with pinned memory",
    "a few bytes, as of .item()",
)
def pageable_copies(case: Case) -> Advice | None:
    """Find large copies during most of which their call had not returned; they could be hidden."""
    if case.timeline is None or case.timeline.blocking:
        return None
    records = case.table.records
    large = records.numpy("bytes") > _STAGED_BYTES
    name = records.coded("kLongName")
    host = np.array(["HtoD" in text or "DtoH" in text or "Pageable" in text
                     for text in name.values] + [False]).take(name.index)  # fmt: skip
    rows = np.flatnonzero(
        case.kind(schema.MEMCPY) & host & large & (_blocked_share(records) > _MOST)
    )
    return case.advice(
        "pageable_copies",
        "copies between host and GPU block the host: pageable memory, or blocking calls",
        "create or load the weights on the GPU itself: with torch.device('cuda'):"
        if case.once
        else "use pin_memory=True in the DataLoader and .to(device, non_blocking=True)",
        rows,
        case.most(rows, _alone(case, rows)),
    )


def _blocked_share(records: Records) -> np.ndarray:
    """Give the share of each row's time during which the launching call had not returned."""
    called, returned = host_api.launches(records)
    start, end = records.numpy("start"), records.numpy("end")
    both = np.minimum(returned, end) - np.maximum(called, start)
    share: np.ndarray = both / np.maximum(end - start, 1)
    return share


def _alone(case: Case, rows: np.ndarray) -> np.ndarray:
    """Give how much of each copy ran while its GPU did nothing else."""
    records = case.table.records
    start, end = records.numpy("start")[rows], records.numpy("end")[rows]
    pid, number = records.numpy("pid")[rows], records.numpy("device")[rows]
    alone_ns = np.zeros(len(rows))
    for device in case.devices:
        here = (pid == device.pid) & (number == device.device)
        alone = device.copy - device.compute - device.communication
        alone_ns[here] = alone.length_within(start[here], end[here])
    return alone_ns
