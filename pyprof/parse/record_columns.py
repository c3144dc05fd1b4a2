"""The columns of the records, each from what the earlier steps found."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyprof import schema
from pyprof.arrays import MISSING, distinct_values, first_index, ints, lists
from pyprof.gpu.kernel_names import demangle, short_name
from pyprof.gpu.kernel_roles import communicates
from pyprof.marker import unnumbered
from pyprof.parse import first_values, launch_sites, recorded_collectives
from pyprof.parse.autograd import recomputation
from pyprof.parse.ranges import launch_layers, range_stacks
from pyprof.records.records import DictionaryColumn, Records, combinations, encode

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from pyprof.arrays import Int64Array, IntArray, Mask
    from pyprof.marker import Statement
    from pyprof.parse.launch_sites import LaunchSites
    from pyprof.parse.ranges.range_stacks import RangeStack
    from pyprof.records.records import Column
    from pyprof.schema import Capture


class Around(NamedTuple):
    """What is around each row: indices of paths in `described`; MISSING if there is none."""

    described: list[RangeStack]
    """The last one stands for rows in no range."""
    path: IntArray
    """The path of the call itself, without MISSING."""
    partner: IntArray
    """The forward op, and the one whose layer and line are the row's; see `Partners`."""
    place: IntArray
    user_range: IntArray
    """The path whose layers apply if the ops are in none; see `launch_layers.around`."""
    on_engine: Mask
    free: dict[int, list[str]]
    """Names of start/end ranges around some rows."""
    site: LaunchSites


def of_work(capture: Capture, activities: pa.Table, launch: Int64Array) -> dict[str, Column]:
    """Build the columns about the work itself and the calls that launched it."""
    start, end = activities.column("start"), activities.column("end")
    built: dict[str, Column] = {
        **_names(activities),
        "kind": DictionaryColumn(ints(activities.column("kind")), list(schema.KINDS)),
        "start": start,
        "end": end,
        "kDuration": pc.subtract(end, start),
        "pid": activities.column("pid"),
        "corrId": activities.column("corr"),
        "grid": _triple(activities, "grid"),
        "block": _triple(activities, "block"),
        "gpu": _gpu(capture, activities),
        **_launches(capture, launch),
    }
    for name in ("device", "rank", "stream", "bytes", "regs", "smem"):
        built[name] = activities.column(name)
    counters = activities.column("counters")
    if counters.null_count < len(counters):
        built["counters"] = encode(counters.combine_chunks())
    return built


def build(activities: pa.Table, around: Around, columns: Mapping[str, Column]) -> dict[str, Column]:
    """Build the columns of `schema.RECORD` for the ranges around each row.

    `columns` are those of the ops around it; see `sequence.columns`.
    """
    described, path, partner, place, user_range, on_engine, free, site = around
    direction = _direction(activities, described, path, user_range, on_engine)
    # A collective belongs to many parameters, not only to the one that it waited for.
    place = np.where(direction.index == _COMM, partner, place)
    layered = _layered(described, _own(described, path, place, 0), place, user_range)
    layers = recomputation.full_layers(described)
    again = np.array([entry.again for entry in described]).take(path)
    built: dict[str, Column] = {
        "reprMarkers": DictionaryColumn(path, [list(entry.modules) for entry in described]),
        "marker": DictionaryColumn(path, _texts(entry.markers for entry in described)),
        "recomputed": pa.array(np.ones(len(path), np.int8), mask=~again),
        "trace": DictionaryColumn(
            _own(described, path, place, 1), [list(each.trace) for each in described]
        ),
        "layer": launch_layers.layers(layers, layered, free),
        "dir": direction,
        **_forward(described, layers, partner, place),
        **range_stacks.arguments(described, path, partner),
    }
    comm = np.flatnonzero(direction.index == _COMM)
    by_tool = activities.column("collective")
    if len(comm) or by_tool.null_count < len(by_tool):
        column = recorded_collectives.collective_column(
            by_tool, described, path, ints(columns["opId"]), comm
        )
        if column.values:
            built["collective"] = column
    return built | _sites(site, Records(len(path), {**columns, **built}))


def _sites(site: LaunchSites, records: Records) -> dict[str, Column]:
    """Columns for how each row's op was found, and which replay of a graph the row is part of."""
    marker, op, forward, layer = (
        records.dictionary(name).matches() for name in ("marker", "op", "fwdOp", "layer")
    )
    by_forward = forward & ~marker & (site.via == launch_sites.LAUNCH)
    by_range = np.where(layer, launch_sites.USER_RANGE, MISSING)
    via = np.where(by_forward, launch_sites.FORWARD_OP, np.where(op | forward, site.via, by_range))
    replay: dict[str, Column] = {}
    if (inside := site.replay != MISSING).any():
        replay = {"replay": pa.array(site.replay, mask=~inside)}
    return {"via": DictionaryColumn(via, list(schema.VIAS)), **replay}


def _texts(statements: Iterable[Sequence[Statement]]) -> list[list[str]]:
    return [[said.text for said in each] for each in statements]


def _names(activities: pa.Table) -> dict[str, Column]:
    index, names = _name_columns(activities)
    long_names = [demangle(name) for name in names]
    built: dict[str, Column] = {
        "kShortName": DictionaryColumn(index, [short_name(name) for name in long_names]),
        "kLongName": DictionaryColumn(index, long_names),
    }
    if activities.column("original_name").null_count < len(activities):
        built["originalName"] = DictionaryColumn(*_name_columns(activities, "original_name"))
    return built


def _name_columns(
    activities: pa.Table, column_name: str = "name"
) -> tuple[NDArray[np.int32], list[str]]:
    column = activities.column(column_name).combine_chunks()
    return np.asarray(column.indices.fill_null(MISSING)), column.dictionary.to_pylist()


def _gpu(capture: Capture, activities: pa.Table) -> DictionaryColumn:
    """The name of each row's device."""
    device = ints(activities.column("device"))
    used = set(distinct_values(device).tolist())
    rows = capture.devices.select(["device", "name"]).to_pylist()
    names = {row["device"]: row["name"] for row in rows if row["name"] and row["device"] in used}
    numbers = sorted(names)
    index = first_index(np.array(numbers, np.int64), device)
    on_cpu = ints(activities.column("kind")) == schema.CPU
    index = np.where(on_cpu, len(numbers), index)
    return DictionaryColumn(index, [*(names[number] for number in numbers), "cpu"])


def _triple(activities: pa.Table, name: str) -> DictionaryColumn:
    """Make lists of x, y, z; empty if the activity has no grid."""
    columns = [activities.column(f"{name}_{axis}") for axis in "xyz"]
    axes = [np.asarray(pc.fill_null(column, MISSING)) for column in columns]
    absent = np.logical_or.reduce([axis == MISSING for axis in axes])
    axes = [np.where(absent, np.int32(MISSING), axis) for axis in axes] if absent.any() else axes
    first, number = combinations(*axes)
    triples = zip(*(axis[first].tolist() for axis in axes), strict=True)
    return DictionaryColumn(
        number, [[] if MISSING in triple else list(triple) for triple in triples]
    )


def _launches(capture: Capture, launch: Int64Array) -> dict[str, Column]:
    launched = launch != MISSING
    row = launch[launched]
    bounds = [ints(capture.calls.column(name))[row] for name in ("start", "end")]
    thread = ints(capture.calls.column("thread"))[row]
    tid = np.zeros(len(launch), np.int64)
    tid[launched] = ints(capture.threads.column("tid"))[thread]
    both = pa.array(np.stack(bounds, axis=1).reshape(-1))
    return {
        "launch": lists(np.where(launched, 2, 0), both, pa.array(~launched)),
        "tid": pa.array(tid, mask=~launched),
    }


def _own(described: Sequence[RangeStack], path: IntArray, place: IntArray, which: int) -> IntArray:
    """Drop a row's path if its layer (0) or trace (1) is only that of the backward pass's caller.

    It is kept if the forward op has none of its own, which would be more specific.
    """
    direction_hint = [(entry.layer, entry.trace)[which] for entry in described]
    same = np.array([entry.inherited[which] for entry in described])
    some = np.array([bool(text) for text in direction_hint])
    left_out = same.take(path) & some.take(place)
    nowhere = np.int32(len(described) - 1)
    return np.where(left_out, nowhere, path) if left_out.any() else path


def _layered(
    described: Sequence[RangeStack], path: IntArray, place: IntArray, around: IntArray
) -> IntArray:
    """Use the path `around` if neither the row's own path nor its forward op's has a layer."""
    direction_hint = np.array([bool(entry.layer) for entry in described])
    left = direction_hint.take(path) | direction_hint.take(place) | (around == MISSING)
    return path if left.all() else np.where(left, path, around)


def _forward(
    described: Sequence[RangeStack],
    layers: Sequence[Sequence[str]],
    partner: IntArray,
    place: IntArray,
) -> dict[str, Column]:
    described = _only(described, partner, place)  # in inference no row needs any
    ops = [range_stacks.forward_ops(entry) for entry in described]
    return {
        "fwdMarker": DictionaryColumn(partner, _texts(entry.markers for entry in described)),
        "fwdSeqMarker": DictionaryColumn(
            partner, [[unnumbered(said.text) for said in entry.seqs] for entry in described]
        ),
        "fwdMod": DictionaryColumn(partner, [[mod for mod, _ in named_ops] for named_ops in ops]),
        "fwdOp": DictionaryColumn(partner, [[op for _, op in named_ops] for named_ops in ops]),
        "fwdLayer": DictionaryColumn(place, [*map(list, layers)]),
        "fwdTrace": DictionaryColumn(place, [list(entry.trace) for entry in described]),
    }


def _only(described: Sequence[RangeStack], *used: IntArray) -> list[RangeStack]:
    """Blank the entries that no row refers to, to save formatting them."""
    wanted = np.zeros(len(described), bool)
    for index in used:
        wanted[index] = True  # MISSING is the last, which is empty
    return [
        entry if is_wanted else range_stacks.EMPTY_STACK
        for entry, is_wanted in zip(described, wanted.tolist(), strict=True)
    ]


_DIRECTIONS = ["", "fprop", "bprop", "optim", "comm", "copy"]
_COMM = _DIRECTIONS.index("comm")


def _direction(
    activities: pa.Table,
    described: Sequence[RangeStack],
    path: IntArray,
    user_range: IntArray,
    on_engine: Mask,
) -> DictionaryColumn:
    """Return the direction of each activity: the first of copy, comm, bprop, optim and fprop.

    Work that the engine launches by itself, from no line and in no layer, is bprop. PyTorch's own
    ranges take precedence over the names of the user's, and these over the mere presence of an op.
    First values of parameters have no direction (see `first_values`); clipping gradients is part of
    the optimizer's update. So is work without gradients between two ops of an update.
    """
    backward, optimizer, updates, initialises, some_op, unnumbered, called = (
        np.array([flag(entry) for entry in described]).take(path)
        for flag in (
            lambda entry: entry.backward,
            lambda entry: entry.optimizer,
            range_stacks.updates,
            range_stacks.initialises,
            lambda entry: bool(entry.ops or entry.seqs),
            range_stacks.without_gradients,
            lambda entry: bool(entry.trace or entry.layer),
        )
    )
    direction_hint = np.array(
        [_DIRECTIONS.index(entry.direction_hint) for entry in described], np.int32
    )
    code: NDArray[np.int32] = direction_hint.take(path)
    code = np.where(code > 0, code, direction_hint.take(user_range))
    kind = np.asarray(activities.column("kind"))
    stated = code > 0
    name, names = _name_columns(activities)
    comm = np.array([communicates(text) for text in map(demangle, names)], bool)[name]
    for holds, direction in (  # the last one that holds wins
        (some_op & (code <= 1), 1),
        (initialises, 0),
        (optimizer | updates, 3),
        (backward | (on_engine & some_op & ~called), 2),
        (comm, _COMM),
        ((kind == schema.MEMCPY) | (kind == schema.MEMSET), 5),
    ):
        np.copyto(code, direction, where=holds)
    process = ints(activities.column("pid"))
    forward = code == _DIRECTIONS.index("fprop")
    passes = np.isin(code, [_DIRECTIONS.index(name) for name in ("fprop", "bprop", "optim")])
    code[first_values.rows(activities, described, path, forward & ~stated, passes)] = 0
    code[_within_updates(code, updates & ~optimizer, unnumbered, process)] = 3
    return DictionaryColumn(code, _DIRECTIONS)


_MAX_WITHIN = 16
"""Maximum rows between two ops of an update; more are an evaluation between two updates."""


def _within_updates(
    direction: IntArray, clips: Mask, unnumbered: Mask, process: Int64Array
) -> Int64Array:
    """Find forward rows without gradients between one that clips and the optimizer's next one."""
    order = np.argsort(process, kind="stable")
    direction, process = direction[order], process[order]
    copies = direction == _DIRECTIONS.index("copy")
    unclear = (direction == _DIRECTIONS.index("fprop")) & unnumbered[order]
    optimizer = direction == _DIRECTIONS.index("optim")
    known = np.flatnonzero(~unclear & ~copies)
    rows = np.flatnonzero(unclear)
    behind = np.searchsorted(known, rows)
    rows, behind = (part[(behind > 0) & (behind < len(known))] for part in (rows, behind))
    first, last = known[behind - 1], known[behind]
    near = (process[first] == process[last]) & (last - first <= _MAX_WITHIN)
    within = near & optimizer[first] & clips[order][first] & optimizer[last]
    return np.asarray(order[rows[within]], np.int64)
