"""Events of a trace gathered by category, then made into the tables of a Capture."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from pyprof import schema
from pyprof.readers.kineto import cpu, gpu, header
from pyprof.readers.kineto.columns import Threads, microseconds
from pyprof.readers.kineto.nest import Chains, Nested, nested
from pyprof.readers.kineto.notices import warnings
from pyprof.readers.kineto.ranges import NOTES, OPS, PYTHON, Columns, Ranges
from pyprof.readers.kineto.stopped import stopped
from pyprof.readers.kineto.table import range_table
from pyprof.readers.kineto.threads import Flows, forward_threads

if TYPE_CHECKING:
    from pyprof.readers.kineto.stream import Event, Trace


class Gathered:
    """The events of interest so far, as columns; times without the trace's base."""

    def __init__(self) -> None:
        self._threads = Threads()
        self._ranges = Ranges(self._threads)
        self._flows = Flows(self._threads)
        self._activities: list[pa.Table] = []
        self._calls: list[pa.Table] = []
        self._launch_sizes: list[pa.Table] = []
        self._hosts: list[int] = []
        self.empty = True
        self.untimed = 0
        """Events without a time, which are left out."""

    def add(self, events: list[Event]) -> None:
        """Gather what matters of some events."""
        groups: dict[str, list[Event]] = defaultdict(list)
        for event in events:
            if type(event) is not dict:
                continue
            phase = event.get("ph")
            start = microseconds(event.get("ts"))
            if start is not None:
                event["ts"] = start
                if phase == "X":
                    groups[str(event.get("cat"))].append(event)
                elif event.get("cat") == "fwdbwd":
                    groups["fwdbwd"].append(event)
                elif phase == "M" and (host := header.host(event)) is not None:
                    self._hosts.append(host)
            elif phase == "X":
                self._add_untimed(event, groups)
        for category, group in groups.items():
            self._add(category, group)

    def _add_untimed(self, event: Event, groups: dict[str, list[Event]]) -> None:
        """Keep GPU work of which no time is known; without one, nothing else is of use."""
        category = str(event.get("cat"))
        if category in gpu.ACTIVITIES:
            groups[category].append({**event, "ts": None})
        else:
            self.untimed += 1

    def _add(self, category: str, group: list[Event]) -> None:
        if category in gpu.ACTIVITIES:
            self._activities.append(gpu.activities(gpu.ACTIVITIES[category], group))
        elif category in OPS or category in NOTES:
            self._ranges.add(group)
        elif category == PYTHON:
            self._ranges.add_python(group)
        elif gpu.is_call(category):
            self._calls.append(gpu.calls(group, self._threads))
            self._launch_sizes.append(gpu.launch_sizes(group))
        elif category == "fwdbwd":
            self._flows.add(group)
            return
        else:
            return
        self.empty = False

    def capture(self, trace: Trace) -> schema.Capture:
        """Make the Capture of a trace whose events have all been added."""
        ranges = self._ranges.columns()
        chains = Chains()
        layout = nested(ranges, self._ranges.python(), chains)
        activities, calls = self._work(ranges, layout)
        on_gpu = bool(self._activities)
        base = header.base_ns(trace.header)
        ranks = pa.repeat(pa.scalar(header.rank(trace.header), pa.int32()), activities.num_rows)
        used = pc.unique(activities["device"]).drop_null().to_pylist() if on_gpu else []
        forward = forward_threads(ranges, self._flows)
        left = stopped(ranges, layout, list(self._ranges.names.values()))
        table = range_table(self._ranges, layout, chains, forward, left)
        return schema.Capture(
            tool="kineto",
            version=header.version(trace.header),
            activities=_shifted(_set(activities, "rank", ranks), base),
            calls=_shifted(calls, base),
            ranges=_shifted(table, base),
            threads=_threads(self._threads),
            devices=header.devices(trace.header, used),
            warnings=tuple(warnings(trace, activities, calls, self.untimed)),
        )

    def _work(self, ranges: Columns, layout: Nested) -> tuple[pa.Table, pa.Table]:
        """Give activities and calls; where no GPU worked, the CPU's."""
        if not self._activities:
            names = list(self._ranges.names.values())
            activities, calls = cpu.activities(ranges, layout, names, self._threads)
            return activities, _joined(schema.CALLS, [calls, *self._calls])
        activities = _joined(schema.ACTIVITIES, self._activities)
        calls = _joined(schema.CALLS, self._calls)
        if self._launch_sizes:
            activities = gpu.with_launch_sizes(activities, pa.concat_tables(self._launch_sizes))
        pids = gpu.launching_process(activities, calls, self._threads, self._hosts)
        return _set(activities, "pid", pids), calls


def _joined(kind: pa.Schema, parts: list[pa.Table]) -> pa.Table:
    """Put tables together; texts that they share are kept once."""
    return pa.concat_tables([kind.empty_table(), *parts]).unify_dictionaries().combine_chunks()


def _set(table: pa.Table, name: str, column: pa.Array) -> pa.Table:
    place = table.schema.get_field_index(name)
    return table.set_column(place, table.schema.field(place), column)


def _shifted(table: pa.Table, base_ns: int) -> pa.Table:
    """Move a table's times from the trace's base to 1970."""
    if not base_ns:
        return table
    for name in ("start", "end"):
        table = _set(table, name, pc.add(table[name], base_ns))
    return table


def _threads(threads: Threads) -> pa.Table:
    known = threads.known
    return schema.table(
        schema.THREADS, {"pid": [pid for pid, _ in known], "tid": [tid for _, tid in known]}
    )
