"""GPU streams in a timeline: kernels and copies, and above them their layers and ops."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyprof import schema
from pyprof.analysis.time.timeline import in_order, streams
from pyprof.export.trace_lines import (
    dictionary,
    event,
    fill,
    integers,
    microseconds,
    numbers_or_null,
)
from pyprof.prof.columns.standard import COLUMNS
from pyprof.records.records import combinations, encode

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pyprof.analysis.time.timeline import Stream
    from pyprof.arrays import Int64Array, IntArray
    from pyprof.prof.table import Table
    from pyprof.records.records import Records


_CATEGORIES = {"memcpy": "gpu_memcpy", "memset": "gpu_memset", "cpu": "cpu_op"}
_ABOVE = 1_000_000
"""Offset from a stream's number to the track of its layers and ops."""

_SLICE = (
    '{"ph":"X","cat":$cat,"name":$name,"pid":$pid,"tid":$tid,"ts":$ts,"dur":$dur,"args":{'
    '"device":$device,"stream":$tid,"correlation":$corr,"External id":$call,"op":$op,'
    '"layer":$layer,"line":$line,"grid":$grid,"block":$block,"registers per thread":$regs,'
    '"shared memory":$smem,"bytes":$moved,"flops":$flops,"needed bytes":$least,"bound":$bound}}'
)


@dataclass(frozen=True, slots=True)
class Track:
    """Where a stream's slices are shown."""

    stream: Stream
    pid: int
    """Unique for each device of each process."""

    @property
    def tid(self) -> int:
        """The stream's number."""
        return self.stream.stream or 0


def tracks(table: Table) -> list[Track]:
    """Assign a track to each stream; a device's number is its `pid`, as in Kineto's traces."""
    all_streams = streams(table.records)
    host = set(table.records.arrow("pid").unique().to_pylist())
    devices = dict.fromkeys((stream.pid, stream.device) for stream in all_streams)
    used: set[int] = set()
    numbers = {}
    for key in devices:
        number = key[1] or 0
        while number in used or number in host:
            number += 1
        used.add(number)
        numbers[key] = number
    return [Track(stream, numbers[stream.pid, stream.device]) for stream in all_streams]


def described(table: Table, tracks: list[Track]) -> Iterator[str]:
    """Name the tracks, and the devices of their rows."""
    gpu = table.records.dictionary("gpu")
    for number in dict.fromkeys(track.pid for track in tracks):
        stream = next(track.stream for track in tracks if track.pid == number)
        code = gpu.index[stream.rows[0]]
        name = gpu.values[code] if code >= 0 else None
        label = stream.device_label + (f": {name}" if name else "")
        yield event(ph="M", name="process_name", pid=number, tid=0, args={"name": label})
        yield event(ph="M", name="process_sort_index", pid=number, tid=0,
                    args={"sort_index": _ABOVE + number})  # fmt: skip
    for track in tracks:
        name = f"stream {track.stream.stream}" if track.stream.stream is not None else "work"
        for tid, text in ((track.tid + _ABOVE, f"{name}: layers, ops"), (track.tid, name)):
            yield event(ph="M", name="thread_name", pid=track.pid, tid=tid, args={"name": text})


def work(
    table: Table, tracks: list[Track], begin_ns: int, *, ops_on_host: bool
) -> Iterator[pa.Array]:
    """Write every row as a slice of its stream.

    Ops timed on the CPU are left out if their threads show them (`ops_on_host`).
    """
    pid, tid = _places(table.records.rows, tracks)
    records = table.records
    kind = records.dictionary("kind")
    texts = {key: encode(table.dictionary_array(key)) for key in ("op", "layer", "line", "bound")}
    texts |= {key: records.dictionary(key) for key in ("grid", "block")}
    numbers = {key: records.arrow(column) for key, column in (
        ("device", "device"), ("corr", "corrId"), ("regs", "regs"), ("smem", "smem"),
        ("moved", "bytes"))}  # fmt: skip
    numbers |= {"call": pa.array(table.costs.call)}
    numbers |= {"flops": COLUMNS["flops"].values(table), "least": COLUMNS["bytes"].values(table)}
    on_host = records.of_kind(schema.CPU) if ops_on_host else np.zeros(records.rows, bool)
    yield fill(
        _SLICE,
        cat=dictionary([_CATEGORIES.get(value, "kernel") for value in kind.values], kind.index),
        name=dictionary(*_names(records)),
        pid=pc.if_else(pa.array(on_host), None, integers(pid)),
        tid=integers(tid),
        ts=microseconds(records.numpy("start") - begin_ns),
        dur=microseconds(table.duration_ns),
        **{key: numbers_or_null(column) for key, column in numbers.items()},
        **{key: dictionary(column.values, column.index) for key, column in texts.items()},
    )


_TRANSFER = re.compile(r"\[CUDA (?:Unified Memory )?mem(cpy|set)\b([^]]*)\]")


def _names(records: Records) -> tuple[list[str | None], Int64Array]:
    """Name copies and fills as torch.profiler does, for readers that recognise them by name."""
    name, original = records.dictionary("kLongName"), records.dictionary("originalName")
    own = [
        f"Mem{match[1]}{match[2]}" if (match := _TRANSFER.fullmatch(text)) else text
        for text in name.values
    ]
    index = np.where(original.index < 0, name.index, len(own) + original.index)
    return [*own, *original.values], index


def _places(rows: int, tracks: list[Track]) -> tuple[Int64Array, Int64Array]:
    pid, tid = np.zeros(rows, np.int64), np.zeros(rows, np.int64)
    for track in tracks:
        pid[track.stream.rows], tid[track.stream.rows] = track.pid, track.tid
    return pid, tid


def arrows(table: Table, tracks: list[Track], begin_ns: int) -> Iterator[pa.Array]:
    """Write a flow from each launch to its row, if the launch is known."""
    records = table.records
    launch = records.arrow("launch")
    if launch.null_count == len(launch):
        return
    rows = np.flatnonzero(launch.is_valid().to_numpy(zero_copy_only=False))
    called = launch.flatten().to_numpy()[::2]
    pid, tid = _places(records.rows, tracks)
    ends = (
        ("s", "", records.numpy("pid"), records.numpy("tid"), called),
        ("f", '"bp":"e",', pid, tid, records.numpy("start")[rows]),
    )
    for phase, binding, process, thread, time in ends:
        template = ('{"ph":"' + phase + '",' + binding + '"id":$id,"cat":"ac2g","name":"ac2g",'
                    '"pid":$pid,"tid":$tid,"ts":$ts}')  # fmt: skip
        yield fill(
            template,
            id=integers(rows),
            pid=integers(process[rows]),
            tid=integers(thread[rows]),
            ts=microseconds(time - begin_ns),
        )


def spans(table: Table, tracks: list[Track], begin_ns: int) -> Iterator[str]:
    """Write, for each stream, nested slices of the layers and ops of its rows.

    If the capture has several windows, each is a slice around them.
    """
    paths, path_of = _paths(table)
    op = encode(table.dictionary_array("op"))
    for track in tracks:
        runs = _runs(table, in_order(table.records, track.stream), path_of, op.index)
        for level, name, start, end in _nested_slices(runs, paths, [*op.values, None]):
            yield event(ph="X", cat=level, name=name, pid=track.pid, tid=track.tid + _ABOVE,
                        ts=(start - begin_ns) / 1000, dur=(end - start) / 1000)  # fmt: skip


def _paths(table: Table) -> tuple[list[tuple[str, ...]], IntArray]:
    """Return the distinct paths (window and layers, outermost first), and the path of each row."""
    layer = table.own_or_forward("layer")
    layers = [*(tuple(value or ()) for value in layer.values), ()]
    if "window" not in table.records.columns:
        return layers, layer.index.astype(np.int64)
    window = table.records.numpy("window")
    first, number = combinations(window, layer.index)
    pairs = zip(window[first].tolist(), layer.index[first].tolist(), strict=True)
    return [
        ((f"window {place}",) if place >= 0 else ()) + layers[inside] for place, inside in pairs
    ], number


_Run = tuple[int, int, int, int]
"""Start, end, path and op of consecutive rows of a stream with the same op call and layer."""


def _runs(table: Table, rows: Int64Array, path: IntArray, op: IntArray) -> Iterator[_Run]:
    start, end = (table.records.numpy(name)[rows] for name in ("start", "end"))
    keys = (path[rows], op[rows], table.costs.call[rows])
    changed = np.any([np.diff(key) != 0 for key in keys], axis=0)
    first = np.concatenate([[0], np.flatnonzero(changed) + 1]).astype(np.int64)
    last_end = np.maximum.reduceat(end, first)
    last_end[:-1] = np.minimum(last_end[:-1], start[first[1:]])  # slices of one track must nest
    columns = (start[first], last_end, keys[0][first], keys[1][first])
    return zip(*(column.tolist() for column in columns), strict=True)


def _nested_slices(
    runs: Iterable[_Run], paths: list[tuple[str, ...]], ops: list[str | None]
) -> Iterator[tuple[str, str, int, int]]:
    """Join runs of one window and layer; yield category, name, start and end of each slice."""
    open_: list[tuple[str, int]] = []
    end = 0
    for start, run_end, index, op in runs:
        path = paths[index]
        same = 0
        while same < min(len(path), len(open_)) and open_[same][0] == path[same]:
            same += 1
        while len(open_) > same:
            name, begun = open_.pop()
            yield "gpu_user_annotation", name, begun, end
        open_.extend((name, start) for name in path[same:])
        end = run_end
        if (called := ops[op]) is not None:
            yield "gpu_op", called, start, run_end
    for name, begun in reversed(open_):
        yield "gpu_user_annotation", name, begun, end
