"""The tables of one rank, from a capture of one or several processes."""

from __future__ import annotations

from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING

import numpy as np
import pyarrow.compute as pc

from pyprof import readers, sanitize
from pyprof.analysis.ranks import tables
from pyprof.analysis.ranks.collective_kinds import collectives, returns_at_once
from pyprof.analysis.ranks.tables import Rank, RankTables
from pyprof.analysis.summary.layer_tree import layer_path
from pyprof.analysis.time.intervals import union
from pyprof.analysis.time.steps import Steps, bounds_on_gpu, drop_unlikely, find_steps
from pyprof.analysis.time.timeline import COMMUNICATION, Timeline, activity_classes, timeline
from pyprof.answers.ranks_answer import RankUse
from pyprof.answers.summary_answer import NO_LAYER, describe_origin
from pyprof.errors import CaptureError
from pyprof.inputs import dataset
from pyprof.inputs.find import fetch
from pyprof.parse import parse, record_file
from pyprof.parse.steps.loop_steps import select_process
from pyprof.prof.table import Table
from pyprof.records.merging import merge_sums
from pyprof.records.records import time_by_value

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyprof.inputs.ranks import RankedCapture
    from pyprof.records.records import Records
    from pyprof.schema import Capture


def measure_ranks(member: RankedCapture) -> RankTables:
    """Read a capture, or what `parse` wrote of one, and build the tables of its ranks.

    Raises PyprofError if it cannot be used.
    """
    with fetch(member.url) as path:
        source = sanitize.redact_credentials(member.url)
        clock = dataset.captured_in(path) or member.url
        parts = [
            tables_of_rank(rank, source, records, capture, clock)
            for rank, records, capture in _ranks(path, member)
        ]
    return reduce(merge_sums, parts)


def _ranks(path: Path, member: RankedCapture) -> Iterator[tuple[int, Records, Capture | None]]:
    """Yield the records of each rank, with the capture of its process if the file is one."""
    if readers.is_capture(path):
        capture = readers.read(path)
        for pid, rank in member.ranks:
            own = capture
            if pid is not None:
                work = capture.activities.filter(pc.equal(capture.activities.column("pid"), pid))
                own = replace(select_process(capture, pid), activities=work)
            yield rank, parse(own), own
        return
    records = record_file.load(str(path), raw=False)
    for pid, rank in member.ranks:
        rows = np.flatnonzero(records.numpy("pid") == pid)
        yield rank, records if pid is None else records.take(rows), None


def tables_of_rank(
    rank: int, source: str, records: Records, capture: Capture | None, clock: str
) -> RankTables:
    """Build the tables of one rank; raises CaptureError without GPU work or times."""
    rank_timeline = timeline(records, capture)
    rank_steps = drop_unlikely(find_steps(records, capture))
    if not records.rows:
        raise CaptureError(f"{source}: no GPU work was captured; capture while the GPU is busy")
    if rank_timeline is None:
        raise CaptureError(f"{source}: contains no times; parse the capture again")
    computing = union(device.compute for device in rank_timeline.devices)
    signatures, calls, bubble_ns = collectives(records, rank, rank_steps.of_row, computing)
    # the time of each layer's own rows; waiting in a collective is not work of a layer
    table = Table(records)
    path = table.own_or_forward("layer").map(lambda layers: ".".join(layer_path(layers)) or None)
    work = activity_classes(records) != COMMUNICATION
    by_path = time_by_value(path, table.duration_ns, work)
    return RankTables(
        ranks=(_rank(rank, source, clock, records, rank_timeline, rank_steps, bubble_ns),),
        layers=tables.table(
            tables.LAYERS,
            rank,
            len(by_path),
            layer=[path or NO_LAYER for path in by_path],
            gpu_ns=[time.ns for time in by_path.values()],
        ),
        signatures=signatures,
        collectives=calls,
        warnings=tuple((source, text) for text in records.warnings),
    )


def _rank(
    rank: int, source: str, clock: str, records: Records, rank_timeline: Timeline,
    rank_steps: Steps,
    bubble_ns: int | None,
) -> Rank:  # fmt: skip
    number, pid = records.numpy("device"), records.numpy("pid")
    gpus = [
        RankUse(
            rank=rank,
            device=device.device,
            gpu=device.gpu,
            source=source,
            rows=int(((number == device.device) & (pid == device.pid)).sum()),
            span_ns=device.span_ns,
            busy_ns=device.busy_ns,
            idle_ns=device.idle_ns,
            compute_ns=device.compute.total,
            communication_ns=device.communication.total,
            exposed_ns=device.exposed_communication.total,
            bubble_ns=bubble_ns,
            copy_ns=device.copy.total,
            step_ns=rank_steps.median_ns,
            steps=len(rank_steps),
        )
        for device in rank_timeline.devices
    ]
    own_low_ns, own_ns = _own_ns(records, rank_timeline, rank_steps)
    return Rank(
        number=rank,
        clock=clock,
        origin=describe_origin(rank_steps.origin, rank_steps.covered, guessed=rank_steps.guessed),
        own_ns=own_ns,
        own_low_ns=own_low_ns,
        gpus=tuple(gpus),
    )


def _own_ns(
    records: Records, rank_timeline: Timeline, rank_steps: Steps
) -> tuple[float, float] | tuple[None, None]:
    """Return quartile and median of steps after warm-up without exposed communication.

    None without steps.

    None, too, if some collective's time is only that of its call: a step holds the waiting for it.
    """
    hands_over = records.dictionary("kLongName").matches(lambda name: name.startswith("c10d::"))
    if not len(rank_steps) or (hands_over & returns_at_once(records)).any():
        return None, None
    own = rank_steps.duration_ns
    bounds = bounds_on_gpu(records, rank_steps.of_row, len(rank_steps))
    if bounds is not None:
        alone = union(device.exposed_communication for device in rank_timeline.devices)
        own = own - alone.length_within(bounds[:-1], bounds[1:])
    low_ns, own_ns = np.quantile(own[rank_steps.warm_up :], (0.25, 0.5)).tolist()
    return low_ns, own_ns
