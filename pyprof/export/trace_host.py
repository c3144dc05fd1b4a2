"""CPU threads in a timeline: ranges of layers and ops, and the API calls inside them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyprof import marker, schema
from pyprof.analysis.time import host_api
from pyprof.arrays import ints
from pyprof.export.trace_lines import (
    dictionary,
    event,
    fill,
    integers,
    microseconds,
    numbers_or_null,
)
from pyprof.marker import Kind, Statement
from pyprof.parse.launches import launch_bounds
from pyprof.parse.ranges.texts import read_texts
from pyprof.prof.step_rows import PARTS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyprof.records.records import Records
    from pyprof.schema import Capture


_SLICE = (
    '{"ph":"X","cat":$cat,"name":$name,"pid":$pid,"tid":$tid,"ts":$ts,"dur":$dur,'
    '"args":{"correlation":$corr}}'
)
_RANGE = '{"ph":"X","cat":$cat,"name":$name,"pid":$pid,"tid":$tid,"ts":$ts,"dur":$dur}'
_FREE = '{"ph":"$phase","cat":$cat,"name":$name,"pid":$pid,"tid":$tid,"ts":$ts,"id":$id}'
_OPS, _USER = "cpu_op", "user_annotation"


def described(records: Records, capture: Capture | None) -> Iterator[str]:
    """Name the processes, and their threads by the parts of a step that they launch."""
    rows = pa.table({name: records.arrow(name) for name in ("pid", "rank")})
    groups = rows.group_by("pid", use_threads=False).aggregate([("rank", "min")]).to_pylist()
    ranks = {row["pid"]: row["rank_min"] for row in groups if row["pid"] is not None}
    parts = _parts_of_threads(records)
    threads = {*parts}
    if capture is not None:
        numbered = capture.threads.select(["pid", "tid"]).drop_null()
        threads.update(zip(*(column.to_pylist() for column in numbered.columns), strict=True))
    for pid in sorted({pid for pid, _ in threads} | set(ranks)):
        rank = "" if ranks.get(pid) is None else f", rank {ranks[pid]}"
        yield event(ph="M", name="process_name", pid=pid, tid=0, args={"name": f"CPU{rank}"})
    for pid, tid in sorted(threads):
        part = ", ".join(parts.get((pid, tid), ()))
        name = f"thread {tid}{f': {part}' if part else ''}"
        yield event(ph="M", name="thread_name", pid=pid, tid=tid, args={"name": name})


def _parts_of_threads(records: Records) -> dict[tuple[int, int], list[str]]:
    """Return the parts of a step that each thread launched, in the order of `PARTS`."""
    direction = records.dictionary("dir")
    rows = pa.table(
        {"pid": records.arrow("pid"), "tid": records.arrow("tid"), "dir": direction.arrow_index()}
    )
    directions: dict[tuple[int, int], set[str]] = {}
    for row in rows.group_by(["pid", "tid", "dir"], use_threads=False).aggregate([]).to_pylist():
        if row["pid"] is not None and row["tid"] is not None:
            launched = directions.setdefault((row["pid"], row["tid"]), set())
            launched.add("" if row["dir"] is None else direction.values[row["dir"]])
    return {
        thread: [part for name, part in PARTS.items() if name in launched]
        for thread, launched in directions.items()
    }


def calls(capture: Capture, begin_ns: int) -> Iterator[pa.Array]:
    """Write every API call of a capture."""
    table = capture.calls
    if table.num_rows:
        name = table.column("name").unify_dictionaries().combine_chunks()
        yield fill(
            _SLICE,
            cat=dictionary(["cuda_runtime"], np.zeros(table.num_rows, np.int64)),
            name=dictionary(name.dictionary.to_pylist(), ints(name.indices)),
            corr=numbers_or_null(table.column("corr").combine_chunks()),
            **_track_and_time(capture, table, begin_ns),
        )


def launches(records: Records, begin_ns: int) -> Iterator[pa.Array]:
    """Write the launches in records; the names of their calls are unknown."""
    launch = records.arrow("launch")
    recorded = launch.is_valid().to_numpy(zero_copy_only=False)
    rows = np.flatnonzero(recorded & host_api.called_itself(records))
    if not len(rows):
        return
    start, end = (bound[rows] for bound in launch_bounds(records))
    yield fill(
        _SLICE,
        cat=dictionary(["cuda_runtime"], np.zeros(len(rows), np.int64)),
        name=dictionary(["launch"], np.zeros(len(rows), np.int64)),
        corr=numbers_or_null(records.arrow("corrId").take(pa.array(rows))),
        pid=integers(records.numpy("pid")[rows]),
        tid=integers(records.numpy("tid")[rows]),
        ts=microseconds(start - begin_ns),
        dur=microseconds(end - start),
    )


def ranges(capture: Capture, begin_ns: int) -> Iterator[pa.Array]:
    """Write the ranges of ops, layers and users that have an end."""
    closed = capture.ranges.filter(pc.is_valid(capture.ranges.column("end")))
    if not closed.num_rows:
        return
    texts = read_texts(closed)
    shown = [*map(_category_and_name, texts.statements)]
    cat = np.array([entry is not None for entry in shown], bool)[texts.code]
    free = ints(closed.column("style")) == schema.FREE
    for rows, free_style in ((cat & ~free, False), (cat & free, True)):
        if rows.any():
            chosen = closed.filter(pa.array(rows))
            code = texts.code[rows].astype(np.int64)
            labels = {
                "cat": dictionary([entry[0] if entry else "" for entry in shown], code),
                "name": dictionary([entry[1] if entry else "" for entry in shown], code),
            }
            where = _track_and_time(capture, chosen, begin_ns)
            if not free_style:
                yield fill(_RANGE, **labels, **where)
                continue
            # ranges that need not nest are asynchronous ones, each with an id
            where |= {"id": integers(np.arange(chosen.num_rows))}
            for phase, bound in (("b", "start"), ("e", "end")):
                where["ts"] = microseconds(ints(chosen.column(bound)) - begin_ns)
                yield fill(_FREE.replace("$phase", phase), **labels, **where)


def _track_and_time(capture: Capture, table: pa.Table, begin_ns: int) -> dict[str, pa.Array]:
    thread = ints(table.column("thread"))
    start, end = ints(table.column("start")), ints(table.column("end"))
    return {
        "pid": integers(ints(capture.threads.column("pid"))[thread]),
        "tid": integers(ints(capture.threads.column("tid"))[thread]),
        "ts": microseconds(start - begin_ns),
        "dur": microseconds(end - start),
    }


def _category_and_name(said: Statement) -> tuple[str, str] | None:
    """Return the category and name of a range; None for stacks and texts kept for parsing."""
    if said.kind in (Kind.TRACE, Kind.MODULE):
        return None
    if said.kind == Kind.OP:
        return None if said.call is None else (_OPS, f"{said.call.mod}.{said.call.op}")
    if said.kind == Kind.SEQ:
        return _OPS, said.name
    return _USER, marker.layer_name(said.text) if said.kind == Kind.LAYER else said.text
