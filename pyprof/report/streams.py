"""GPU streams: where work is queued one after the other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pyprof import schema

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pyprof.parse.records import Records

_ABSENT = -1


@dataclass(frozen=True, slots=True)
class Stream:
    """One stream of one device of one process, and the rows that ran on it, in row order."""

    pid: int | None
    device: int | None
    stream: int | None
    rows: NDArray[np.int64]
    cpu: bool
    """Its rows are ops timed on the CPU, by a capture without a GPU."""
    several_processes: bool

    @property
    def device_label(self) -> str:
        """Spell the device for people; the process only where there are several."""
        name = "CPU ops" if self.cpu else "GPU" if self.device is None else f"GPU {self.device}"
        named = self.several_processes and self.pid is not None
        return f"{name}, process {self.pid}" if named else name

    @property
    def label(self) -> str:
        """Spell device and stream for people."""
        known = self.stream is not None and not self.cpu
        return f"{self.device_label}, stream {self.stream}" if known else self.device_label


def streams(records: Records) -> list[Stream]:
    """List the streams, by process, device and number; None where the records do not say."""
    keys = [records.numpy(name, _ABSENT) for name in ("pid", "device", "stream")]
    if not records.rows:
        return []
    order = np.lexsort(keys[::-1])
    changed = np.zeros(records.rows, bool)
    for key in keys:
        changed[1:] |= np.diff(key[order]) != 0
    several = bool(len(np.unique(keys[0])) > 1)
    kind = records.coded("kind")
    cpu = [value == schema.KINDS[schema.CPU] for value in kind.values] + [False]
    found = []
    for rows in np.split(order, np.flatnonzero(changed)):
        known = [int(key[rows[0]]) for key in keys]
        pid, device, stream = (None if value == _ABSENT else value for value in known)
        found.append(Stream(pid, device, stream, rows, cpu[kind.index[rows[0]]], several))
    return found


def in_order(records: Records, stream: Stream) -> NDArray[np.int64]:
    """Give a stream's rows by start; in row order where the records hold no times."""
    if "start" not in records.columns:
        return stream.rows
    start, end = records.numpy("start")[stream.rows], records.numpy("end")[stream.rows]
    return stream.rows[np.lexsort((end, start))]
