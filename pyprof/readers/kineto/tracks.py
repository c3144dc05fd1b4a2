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
            pid = str(event.pid)
            if event.name == "process_labels":
                self._labels[pid] = str(all_args(event).get("labels", ""))
            elif event.name == "process_name":
                self._names[pid] = str(all_args(event).get("name", ""))
            elif event.name == "thread_name":
                self._threads[pid, str(event.tid)] = str(all_args(event).get("name", ""))

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
        return {number: kind for number, kind in self._devices().values() if kind != "GPU"}

    def _devices(self) -> dict[str, tuple[int, str]]:
        """Return number and kind of each process that is a device: as in its label, else from 0."""
        devices: dict[str, tuple[int, str]] = {}
        for pid in {**self._labels, **self._names}:
            label, name = self._labels.get(pid, ""), self._names.get(pid, "")
            match = _DEVICE.search(label) or _DEVICE.search(name)
            kind = match[1] if match is not None and label != _HOST_LABEL else None
            if self.is_ascend:
                kind = "Ascend NPU" if name == ASCEND else None
            if kind is not None:
                number = match[2] if match is not None else None
                devices[pid] = (len(devices) if number is None else int(number), kind)
        return devices

    def work(self, hosts: Container[str]) -> tuple[list[Event], list[str]]:
        """Return devices' work among the gathered events, and warnings about unknown tracks.

        Tracks of hosts, which are processes with ops or calls, are neither. The process of an event
        becomes the number of its device.
        """
        devices = self._devices()
        work: list[Event] = []
        others: dict[str, list[Event]] = defaultdict(list)
        for event in self._events:
            pid = str(event.pid)
            if pid in devices:
                idle = _NO_STREAM.match(self._threads.get((pid, str(event.tid)), "")) is not None
                if self.is_ascend and not idle:  # what an NPU lists may only wait
                    said = (event.name, all_args(event).get("Task Type"))
                    idle = any(_EVENT.fullmatch(str(each)) for each in said)
                if not idle:
                    event.pid, _ = devices[pid]
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
