"""The columns of the records, each from what the earlier steps found."""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyprof import schema
from pyprof.arrays import MISSING, first_index, ints, lists
from pyprof.gpu.kernel_names import demangle, short_name
from pyprof.gpu.kernel_roles import communicates
from pyprof.marker import unnumbered
from pyprof.parse import first_values, launch_sites, recorded_collectives
from pyprof.parse.autograd import recomputation
from pyprof.parse.ranges import launch_layers, range_stacks
from pyprof.records.records import DictionaryColumn, Records, combinations, encode

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from pyprof.arrays import Int64Array, IntArray, Mask
    from pyprof.parse.launch_sites import LaunchSites
    from pyprof.records.records import Column
    from pyprof.schema import Capture


class Around(NamedTuple):
    """What is around each row: paths, of the same values; null if there is none."""

    path: DictionaryColumn
    """The path of the call itself, without null: the last value stands for rows in no range."""
    partner: DictionaryColumn
    """The forward op, and the one whose layer and line are the row's; see `Partners`."""
    place: DictionaryColumn
    user_range: DictionaryColumn
    """The path whose layers apply if the ops are in none; see `launch_layers.around`."""
    on_engine: Mask
    precedes: Mask
    """Rows of forward ops whose backward pass was recorded; see `forward_backward.precedes`."""
    free: dict[int, list[str]]
    """Names of start/end ranges around some rows."""
    site: LaunchSites


def of_work(capture: Capture, activities: pa.Table, launch: Int64Array) -> dict[str, Column]:
    """Build the columns about the work itself and the calls that launched it."""
    start, end = activities.column("start"), activities.column("end")
    index, names = _name_columns(activities)
    long_names = [demangle(name) for name in names]
    built: dict[str, Column] = {
        "kShortName": DictionaryColumn(index, [short_name(name) for name in long_names]),
        "kLongName": DictionaryColumn(index, long_names),
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
    if activities.column("original_name").null_count < len(activities):
        built["originalName"] = DictionaryColumn(*_name_columns(activities, "original_name"))
    counters = activities.column("counters")
    if counters.null_count < len(counters):
        built["counters"] = encode(counters.combine_chunks())
    return built


def build(activities: pa.Table, around: Around, columns: Mapping[str, Column]) -> dict[str, Column]:
    """Build the columns of `schema.RECORD` for the ranges around each row.

    `columns` are those of the ops around it; see `sequence.columns`.
    """
    path, partner, place, user_range, on_engine, precedes, free, site = around
    direction = _direction(activities, path, user_range, on_engine, precedes)
    # A collective belongs to many parameters, not only to the one that it waited for.
    is_comm = direction.index == _COMM
    place = DictionaryColumn(np.where(is_comm, partner.index, place.index), place.values)
    layered, has_layer = _drop_inherited(path, place, "layer"), attrgetter("layer")
    own = layered.matches(has_layer) | place.matches(has_layer) | (user_range.index == MISSING)
    index = layered.index if own.all() else np.where(own, layered.index, user_range.index)
    layers = recomputation.full_layers(path.values)
    recomputed = path.matches(attrgetter("recomputed"))
    built: dict[str, Column] = {
        "reprMarkers": path.map(lambda stack: list(stack.modules)),
        "marker": path.map(lambda stack: [said.text for said in stack.markers]),
        "recomputed": pa.array(np.ones(len(path), np.int8), mask=~recomputed),
        "trace": _drop_inherited(path, place, "trace").map(lambda stack: list(stack.trace)),
        "layer": launch_layers.layers(layers, index, free),
        "dir": direction,
        **_forward(layers, partner, place),
        **range_stacks.arguments(path, partner),
    }
    comm = np.flatnonzero(is_comm)
    by_tool = activities.column("collective")
    if len(comm) or by_tool.null_count < len(by_tool):
        column = recorded_collectives.collective_column(by_tool, path, ints(columns["opId"]), comm)
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


def _name_columns(
    activities: pa.Table, column_name: str = "name"
) -> tuple[NDArray[np.int32], list[str]]:
    column = activities.column(column_name).combine_chunks()
    return np.asarray(column.indices.fill_null(MISSING)), column.dictionary.to_pylist()


def _gpu(capture: Capture, activities: pa.Table) -> DictionaryColumn:
    """The name of each row's device."""
    device = ints(activities.column("device"))
    used = set(np.unique(device).tolist())
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


def _drop_inherited(path: DictionaryColumn, place: DictionaryColumn, what: str) -> DictionaryColumn:
    """Drop a row's path if its `layer` or `trace` is only that of the backward pass's caller.

    It is kept if the forward op has none of its own, which would be more specific.
    """
    number = ("layer", "trace").index(what)
    left_out = path.matches(lambda stack: stack.inherited[number]) & place.matches(attrgetter(what))
    if not left_out.any():
        return path
    nowhere = len(path.values) - 1
    return DictionaryColumn(np.where(left_out, nowhere, path.index), path.values)


def _forward(
    layers: Sequence[Sequence[str]], partner: DictionaryColumn, place: DictionaryColumn
) -> dict[str, Column]:
    partner, of_place = _blank_unused(partner), _blank_unused(place)  # in inference no row has any
    ops = partner.map(range_stacks.forward_ops)
    return {
        "fwdMarker": partner.map(lambda stack: [said.text for said in stack.markers]),
        "fwdSeqMarker": partner.map(lambda stack: [unnumbered(said.text) for said in stack.seqs]),
        "fwdMod": ops.map(lambda named_ops: [mod for mod, _ in named_ops]),
        "fwdOp": ops.map(lambda named_ops: [op for _, op in named_ops]),
        "fwdLayer": DictionaryColumn(place.index, [*map(list, layers)]),
        "fwdTrace": of_place.map(lambda stack: list(stack.trace)),
    }


def _blank_unused(path: DictionaryColumn) -> DictionaryColumn:
    """Blank the paths that no row has, to save formatting them."""
    wanted = np.zeros(len(path.values) + 1, bool)
    wanted[path.index] = True  # null is the last
    used = zip(path.values, wanted[:-1].tolist(), strict=True)
    stacks = [stack if is_wanted else range_stacks.EMPTY_STACK for stack, is_wanted in used]
    return DictionaryColumn(path.index, stacks)


_DIRECTIONS = ["", "fprop", "bprop", "optim", "comm", "copy"]
_NONE, _FPROP, _BPROP, _OPTIM, _COMM, _COPY = range(len(_DIRECTIONS))


def _direction(
    activities: pa.Table,
    path: DictionaryColumn,
    user_range: DictionaryColumn,
    on_engine: Mask,
    precedes: Mask,
) -> DictionaryColumn:
    """Return the direction of each activity: the first of copy, comm, bprop, optim and fprop.

    Work that the engine launches by itself, from no line and in no layer, is bprop. PyTorch's own
    ranges take precedence over the names of the user's, and these over the mere presence of an op,
    but not of one whose backward pass was recorded: a loss is often computed around `backward()`,
    and in a closure within an optimizer's step.
    First values of parameters have no direction (see `first_values`); clipping gradients is part of
    the optimizer's update. So is work without gradients between two ops of an update.
    """
    backward, optimizer, updates, initialises, some_op, unnumbered, called = (
        path.matches(flag)
        for flag in (
            attrgetter("backward"),
            attrgetter("optimizer"),
            range_stacks.updates,
            range_stacks.initialises,
            lambda stack: bool(stack.ops or stack.seqs),
            range_stacks.without_gradients,
            lambda stack: bool(stack.trace or stack.layer),
        )
    )
    own, around = (
        each.numpy(lambda stack: _DIRECTIONS.index(stack.direction_hint), 0)
        for each in (path, user_range)
    )
    code = np.where(own != _NONE, own, around).astype(np.int32)
    code[precedes] = _FPROP
    kind = np.asarray(activities.column("kind"))
    stated = code != _NONE
    name, names = _name_columns(activities)
    comm = np.array([communicates(text) for text in map(demangle, names)], bool)[name]
    for holds, direction in (  # the last one that holds wins
        (some_op & (code <= _FPROP), _FPROP),
        (initialises, _NONE),
        ((optimizer & ~precedes) | updates, _OPTIM),
        (backward | (on_engine & some_op & ~called), _BPROP),
        (comm, _COMM),
        ((kind == schema.MEMCPY) | (kind == schema.MEMSET), _COPY),
    ):
        np.copyto(code, direction, where=holds)
    process = ints(activities.column("pid"))
    forward = code == _FPROP
    passes = np.isin(code, [_FPROP, _BPROP, _OPTIM])
    code[first_values.rows(activities, path, forward & ~stated, passes)] = _NONE
    code[_find_within_updates(code, updates & ~optimizer, unnumbered, process)] = _OPTIM
    return DictionaryColumn(code, _DIRECTIONS)


_MAX_WITHIN = 16
"""Maximum rows between two ops of an update; more are an evaluation between two updates."""


def _find_within_updates(
    direction: IntArray, clips: Mask, unnumbered: Mask, process: Int64Array
) -> Int64Array:
    """Find forward rows without gradients between one that clips and the optimizer's next one."""
    order = np.argsort(process, kind="stable")
    direction, process = direction[order], process[order]
    copies = direction == _COPY
    unclear = (direction == _FPROP) & unnumbered[order]
    optimizer = direction == _OPTIM
    known = np.flatnonzero(~unclear & ~copies)
    rows = np.flatnonzero(unclear)
    behind = np.searchsorted(known, rows)
    rows, behind = (part[(behind > 0) & (behind < len(known))] for part in (rows, behind))
    first, last = known[behind - 1], known[behind]
    near = (process[first] == process[last]) & (last - first <= _MAX_WITHIN)
    within = near & optimizer[first] & clips[order][first] & optimizer[last]
    return np.asarray(order[rows[within]], np.int64)
