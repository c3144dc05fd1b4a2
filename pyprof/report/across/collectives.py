"""What each collective's kernel was: kind, algorithm, process group, size."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np

from pyprof import marker
from pyprof.gpu import nccl
from pyprof.ops import collectives as ops
from pyprof.ops.dtypes import item_size
from pyprof.prof.table import Table
from pyprof.report.across import facts
from pyprof.report.timeline import COMMUNICATION, sorts

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa
    from numpy.typing import NDArray

    from pyprof.parse.records import Records

    Ints = NDArray[np.int64]

_RANGES = ("nccl:", "c10d::")
"""What PyTorch's own ranges around a collective begin with."""


def collectives(records: Records, rank: int, of_step: Ints) -> pa.Table:
    """Describe the kernels that communicate, in GPU-start order; see `facts.COLLECTIVES`."""
    rows = np.flatnonzero(sorts(records) == COMMUNICATION)
    chosen = records.take(rows)
    said = _said(chosen)
    name = chosen.coded("kLongName")
    named = [ops.kind(nccl.function(text) or "") for text in name.values]
    algorithms = [nccl.algorithm(text) for text in name.values]
    ranges, params_of = _kinds_of_ranges(chosen), _params_of_ops(chosen)
    kinds = [
        _kind(tool.get("name"), named[place], inside)
        for tool, place, inside in zip(said, name.index.tolist(), ranges, strict=True)
    ]
    step = of_step[rows]
    return facts.table(
        facts.COLLECTIVES,
        rank,
        len(rows),
        stream=chosen.arrow("stream"),
        start_ns=chosen.arrow("start"),
        end_ns=chosen.arrow("end"),
        step=[number if number >= 0 else None for number in step.tolist()],
        kind=kinds,
        algorithm=[algorithms[place] for place in name.index.tolist()],
        group=[tool.get("group") for tool in said],
        members=[tool.get("ranks") for tool in said],
        size=[
            _whole(tool.get("size")) or _whole(params.get("ranks"))
            for tool, params in zip(said, params_of, strict=True)
        ],
        bytes=[
            _whole(params.get("algo_bytes")) if (told := _bytes(kind, tool)) is None else told
            for kind, tool, params in zip(kinds, said, params_of, strict=True)
        ],
    )


def _said(records: Records) -> list[Mapping[str, Any]]:
    """Give what the tool says of each row; nothing where it says nothing."""
    column = records.coded("collective")
    known: list[Mapping[str, Any]] = [*map(_decoded, column.values), {}]
    return [known[place] for place in column.index.tolist()]


def _decoded(text: str) -> Mapping[str, Any]:
    try:
        found = json.loads(text)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _kind(said: object, named: str | None, inside: str | None) -> str | None:
    """Choose the kind: the tool knows it, else the kernel's name; but all runs as send and receive.

    A group of sends and receives is what the range around it says.
    """
    if isinstance(said, str) and (known := ops.kind(said)):
        return known
    return inside or named if named in (None, ops.SEND_RECV) else named


def _kinds_of_ranges(records: Records) -> list[str | None]:
    """Give the kind that the ranges around each row tell, the innermost first."""
    seqs, calls = records.templates(), records.coded("marker")
    told = [*(_kind_of_seqs(texts or []) for texts in seqs.values), None]
    marked = [*(_kind_of_markers(texts) for texts in calls.values), None]
    places = zip(seqs.index.tolist(), calls.index.tolist(), strict=True)
    return [told[seq] or marked[call] for seq, call in places]


def _kind_of_seqs(texts: list[str]) -> str | None:
    names = (text.partition(", ")[0] for text in reversed(texts) if text.startswith(_RANGES))
    return next((found for name in names if (found := ops.kind(name))), None)


def _kind_of_markers(texts: list[str]) -> str | None:
    for text in reversed(texts):
        call = marker.decode_op(text)
        if call is not None and call.mod in ops.MODS and (found := ops.kind(call.op)):
            return found
    return None


def _bytes(kind: str | None, said: Mapping[str, Any]) -> int | None:
    """Give the algorithm bytes that the tool tells."""
    count = ops.message_bytes(kind or "", _whole(said.get("in")), _whole(said.get("out")))
    size = item_size(said.get("dtype"))
    return None if count is None or size is None else count * size


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _params_of_ops(records: Records) -> list[Mapping[str, Any]]:
    """Give what the formula says of the op call around each row, where it launched no other."""
    if not records.rows:
        return []
    costs = Table(records).costs
    alone = np.bincount(costs.call)[costs.call] == 1
    return [
        costs.params[place] if only else {}
        for place, only in zip(costs.params_of.tolist(), alone.tolist(), strict=True)
    ]
