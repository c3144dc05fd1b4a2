"""rocpd: the SQLite database of AMD's rocprofv3 (ROCm 6.4 and later), schemas 3 and 4.

The only package that knows its schema. The file also holds the host's name, the environment and the
command line, which are never read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from pyprof import schema
from pyprof.arrays import MISSING, ints
from pyprof.readers import cupti
from pyprof.readers.order import in_order
from pyprof.readers.rocpd import agents, counters, host, work
from pyprof.readers.rocpd.recording import recordings, suffixes
from pyprof.readers.sqlite.tables import MAGIC, Database

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pyprof.arrays import Int64Array
    from pyprof.readers.rocpd.host import Host
    from pyprof.readers.rocpd.recording import Recording

FORMAT = "a rocpd database of rocprofv3 (.db)"

TELLS_RANK = False


def sniff(path: Path, head: bytes) -> bool:
    """Recognise a rocpd file by its tables of GPU work."""
    return head.startswith(MAGIC) and bool(suffixes(Database(path).tables()))


def read(path: Path) -> schema.Capture:
    """Read the kernels, copies, API calls and ranges of a rocpd file."""
    db = Database(path)
    numbers = _Processes()
    several, gpus, parts = [], [], []
    for number, recording in enumerate(recordings(db)):
        known = agents.Agents(recording)
        pid = numbers.by_id(number, recording)
        side = host.read(recording, pid)
        parts += [part(recording, known, side, pid) for part in (work.kernels, work.copies)]
        gpus.append(known)
        several.append(side)
    activities = in_order(cupti.concat([part for part in parts if part.num_rows] or parts[:1]))
    joined = _joined(several)
    return schema.Capture(
        tool="rocpd",
        version=_version(db),
        activities=activities,
        devices=agents.table(gpus),
        warnings=(*numbers.warnings(), *_warnings(activities, joined)),
        **joined,
    )


def identity(path: Path) -> schema.Identity:
    """Return the processes with GPU work, in the order of the devices that they use first."""
    first_device: dict[int, int] = {}
    numbers = _Processes()
    for number, recording in enumerate(recordings(Database(path))):
        known, pid = agents.Agents(recording), numbers.by_id(number, recording)
        for table, agent in (("kernel_dispatch", "agent_id"), ("memory_copy", "dst_agent_id")):
            rows = recording.spans(table, agent)
            devices = known.devices(ints(rows.column(agent)))
            devices = np.where(devices == MISSING, _LAST, devices)
            for process in np.unique(ints(rows.column("pid"))):
                ours = int(pid(np.array([process]))[0])
                lowest = int(devices[ints(rows.column("pid")) == process].min())
                first_device[ours] = min(first_device.get(ours, _LAST), lowest)
    first_device.pop(MISSING, None)
    return schema.Identity(
        pids=tuple(sorted(first_device, key=lambda each: (first_device[each], each)))
    )


_LAST = 1 << 31
"""Greater than every device: for work whose device is not recorded."""


class _Processes:
    """Numbers of processes that are unique in the file: in containers many have the same one."""

    def __init__(self) -> None:
        self._taken: dict[int, tuple[int, int]] = {}
        self._again: set[int] = set()

    def by_id(self, number: int, recording: Recording) -> Callable[[Int64Array], Int64Array]:
        """Return the function from ids of a recording's processes to their numbers."""
        pids, rows = recording.pids
        unique = [
            self._unique((number, row), pid) if pid >= 0 else MISSING
            for row, pid in enumerate(pids.tolist())
        ]
        known = np.array([*unique, MISSING])
        return lambda ids: known[rows.rows(ids)]

    def _unique(self, process: tuple[int, int], pid: int) -> int:
        wanted = pid
        while self._taken.setdefault(wanted, process) != process:
            self._again.add(pid)
            wanted += _APART
        return wanted

    def warnings(self) -> Iterator[str]:
        """Name the numbers that several processes have."""
        if self._again:
            listed = ", ".join(map(str, sorted(self._again)[:_FEW]))
            yield (
                f"several processes have the same number ({listed}), as in containers: "
                f"{_APART:,} is added to those of later recordings"
            )


_APART = 10_000_000
"""Greater than every number of a process, which Linux limits to 22 bits."""
_FEW = 5


def _joined(several: list[Host]) -> dict[str, pa.Table]:
    """Concatenate the host's tables of all recordings; their threads are numbered on."""
    offset = 0
    parts: dict[str, list[pa.Table]] = {"calls": [], "ranges": [], "threads": []}
    for side in several:
        for name in ("calls", "ranges"):
            table: pa.Table = getattr(side, name)
            place = table.schema.get_field_index("thread")
            thread = pa.array(ints(table.column("thread")) + offset, pa.int32())
            parts[name].append(table.set_column(place, table.schema.field(place), thread))
        parts["threads"].append(side.threads)
        offset += side.threads.num_rows
    return {name: cupti.concat(tables) for name, tables in parts.items()}


def _version(db: Database) -> str | None:
    for suffix in suffixes(db.tables()):
        rows = db.read(f"rocpd_metadata{suffix}", {"tag": str, "value": str}).to_pylist()
        for row in rows:
            if row["tag"] == "schema_version":
                return f"schema {row['value']}"
    return None


def _warnings(activities: pa.Table, joined: dict[str, pa.Table]) -> Iterator[str]:
    if not joined["ranges"].num_rows:
        yield (
            "the capture has no ROCTx ranges, so kernels cannot be tied to ops; call pyprof.init() "
            f"in the script and capture with {_COMMAND}"
        )
    measured = activities.column("counters")
    if measured.null_count < len(measured):
        yield counters.SERIAL
    if activities.num_rows and not joined["calls"].num_rows:
        yield (
            "no launch is in the capture, for the calls of HIP were not recorded; capture with "
            f"{_COMMAND}"
        )


_COMMAND = "rocprofv3 --kernel-trace --memory-copy-trace --hip-runtime-trace --marker-trace"
