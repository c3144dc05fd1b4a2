"""Events of a trace gathered by category, then made into the tables of a Capture."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyprof import schema
from pyprof.arrays import set_column
from pyprof.errors import NOTE
from pyprof.quantities import counted
from pyprof.readers.kernel_launches import none_recorded
from pyprof.readers.kineto import ascend, cpu, gloo, gpu
from pyprof.readers.kineto.columns import (
    Threads,
    Timed,
    concat,
    instant,
    ints,
    shifted,
    timed,
    whole_number,
)
from pyprof.readers.kineto.counters import read_samples, sample_table
from pyprof.readers.kineto.cpu import stopped
from pyprof.readers.kineto.file.stream import Trace
from pyprof.readers.kineto.graphs import nodes
from pyprof.readers.kineto.nest import Nested, launch_stacks, nested, range_table
from pyprof.readers.kineto.ranges import HOST, OPS, PYTHON, Columns, Flows, Ranges, forward_threads
from pyprof.readers.kineto.tracks import Tracks, kind_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from pyprof.readers.kineto.counters import Sample
    from pyprof.readers.kineto.file.events import Groups

    Header = Mapping[str, Any]


def rank(header: Header) -> int | None:
    """Return the rank of the process in a distributed job; None if there is none."""
    info = header.get("distributedInfo")
    said = info.get("rank") if isinstance(info, dict) else header.get("pyprof_rank")  # by capture
    number = whole_number(said)
    return number if number is not None and 0 <= number < _MAX_RANKS else None


_MAX_RANKS = 1 << 31
"""A rank this large or larger is damage."""


def version(header: Header) -> str | None:
    """Return torch's version; only traces captured by PyProf and the like state it."""
    stated = (header.get(key) for key in ("torch_version", "pytorch_version"))
    return next((text for text in stated if isinstance(text, str)), None)


def devices(header: Header, used: Sequence[int], named: Mapping[int, str]) -> pa.Table:
    """Return the GPUs that the trace describes; `named` are devices that only a label describes.

    On AMD, events number devices of the node and the description those of the process, which differ
    where only some devices are visible: if all described devices are alike, one that is used but
    not described is taken to be like them.
    """
    listed = header.get("deviceProperties")
    described = (
        [item for item in listed if isinstance(item, dict)] if isinstance(listed, list) else []
    )
    ids = [whole_number(item.get("id")) for item in described]
    if len(described) == 1 and len(used) == 1:
        ids = list(used)
    elif len({tuple(str(item.get(key)) for key in _KIND) for item in described}) == 1:
        missing = [number for number in used if number not in ids]
        described, ids = [*described, *described[:1] * len(missing)], [*ids, *missing]
    labelled = [number for number in used if number in named and number not in ids]
    described = [*described, *({"name": named[number]} for number in labelled)]
    ids = [*ids, *labelled]
    return schema.table(
        schema.DEVICES,
        {
            "device": ints(ids, pa.int32()),
            "name": [str(item["name"]) if "name" in item else None for item in described],
            "sm_count": ints([item.get("numSms") for item in described], pa.int32()),
            "cc_major": ints([item.get("computeMajor") for item in described], pa.int32()),
            "cc_minor": ints([item.get("computeMinor") for item in described], pa.int32()),
            "memory_bytes": ints([item.get("totalGlobalMem") for item in described]),
        },
    )


_KIND = ("name", "numSms", "computeMajor", "computeMinor")
"""Equal for devices of one model; the memory is not, as it also depends on the driver."""


_OF_FUNCTIONS = (
    f"{NOTE}lines are those where functions begin, or were when the profiler started, as in all"
    " stacks of torch.profiler; pyprof.init(emit='profiler') marks exact ones"
)

_ALSO_CUDA = (
    "; if their tensors were on this machine's GPU, that is only the time of launching: record "
    "with ProfilerActivity.CUDA, too"
)
_MPS = r"^aten::(?:.*_)?mps(?:_|$)"
"""Ops that only Apple's GPUs have."""
_ONLY_LAUNCHING = (
    "; some are those of Apple's GPU (MPS), which torch.profiler does not time: what ran there "
    "only has the time of launching"
)
_MAYBE_LAUNCHING = (
    "; if their tensors were on a GPU, its work is among what is missing, and that is only the "
    "time of launching"
)


def _all_lost(calls: pa.Table) -> str | None:
    return none_recorded(calls, np.zeros(len(calls), np.int64))


def _warn_orphans(activities: pa.Table, calls: pa.Table, *, cut: bool) -> Iterator[str]:
    ambiguous = activities["pid"].null_count if calls.num_rows else 0
    if ambiguous:
        yield (
            f"{ambiguous} of {activities.num_rows} kernels and copies share their correlation id "
            "with calls of several processes (merged traces of ranks?), so they have no launch and "
            "no op; read the trace of each rank"
        )
    launched = pc.is_in(activities["corr"], value_set=pc.drop_null(calls["corr"].combine_chunks()))
    orphans = activities.num_rows - (pc.sum(launched).as_py() or 0)
    if orphans == activities.num_rows and not cut:
        yield (
            "no kernel or copy has the correlation id of an API call in the trace (was it "
            "filtered?): they have no launch, so they have no op"
        )
    elif orphans:
        where = "this part of the trace" if cut else "the trace (launched before it began)"
        remedy = "" if cut else "; add warm-up steps to the schedule"
        yield (
            f"{orphans} of {activities.num_rows} kernels and copies have no launch in {where}, so "
            f"they have no op{remedy}"
        )


class TraceTables:
    """The relevant events so far, as columns; times relative to the trace's base."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self._threads = Threads()
        self._ranges = Ranges(self._threads)
        self._flows = Flows(self._threads)
        self._activities: list[pa.Table] = []
        self._measured: list[pa.Table] = []
        """Kernels of CUPTI's range profiler, in traces that have no other ones."""
        self._calls: list[pa.Table] = []
        self._launch_sizes: list[pa.Table] = []
        self._launched: list[pa.Table] = []
        self._tracks = Tracks()
        self._arrows: list[Timed] = []
        self.unknown: list[str] = []
        """Warnings about tracks that are left out, once `finish` was called."""
        self._samples: list[Sample] = []
        self.empty = True
        self._pairs: set[Any] = set()
        """Categories of events that are pairs, B and E, which are left out."""
        self.untimed = 0
        """Events without a time, which are left out."""

    def add(self, groups: Groups) -> None:
        """Gather events and empty `groups`."""
        self._pairs |= {category for phase, category in groups if phase == "B"}
        work = [key for key in groups if key[0] == "X" and key[1] in gpu.ACTIVITIES]
        if work:  # kept even without a time, unlike the rest
            kinds = [gpu.ACTIVITIES[category] for _, category in work]
            self._activities.append(gpu.activities(kinds, [groups.pop(key) for key in work]))
            self.empty = False
        if kernels := groups.pop(("X", gpu.MEASURED), None):
            rows = gpu.measured_kernels(kernels)
            self._measured += [rows] if len(rows) else []
            self.empty = False
        for phase, category in [*groups]:
            group = groups.pop((phase, category))
            if category == "fwdbwd":
                self._flows.add(_only_timed(timed(group)))
            elif phase == "X" and (category in HOST or gpu.is_call(str(category))):
                self._add(category, timed(group))
            elif phase == "X":
                self._tracks.add(str(category), group)
            elif category == ascend.ARROW:
                self._arrows.append(_only_timed(timed(group)))
            elif phase == "C":  # an event would keep all text that was read with it
                self._samples += read_samples(_only_timed(timed(group)))
            elif phase == "M":
                self._tracks.describe(group)

    @property
    def is_jax(self) -> bool:
        """Whether the trace is of JAX, TensorFlow or XLA, which has no ops of torch.profiler."""
        return not self._calls and not len(self._ranges.columns().start) and self._tracks.is_jax

    @property
    def lacks_pairs(self) -> bool:
        """Whether GPU work, or all that the host did, is pairs; a few others were added by hand."""
        return bool(self._pairs & ({*gpu.ACTIVITIES} | (HOST if self.empty else set())))

    def finish(self) -> None:
        """Find the work among events of unknown categories, once all events have been added."""
        hosts = {str(pid) for pid, _ in self._threads.ids}
        work, self.unknown = self._tracks.work(hosts)
        if not work:
            return
        self.empty = False
        rows = gpu.rows([kind_of(event) for event in work], work)
        if self._tracks.is_ascend:
            calls = ascend.calls(self._tracks.of_process(ascend.CALLS), self._threads)
            rows, calls = ascend.with_arrows(rows, timed(work), self._arrows, calls, self._threads)
            self._calls.append(calls)
        self._activities.append(rows)

    def _add(self, category: str, group: Timed) -> None:
        group, all_ = _only_timed(group), len(group.events)
        self.untimed += all_ - len(group.events)
        if not group.events:
            return
        if category == PYTHON:
            self._ranges.add_python(group)
        elif category in HOST:
            self._ranges.add(group, ops=category in OPS)
        else:
            calls, sizes, launched = gpu.calls(group, self._threads)
            self._calls.append(calls)
            self._launch_sizes.append(sizes)
            self._launched.append(launched)
        self.empty = False

    def capture(self) -> schema.Capture:
        """Build the Capture once all events have been added."""
        trace = self.trace
        ranges, layout, table = self._nest_ranges()
        activities, calls, traced = self._work(ranges, layout, table)
        if trace.cut and trace.header.get("deviceProperties"):
            # Work of a GPU is written last.
            activities = activities.filter(pc.not_equal(activities["kind"], schema.CPU))
        on_gpu = bool(self._activities or self._measured)
        if on_gpu:
            launches = calls.filter(pc.is_in(calls["corr"], activities["corr"].combine_chunks()))
            stacks = launch_stacks(launches, self._ranges, layout)
            table = concat(schema.RANGES, [table, stacks])
        base = _base_ns(trace)
        ranks = pa.repeat(pa.scalar(rank(trace.header), pa.int32()), activities.num_rows)
        used = pc.unique(activities["device"]).drop_null().to_pylist() if on_gpu else []
        return schema.Capture(
            tool="kineto",
            version=version(trace.header),
            activities=shifted(set_column(activities, "rank", ranks), base, *_TIMES),
            calls=shifted(calls, base, *_TIMES),
            ranges=shifted(table, base, *_TIMES),
            threads=self.threads(),
            devices=devices(trace.header, used, self._tracks.names()),
            samples=sample_table(self._samples, base),
            traced_ops=traced,
            warnings=tuple(self._warnings(activities, calls, traced)),
        )

    def _warnings(self, activities: pa.Table, calls: pa.Table, traced: int) -> Iterator[str]:
        if traced:
            yield f"left out: {traced:,} {schema.TRACED}"
        if self._ranges.only_frames:
            yield _OF_FUNCTIONS
        yield from self.unknown
        if self.trace.cut and not activities.num_rows:
            yield schema.TRUNCATED
            return
        if self.trace.cut:
            yield (
                "the trace is truncated (a killed job?): only complete events are shown; "
                "capture again, and let the job finish"
            )
        if self.trace.lost:
            yield f"{counted(self.trace.lost, 'event')} left out: not valid JSON"
        if self.untimed:
            yield f"{counted(self.untimed, 'event')} of the CPU left out: impossible times"
        if self._measured and not self._activities:
            yield (
                "kernels were measured one at a time by CUPTI's range profiler, which records no "
                "times: they have those of gpu__time_duration.sum if all were measured, and are "
                "otherwise spread evenly; for real times capture again without it"
            )
        if not activities.num_rows:
            yield (
                _all_lost(calls)
                or "this trace has no ops with a duration, and no work on a device's track"
            )
        elif activities["kind"][0].as_py() == schema.CPU:
            without = "" if self.unknown else "no GPU work was captured: "
            has_gpu = bool(self.trace.header.get("deviceProperties"))
            only_cpu = calls.num_rows == activities.num_rows  # the rows' own: no call of CUDA
            also = _ALSO_CUDA if has_gpu and only_cpu else ""
            on_mps = pc.match_substring_regex(activities["name"].cast(pa.string()), _MPS)
            also = _ONLY_LAUNCHING if pc.any(on_mps).as_py() else also
            more = _MAYBE_LAUNCHING if self.trace.cut else also
            yield f"{without}rows are CPU ops, timed on the CPU{more}"
        else:
            yield from _warn_orphans(activities, calls, cut=self.trace.cut)

    def ranges(self) -> pa.Table:
        """Build the table of ranges once all events have been added."""
        *_, table = self._nest_ranges()
        return shifted(table, _base_ns(self.trace), *_TIMES)

    def threads(self) -> pa.Table:
        """Build the table of threads once all events have been added."""
        ids = self._threads.ids
        columns = {"pid": [pid for pid, _ in ids], "tid": [tid for _, tid in ids]}
        return schema.table(schema.THREADS, columns)

    def captured(self) -> nodes.Captured:
        """Return the graphs that were captured in the trace."""
        ran = [table["corr"].combine_chunks() for table in self._activities]
        graphs = nodes.captured(
            concat(schema.CALLS, self._calls),
            lambda: concat(gpu.LAUNCHED, self._launched),
            pa.concat_arrays([pa.array([], pa.int64()), *ran]),
            np.array([pid for pid, _ in self._threads.ids], dtype=np.int64),
        )
        return graphs._replace(launches=shifted(graphs.launches, _base_ns(self.trace), "time"))

    def _nest_ranges(self) -> tuple[Columns, Nested, pa.Table]:
        """Return the ranges, how they are nested, and the table of both."""
        ranges = self._ranges.columns()
        layout = nested(ranges, self._ranges.python())
        forward = forward_threads(ranges, self._flows)
        left = stopped(ranges, layout, self._ranges.names)
        return ranges, layout, range_table(self._ranges, layout, forward, left)

    def _work(
        self, ranges: Columns, layout: Nested, table: pa.Table
    ) -> tuple[pa.Table, pa.Table, int]:
        """Return activities and calls; if no GPU worked, the CPU's, and how many ops it traced."""
        if not self._activities and self._measured:
            calls = concat(schema.CALLS, self._calls)
            kernels = concat(schema.ACTIVITIES, self._measured)
            activities = gpu.with_launches(kernels, calls)
        elif not self._activities:
            launching = concat(schema.CALLS, self._calls)
            if _all_lost(launching):  # the ops only took the time to launch what is missing
                return schema.ACTIVITIES.empty_table(), launching, 0
            names = self._ranges.names
            activities, calls, traced = cpu.activities(ranges, layout, names, self._threads)
            activities = gloo.with_run_times(activities, table, self._threads)
            return activities, concat(schema.CALLS, [calls, launching]), traced
        else:
            activities = concat(schema.ACTIVITIES, self._activities)
            calls = concat(schema.CALLS, self._calls)
            if self._launch_sizes:
                activities = gpu.with_launch_sizes(activities, pa.concat_tables(self._launch_sizes))
        pids = gpu.launching_process(activities, calls, self._threads, self._tracks.host)
        return set_column(activities, "pid", pids), calls, 0


def gather(path: Path) -> TraceTables:
    """Gather the relevant events of a trace."""
    gathered = TraceTables(Trace(path))
    for groups in gathered.trace.events():
        gathered.add(groups)
    gathered.finish()
    return gathered


def _only_timed(group: Timed) -> Timed:
    return group.filter(np.isfinite(group.us))


_TIMES = ("start", "end")


def _base_ns(trace: Trace) -> int:
    return instant(trace.header.get("baseTimeNanoseconds"))
