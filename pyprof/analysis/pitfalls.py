"""What a capture hides or distorts, in words: one function per pitfall, registered by a decorator.

Each takes the Capture and yields sentences; none if the capture does not show it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyprof import schema
from pyprof.analysis.summary.counter_totals import counter_totals
from pyprof.analysis.time.intervals import union_of
from pyprof.gpu.peaks import completed, peaks
from pyprof.inputs.counters import with_counters
from pyprof.parse import describe_no_work, parse
from pyprof.parse.assemble import doubts
from pyprof.parse.link_checks import is_clock_skew
from pyprof.parse.ranges.texts import read_texts
from pyprof.prof.table import Table, described_device
from pyprof.quantities import counted
from pyprof.readers import settings

if TYPE_CHECKING:
    from pyprof.arrays import Int64Array

Pitfall: TypeAlias = Callable[[schema.Capture], Iterator[str]]

PITFALLS: list[Pitfall] = []

_MIN_KERNELS = 20
"""Minimum number of kernels to infer that launches block."""
_NEARLY_ALL = 0.95
_MIN_ALLOCATIONS = 10
"""With this many driver allocations, a captured range includes warm-up."""
_OVERLAP = 1.01
"""Ratio of summed kernel times to the time in which any ran, above which streams overlap."""
_HUGE_ROWS = 20_000_000


def pitfall(function: Pitfall) -> Pitfall:
    """Register a function that is called for every capture."""
    PITFALLS.append(function)
    return function


def find_pitfalls(capture: schema.Capture) -> list[str]:
    """Return the warnings of the reader, the parser and every pitfall for a capture, each once."""
    pitfalls = (text for each in PITFALLS for text in each(capture))
    return [*dict.fromkeys((*capture.warnings, *doubts(capture), *pitfalls))]


@pitfall
def empty(capture: schema.Capture) -> Iterator[str]:
    """A capture without GPU work, which every other command refuses."""
    if capture.activities.num_rows:
        return
    if not any("no GPU" in text for text in capture.warnings):
        yield describe_no_work(capture)


@pitfall
def blocking(capture: schema.Capture) -> Iterator[str]:
    """CUDA_LAUNCH_BLOCKING=1 makes every launch wait for its kernel."""
    launched = _launches(capture)
    if len(launched) >= _MIN_KERNELS and (launched[:, 1] >= launched[:, 3]).mean() >= _NEARLY_ALL:
        yield (
            "launches end after their kernels, as with CUDA_LAUNCH_BLOCKING=1: gaps and overlap "
            "are not representative; capture without it"
        )


@pitfall
def early(capture: schema.Capture) -> Iterator[str]:
    """A kernel that starts before its launch: the clocks of CPU and GPU differ."""
    launched = _launches(capture)
    count = int((launched[:, 2] < launched[:, 0]).sum())
    if count and not is_clock_skew(launched[:, 0] - launched[:, 2]):  # which the parser reports
        yield (
            f"{counted(count, 'kernel')} started before the launch: the clocks of CPU and GPU "
            "differ, or records were lost when the capture began; warm up first (--steps 2,2,3)"
        )


@pitfall
def unlinked(capture: schema.Capture) -> Iterator[str]:
    """Without emit_nvtx nothing ties a backward kernel to its forward op."""
    if capture.tool == "ncu":  # it records no ranges
        return
    if not capture.ranges.num_rows:
        if not any("ranges" in warning for warning in capture.warnings):
            yield (
                "no ranges at all: kernels have no op, line or layer; capture with "
                "pyprof capture, or call pyprof.init() and use emit_nvtx"
            )
        return
    if capture.ranges["seq"].null_count == capture.ranges.num_rows:
        yield (
            "no sequence numbers: backward kernels, if any, cannot be tied to forward ops; capture "
            "with pyprof capture, with gradients enabled"
        )
    if not any(said.tells_shapes for said in read_texts(capture.ranges).statements):
        yield (
            "no shapes: FLOPs and bytes are unknown; capture with pyprof capture, or with "
            "record_shapes=True"
        )


@pitfall
def crossing(capture: schema.Capture) -> Iterator[str]:
    """Start/end ranges do not nest, so only the thread tells what is inside them."""
    count = int(pc.sum(pc.equal(capture.ranges["style"], schema.FREE)).as_py() or 0)
    if count:
        yield (
            f"{counted(count, 'start/end range')}: such ranges do not nest, so they name no op, "
            "and layers only for what their own thread launches"
        )


@pitfall
def processes(capture: schema.Capture) -> Iterator[str]:
    """Several processes in one file are fine, but have to be distinguished."""
    pids = pc.unique(capture.activities["pid"]).drop_null()
    if len(pids) > 1:
        yield f"{len(pids)} processes used a GPU: use the column pid to tell them apart"


@pitfall
def warming_up(capture: schema.Capture) -> Iterator[str]:
    """Allocations by the driver and autotuning belong to the first steps only."""
    names = capture.calls["name"].cast(pa.string())
    count = int(
        pc.sum(pc.match_substring_regex(names, r"^(?:cuda|hip)Malloc(?:_v\d+)?$")).as_py() or 0
    )
    if count >= _MIN_ALLOCATIONS:
        yield (
            f"{count} allocations by the driver: the captured range includes warm-up; capture "
            "later steps (--steps 5,2,3)"
        )


@pitfall
def unknown_gpu(capture: schema.Capture) -> Iterator[str]:
    """Peaks need to know the GPU."""
    on_gpu = capture.activities.filter(pc.not_equal(capture.activities["kind"], schema.CPU))
    used = set(pc.unique(on_gpu["device"]).drop_null().to_pylist())
    known = {
        row["device"]
        for row in capture.devices.to_pylist()
        if peaks(completed(described_device(row)))
    }
    if missing := sorted(used - known):
        listed = ", ".join(str(device) for device in missing)
        who = f"devices {listed}" if len(missing) > 1 else f"device {listed}"
        yield f"the peaks of {who} are unknown: eff needs --gpu NAME"


@pitfall
def overlap(capture: schema.Capture) -> Iterator[str]:
    """Streams that run at once make kernel times add up to more than the clock shows.

    Each process is looked at alone: two may use the same number for different devices.
    """
    rows = _with_times(
        capture.activities.filter(pc.not_equal(capture.activities["kind"], schema.CPU))
    )
    users = (
        rows.select(["pid", "device"]).group_by(["pid", "device"], use_threads=False).aggregate([])
    )
    for pid, device in zip(*(column.to_pylist() for column in users.columns), strict=True):
        of_pid = pc.equal(rows["pid"], pid) if pid is not None else pc.is_null(rows["pid"])
        mine = rows.filter(pc.and_(of_pid, pc.equal(rows["device"], device)))
        total = int(pc.sum(pc.subtract(mine["end"], mine["start"])).as_py() or 0)
        union = union_of(mine["start"].to_numpy(), mine["end"].to_numpy()).total
        if total > union * _OVERLAP:
            yield (
                f"device {device}: streams overlap; kernels add up to {total / 1e6:.1f} ms in "
                f"{union / 1e6:.1f} ms of time"
            )


@pitfall
def emulated(capture: schema.Capture) -> Iterator[str]:
    """Double precision done by integers can be faster than the peak for doubles."""
    names = capture.activities["name"].cast(pa.string())
    if bool(pc.any(pc.match_substring_regex(names, "oz2_int8_dgemm|nvjet\\w*_biu_")).as_py()):
        yield (
            "matrix products in double precision are emulated on integer units, so eff may exceed "
            "100 % of the peak for doubles"
        )


@pitfall
def huge(capture: schema.Capture) -> Iterator[str]:
    """A file this large is better captured in part."""
    rows = capture.activities.num_rows + capture.calls.num_rows + capture.ranges.num_rows
    if rows > _HUGE_ROWS:
        yield f"{rows:,} rows: a few steps (--steps 5,2,3) show the same in a fraction of the time"


@pitfall
def counters(capture: schema.Capture) -> Iterator[str]:
    """Counters that did not join, that contradict kernel names, or that show a low clock."""
    counted = capture.activities.column("counters")
    sampled = capture.samples.num_rows
    if counted.null_count == len(counted) and not sampled and not settings.counters():
        return
    records = parse(capture)
    joined = with_counters(records)
    yield from joined.warnings[len(records.warnings) :]
    table = Table(joined)
    totals = counter_totals(table, capture, np.ones(joined.rows, bool), None)
    if totals is None:
        return
    yield from totals.contradictions
    if totals.throttled:
        yield totals.throttled
    if sampled and not table.measured.any:
        yield (
            "metrics were sampled, but too few samples fall on any kernel: capture more steps, or "
            "sample more often"
        )


def _with_times(rows: pa.Table) -> pa.Table:
    return rows.filter(pc.and_(rows["start"].is_valid(), rows["end"].is_valid()))


def _launches(capture: schema.Capture) -> Int64Array:
    """Launch start, launch end, kernel start and kernel end of kernels with a launch."""
    pids = capture.threads["pid"].combine_chunks()
    calls = pa.table(
        {
            "pid": pids.take(capture.calls["thread"].combine_chunks()),
            "corr": capture.calls["corr"],
            "call_start": capture.calls["start"],
            "call_end": capture.calls["end"],
        }
    )
    kernels = capture.activities.filter(pc.equal(capture.activities["kind"], schema.KERNEL))
    columns = _with_times(kernels.select(["pid", "corr", "start", "end"]))
    joined = columns.join(calls, ["pid", "corr"], join_type="inner", use_threads=False)
    names = ("call_start", "call_end", "start", "end")
    return np.stack([joined[name].to_numpy() for name in names], axis=1)
