"""The kind, algorithm, group and size of each collective; and which ones are equal."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from pyprof import schema
from pyprof.analysis.ranks import tables
from pyprof.analysis.ranks.parallelism import in_pipeline
from pyprof.analysis.time.intervals import union, union_of
from pyprof.analysis.time.timeline import COMMUNICATION, activity_classes
from pyprof.answers.ranks_answer import CollectiveKey
from pyprof.arrays import MISSING
from pyprof.gpu.kernel_names import by_name, split
from pyprof.ops.dtypes import item_size
from pyprof.ops.torch import collectives as ops
from pyprof.parse.ranges.nesting import by_value
from pyprof.prof.kernels.kernel_context import distinct_contexts
from pyprof.prof.table import Table
from pyprof.records.records import number_combinations

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pyprof.analysis.ranks.tables import Collectives
    from pyprof.analysis.ranks.waiting import Waits
    from pyprof.analysis.time.intervals import Intervals
    from pyprof.arrays import Int64Array, IntArray, Mask
    from pyprof.prof.kernels.kernel_context import KernelContext
    from pyprof.records.records import Records


_FUNCTION = re.compile(
    r"(?:nccl|rccl|hcom)\w{0,80}?(AllReduce|AllGather|ReduceScatter|AllToAll|SendRecv|Broadcast|Reduce|Send|Recv)",
    re.IGNORECASE,
)
_OTHERS = re.compile(
    r"(all_?reduce|all_?gather|reduce_?scatter|all_?to_?all)|cross_device_reduce", re.IGNORECASE
)
"""Kernels of other libraries; the last is vLLM's all-reduce."""
_ALGORITHM = re.compile(
    r"(?:_|(?<=[a-z]))(RING|TREE|COLLNET\w*?|NVLS\w*?|PAT)(?=_|LL|Simple|Kernel|\W|$)",
    re.IGNORECASE,
)


@by_name
def collective(name: str) -> str | None:
    """Return the collective in a kernel's name: `AllReduce`; None if there is none."""
    if match := _FUNCTION.search(name):
        return match[1]
    other = _OTHERS.search(split(name).path)
    return other and (other[1] or "all_reduce")


@by_name
def algorithm(name: str) -> str | None:
    """Return the algorithm in a kernel's name, in capitals: `RING`; None if there is none."""
    if _FUNCTION.search(name) is None:
        return None
    match = _ALGORITHM.search(name.partition("(")[0])
    return match[1].upper() if match else None


_MIXED = -2
_SIZES = 64
"""If a group has more sizes, as with batches of any length, the rarer ones share a key."""


def group_by_key(columns: Collectives, one: Waits) -> Iterator[tuple[CollectiveKey, IntArray]]:
    """Return the kinds of a group's collectives, and the collectives of each."""
    what = columns.signatures
    kind, algorithm = (column.index[one.signature] for column in (what.kind, what.algorithm))
    size = np.where(one.even, one.bytes, _MIXED)
    number = number_combinations(kind, algorithm, size)
    calls = np.bincount(number)
    if len(calls) > _SIZES:
        often = np.argsort(-calls, kind="stable")[:_SIZES]
        size = np.where(np.isin(number, often), size, _MIXED)
        number = number_combinations(kind, algorithm, size)
    order = np.argsort(number, kind="stable")
    for chosen in np.split(order, np.flatnonzero(np.diff(number[order])) + 1):
        first, moved = chosen[0], one.bytes[chosen]
        sizes_known = bool((moved != MISSING).all())
        yield (
            CollectiveKey(
                kind=what.kind.at(one.signature[first]),
                algorithm=what.algorithm.at(one.signature[first]),
                bytes=int(moved.sum()) // len(moved) if sizes_known else None,
                mixed=bool(size[first] == _MIXED),
            ),
            chosen,
        )


_RANGES = ("nccl:", "c10d::")
"""What PyTorch's own ranges around a collective begin with."""


def collectives(
    records: Records, rank: int, of_step: Int64Array, computing: Intervals
) -> tuple[pa.Table, pa.Table, int | None]:
    """Describe the kernels that communicate: `tables.SIGNATURES`, `tables.COLLECTIVES`.

    Also return the time, in ns, during which the rank only waited for other stages of a pipeline;
    None without a pipeline. `computing` is when anything was computed.

    Ops on the CPU are left out unless it is known when another thread ran what they handed to it:
    by itself such an op does not end with its collective. Sends and receives on the CPU have a
    signature, but no entry of their own: when they end is not known to the other rank.
    """
    communicates = activity_classes(records) == COMMUNICATION
    rows = np.flatnonzero(communicates & ~returns_at_once(records))
    chosen = records.take(rows)
    fields = _tool_fields(chosen)
    number_of_signature: dict[tuple[object, ...], int] = {}
    numbers = [
        number_of_signature.setdefault(one, len(number_of_signature))
        for one in _signatures(chosen, fields)
    ]
    described: dict[str, list[Any]] = {
        key: [one[at] for one in number_of_signature] for at, key in enumerate(_KEYS)
    }
    start, end = (records.numpy(name)[rows] for name in ("start", "end"))
    signature = np.array(numbers, np.int64)
    when = [union_of(start[of_one], end[of_one]) for _, of_one in by_value(signature)]
    described["total_ns"] = [each.total for each in when]
    described["exposed_ns"] = [(each - computing).total for each in when]
    described["received_bytes"] = _received_bytes(fields, numbers, len(number_of_signature))
    kinds = np.array(described["kind"], object)[numbers]
    shared = np.flatnonzero((kinds != ops.SEND_RECV) | ~chosen.of_kind(schema.CPU))
    stages = [each for each, is_stage in zip(when, in_pipeline(described), strict=True) if is_stage]
    return (
        tables.table(tables.SIGNATURES, rank, len(number_of_signature), **described),
        tables.table(
            tables.COLLECTIVES,
            rank,
            len(shared),
            signature=signature[shared],
            start_ns=_times(records, _serialize(records, rows, start, end)[shared]),
            end_ns=_times(records, end[shared]),
            step=[number if number >= 0 else None for number in of_step[rows[shared]].tolist()],
        ),
        (union(stages) - computing).total if stages else None,
    )


_KEYS = ("stream", "kind", "algorithm", "group", "members", "size", "bytes", "description")
"""What collectives of one kind have in common; the other columns are sums over them."""


def _received_bytes(
    tool_fields: Sequence[Mapping[str, Any]], numbers: list[int], count: int
) -> list[int | None]:
    """Bytes that the calls of each kind received; None if unknown for any."""
    total: list[int | None] = [0] * count
    for number, fields in zip(numbers, tool_fields, strict=True):
        elements, size = _whole_number(fields.get("out")), item_size(fields.get("dtype"))
        before = total[number]
        if before is not None:
            total[number] = None if elements is None or size is None else before + elements * size
    return total


def _times(records: Records, times: Int64Array) -> pa.Array:
    return pa.array(times) if "start" in records.columns else pa.nulls(len(times), pa.int64())


def returns_at_once(records: Records) -> Mask:
    """Mask of the ops on the CPU whose time is that of the call, on the calling thread."""
    own_thread = records.numpy("stream") == records.numpy("tid")
    return np.asarray(records.of_kind(schema.CPU) & own_thread)


def _serialize(
    records: Records, rows: Int64Array, start: Int64Array, end: Int64Array
) -> Int64Array:
    """Return starts on the CPU not before the end of the previous collective.

    Several of gloo's threads may wait at once, for the same rank: that counts once.
    """
    before = np.maximum.accumulate(np.append(np.iinfo(np.int64).min, end))[:-1]
    on_cpu = records.of_kind(schema.CPU)[rows]
    return np.where(on_cpu, np.minimum(np.maximum(start, before), end), start)


def _signatures(
    records: Records, tool_fields: Sequence[Mapping[str, Any]]
) -> Iterator[tuple[object, ...]]:
    """Yield what `_KEYS` names for each row."""
    name = records.dictionary("kLongName")
    named = [ops.kind(collective(text) or "") for text in name.values]
    algorithms = [algorithm(text) for text in name.values]
    context = distinct_contexts(records)
    of_context = [_kind_of_ranges(each) for each in context.values]
    ranges = [of_context[each] for each in context.index.tolist()]
    streams = records.arrow("stream").to_pylist()
    for index, tool, params, stream, inside in zip(
        name.index.tolist(), tool_fields, _params_of_ops(records), streams, ranges, strict=True
    ):
        # The kind is that which the tool recorded, else that of the kernel's name. If it is
        # unknown, or sends and receives, as which other kinds may run, the range around it counts.
        tool_name = tool.get("name")
        tool_kind = ops.kind(tool_name) if isinstance(tool_name, str) else None
        first = named[index] if tool_kind is None else tool_kind
        kind = inside or first if first in (None, ops.SEND_RECV) else first
        tool_bytes = _bytes(kind, tool)
        yield (
            stream, kind, algorithms[index], tool.get("group"), tool.get("ranks"),
            _whole_number(tool.get("size")) or _whole_number(params.get("ranks")),
            _whole_number(params.get("algo_bytes")) if tool_bytes is None else tool_bytes,
            tool.get("description"),
        )  # fmt: skip


def kinds_and_groups(records: Records) -> Iterator[tuple[Any, Any]]:
    """Yield the kind of each row's collective and its group's description; None if unknown."""
    kind, group = _KEYS.index("kind"), _KEYS.index("description")
    for each in _signatures(records, _tool_fields(records)):
        yield each[kind], each[group]


def _tool_fields(records: Records) -> list[Mapping[str, Any]]:
    """What the tool recorded for each row; {} if nothing."""
    column = records.dictionary("collective")
    decoded: list[Mapping[str, Any]] = [*map(schema.json_object, column.values), {}]
    return [decoded[index] for index in column.index.tolist()]


def _kind_of_ranges(context: KernelContext) -> str | None:
    """Return the kind by the ranges around a kernel, the innermost of PyTorch's own first."""
    names = [said.name for said in reversed(context.seqs) if said.name.startswith(_RANGES)]
    calls = [said.marked_call for said in reversed(context.markers)]
    names += [call.op for call in calls if call and call.mod in (*ops.MODS, ops.FUNCTIONAL)]
    return next(filter(None, map(ops.kind, names)), None)


def _bytes(kind: str | None, fields: Mapping[str, Any]) -> int | None:
    """The algorithm bytes that the tool records."""
    count = ops.message_bytes(
        kind or "", _whole_number(fields.get("in")), _whole_number(fields.get("out"))
    )
    size = item_size(fields.get("dtype"))
    return None if count is None or size is None else count * size


def _whole_number(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _params_of_ops(records: Records) -> list[Mapping[str, Any]]:
    """The bytes by the formula of the op call around each row, if it launched no other."""
    if not records.rows:
        return []
    costs = Table(records).costs
    alone = np.bincount(costs.call)[costs.call] == 1
    return [
        costs.params.values[index] if only else {}
        for index, only in zip(costs.params.index.tolist(), alone.tolist(), strict=True)
    ]
