"""Which tracks of a trace are a device's: their events are work, in whatever category.

Each backend chooses its own categories, so a list of them is never complete. A track is a
device's by its label ("MTIA 0"), its process's name ("Ascend Hardware"), or because its events name
a device and a stream.
"""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TYPE_CHECKING

from pyprof import schema
from pyprof.readers import refusals
from pyprof.readers.kineto.columns import microseconds, whole_number
from pyprof.readers.kineto.file.events import all_args

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator

    from pyprof.readers.kineto.file.events import Event

ASCEND = "Ascend Hardware"
"""The process of NPU work in traces of torch_npu; other tracks there repeat that work."""

_NO_WORK = re.compile(
    r".*annotation.*|.*_sync|overhead|cuda_event|mlu_notifier|Trace|external_correlation|.*profiler_range"
    r"|gpu_op"  # of our own export, above the kernels
)
"""Categories of events that may lie on a device's track but are not work."""
_HOST_LABEL, _HOST_NAMES = "CPU", ("CANN", "Python", "MindSpore")
"""The label, and names, of processes that belong to no device."""
_DEVICE = re.compile(r"\b(GPU|NPU|XPU|HPU|MTIA|TPU|MLU|GCU|IPU|PrivateUse1)\b:?\s*(\d{1,4})?")
"""In the label or name of a device's process: its kind, and its number if stated."""
_NO_STREAM = re.compile(r"Step Trace")
"""Threads of a device's process that repeat the work of its streams."""
_EVENT = re.compile(r"EVENT_(?:WAIT|RECORD)(?:_SQE)?", re.IGNORECASE)
"""The type, and often the name, of an NPU's tasks that wait for another stream, or let it go on."""
_MOVES = ((re.compile(r"\W*memcpy", re.IGNORECASE), schema.MEMCPY),
          (re.compile(r"\W*memset", re.IGNORECASE), schema.MEMSET))  # fmt: skip


def kind_of(event: Event) -> int:
    """Return the kind of a device's event, by its category and name."""
    for pattern, kind in _MOVES:
        if pattern.match(str(event.name)) or pattern.match(str(event.cat).removeprefix("gpu_")):
            return kind
    return schema.KERNEL


class Tracks:
    """The processes and threads that a trace describes, and its events of other categories."""

    def __init__(self) -> None:
        self._labels: dict[str, str] = {}
        self._names: dict[str, str] = {}
        self._threads: dict[tuple[str, str], str] = {}
        self._events: list[Event] = []

    def describe(self, events: Iterable[Event]) -> None:
        """Gather metadata events."""
        for event in events:
            if event.name not in ("process_labels", "process_name", "thread_name"):
                continue
            said, pid = all_args(event), str(event.pid)
            if event.name == "process_labels":
                self._labels[pid] = str(said.get("labels", ""))
            elif event.name == "process_name":
                self._names[pid] = str(said.get("name", ""))
            else:
                self._threads[pid, str(event.tid)] = str(said.get("name", ""))

    def add(self, category: str, events: list[Event]) -> None:
        """Gather events of an unknown category, if they may be work."""
        if not _NO_WORK.fullmatch(category):
            self._events += events

    @property
    def is_jax(self) -> bool:
        """Whether the trace is of JAX, TensorFlow or XLA, which looks like torch.profiler's."""
        return refusals.is_jax(self._names.values())

    @property
    def host(self) -> int | None:
        """The process that is labelled as the CPU's, if there is one."""
        hosts = (whole_number(pid) for pid, each in self._labels.items() if each == _HOST_LABEL)
        return next((host for host in hosts if host is not None), None)

    @property
    def is_ascend(self) -> bool:
        """Whether the trace is torch_npu's."""
        return ASCEND in self._names.values()

    def of_process(self, name: str) -> list[Event]:
        """Return the gathered events of the processes of one name."""
        pids = {pid for pid, each in self._names.items() if each == name}
        return [event for event in self._events if str(event.pid) in pids]

    def names(self) -> dict[int, str]:
        """Return the names of devices other than GPUs, by their numbers."""
        names: dict[int, str] = {}
        for pid, number in self._numbers().items():
            match = self._match(pid)
            if self._names.get(pid) == ASCEND:
                names[number] = "Ascend NPU"
            elif match is not None and match[1] != "GPU":
                names[number] = match[1]
        return names

    def _match(self, pid: str) -> re.Match[str] | None:
        return _DEVICE.search(self._labels.get(pid, "")) or _DEVICE.search(self._names.get(pid, ""))

    def _numbers(self) -> dict[str, int]:
        """Number the processes that are devices: as their labels do, else from 0."""
        numbers: dict[str, int] = {}
        for pid in {**self._labels, **self._names}:
            match = self._match(pid)
            is_device = match is not None and self._labels.get(pid) != _HOST_LABEL
            if self._names.get(pid) == ASCEND if self.is_ascend else is_device:
                stated = match[2] if match is not None else None
                numbers[pid] = len(numbers) if stated is None else int(stated)
        return numbers

    def work(self, hosts: Container[str]) -> tuple[list[Event], list[str]]:
        """Return devices' work among the gathered events, and warnings about unknown tracks.

        Tracks of hosts, which are processes with ops or calls, are neither. The process of an event
        becomes the number of its device.
        """
        numbers = self._numbers()
        work: list[Event] = []
        others: dict[str, list[Event]] = defaultdict(list)
        for event in self._events:
            pid = str(event.pid)
            if pid in numbers:
                idle = _NO_STREAM.match(self._threads.get((pid, str(event.tid)), "")) is not None
                if self.is_ascend and not idle:  # what an NPU lists may only wait
                    said = (event.name, all_args(event).get("Task Type"))
                    idle = any(_EVENT.fullmatch(str(each)) for each in said)
                if not idle:
                    event.pid = numbers[pid]
                    work.append(event)
            elif (
                self.is_ascend
                or pid in hosts
                or self._labels.get(pid) == _HOST_LABEL
                or self._names.get(pid) in _HOST_NAMES
            ):
                continue
            else:
                args = all_args(event)
                named = all(whole_number(args.get(key)) is not None for key in ("device", "stream"))
                (work if named else others[pid]).append(event)
        return work, [*self._warn_unknown(others)]

    def _warn_unknown(self, others: dict[str, list[Event]]) -> Iterator[str]:
        for pid, events in others.items():
            lengths = [microseconds(event.dur) or 0.0 for event in events]
            if total_us := sum(length for length in lengths if length > 0):
                name = self._names.get(pid) or self._labels.get(pid) or pid
                yield (
                    f"the track {name!r} ({len(events):,} events, {total_us / 1000:,.3f} ms) is "
                    "that of no device or process that PyProf knows: it is left out"
                )
