"""Collectives of which no op tells the sizes, but the tool does: on the kernel, or beside it.

torch.profiler writes on a kernel of NCCL how many elements go in and come out, their type, and how
many ranks take part; where the op around it has no shapes, those are its arguments.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from pyprof.marker import Call, Tensor
from pyprof.ops import dtypes
from pyprof.ops.registry import FPROP
from pyprof.ops.torch import collectives
from pyprof.parse.recorded_collectives import json_fields
from pyprof.prof.calls.attributed_call import OWN, AttributedCall
from pyprof.records.records import combinations

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyprof.arrays import IntArray
    from pyprof.records.records import Records

_ONE, _BOTH = ("in",), ("out", "in")
_OPS: Mapping[str, tuple[str, tuple[str, ...]]] = MappingProxyType(
    {
        collectives.ALL_REDUCE: ("AllReduce", _ONE),
        collectives.ONE_WAY: ("Broadcast", _ONE),
        collectives.SEND_RECV: ("send", _ONE),
        "reduce": ("Reduce", _ONE),
        collectives.ALL_GATHER: ("AllGather", _BOTH),
        collectives.REDUCE_SCATTER: ("ReduceScatter", _BOTH),
        collectives.ALL_TO_ALL: ("AllToAll", _BOTH),
        collectives.GATHER: ("gather", _BOTH),
        "scatter": ("scatter", _BOTH),
    }
)
"""By kind: an op whose formula costs it, and which amounts are its arguments."""


def with_collectives(
    records: Records, work_of: IntArray, works: Sequence[AttributedCall]
) -> tuple[IntArray, list[AttributedCall]]:
    """Return each row's work and the works, with unknown costs filled from recorded sizes."""
    said = records.dictionary("collective")
    if not said.values:
        return work_of, list(works)
    unknown = np.array(
        [work.call is None or work.cost().bytes is None for work in works], bool
    ).take(work_of)
    calls = [_call(json_fields(text)) for text in said.values]
    replaced = np.array([*(call is not None for call in calls), False]).take(said.index) & unknown
    first, number = combinations(np.where(replaced, said.index, -1), work_of)
    chosen = []
    for row in first.tolist():
        work, call = works[work_of[row]], calls[said.index[row]] if replaced[row] else None
        chosen.append(
            work
            if call is None
            else AttributedCall(call=call, direction=FPROP, dtype=None, position=OWN)
        )
    return number, chosen


def _call(said: Mapping[str, Any]) -> Call | None:
    """Make a call of what is said; None where it tells no amount, or no type."""
    op, amounts = _OPS.get(collectives.kind(str(said.get("name", ""))) or "", ("", ()))
    counts = [said.get(name) for name in amounts]
    dtype = dtypes.canonical(said.get("dtype"))
    if not op or dtype is None or not all(type(count) is int and count >= 0 for count in counts):
        return None
    size = {"size": said["size"]} if type(said.get("size")) is int else {}
    tensors = tuple(Tensor((int(count or 0),), dtype) for count in counts)
    return Call("nccl", op, tensors, collective=size)
