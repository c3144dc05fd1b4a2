"""torch.profiler around the parts of a script that are to be captured, and one file of them."""

from __future__ import annotations

import ctypes
import gzip
import mmap
import os
import re
import shutil
import tempfile
import threading
import time
from contextlib import closing, suppress
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch._C._profiler import _ExperimentalConfig
from torch.profiler import ProfilerActivity

from pyprof.capture import request
from pyprof.capture.kineto import memory_guard
from pyprof.capture.kineto.script_profilers import ScriptTrace
from pyprof.capture.kineto.torch_settings import quiet_kineto
from pyprof.capture.kineto.window_files import join_trace_windows
from pyprof.errors import reason
from pyprof.process import atomic_files
from pyprof.readers.settings import beside

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyprof.capture.kineto.device_monitor import DeviceMonitor

_COMPRESSION = 3  # twice the speed of the usual 6 for a tenth more bytes
_WORK = re.compile(rb'"cat": "(?:cpu_op|kernel|gpu_mem\w+)"')
"""What a trace without anything to report has none of."""
_CAPTURE = re.compile(rb'"name": "(?:cuda|hip)StreamBeginCapture')
"""What a trace without the capture of a graph has none of."""
_SMALL_BYTES = 1 << 18
"""Traces up to this are read to see whether they hold anything; larger ones do."""


class _Wanted(Enum):
    """What is to be recorded now, whether or not it can be."""

    NOTHING = 0
    ALL = 1
    """What the script does, as long as it starts no range of its own."""
    RANGE = 2


class Recorder:
    """A recording of each range that is started, until it is stopped: the windows of a file."""

    def __init__(
        self,
        *,
        stacks: bool,
        memory: bool = False,
        share: float = memory_guard.SHARE,
        rank: Callable[[], int | None] = request.rank,
        monitor: DeviceMonitor | None = None,
    ) -> None:
        self.seconds = 0.0
        """How long it recorded."""
        self.ranges = 0
        """How often the script started a range."""
        self.dropped = False
        """What was recorded before the first range was dropped."""
        self.overflowed = False
        """Recording was ended for want of memory."""
        self.busy = False
        """A torch.profiler that starts or stops now is this one's."""
        self.running = False
        """Now."""
        self.lost = False
        """A recording was ended on another thread than its own, which this torch cannot."""
        self.lacks_stacks = False
        """Something was recorded without stacks, since this torch might not have ended it."""
        self.failures: dict[str, None] = {}
        """What torch said where it could not begin or end a recording, which is lost."""
        self._stacks, self._share, self._rank = stacks, share, rank
        self._memory = memory
        self.all_threads = ALL_THREADS and not memory
        """Torch tells of memory only on threads that are recorded one by one."""
        self._monitor = monitor
        self._pid = os.getpid()
        self._profiler: torch.profiler.profile | None = None
        self._recorded: list[torch.profiler.profile | ScriptTrace] = []
        self._captures: list[torch.profiler.profile | ScriptTrace] = []
        """Recordings of how graphs were captured, outside of what is to be recorded."""
        self._capturing = 0
        """Graphs that are being captured."""
        self._for_graphs = False
        """What is recorded now is recorded for them alone."""
        self._graphs_seen = False
        """A graph was captured in what was recorded so far."""
        self._begun = 0.0
        self._thread = 0
        self._wanted = _Wanted.NOTHING
        self._replaceable = False
        """A range of the script's may end what is recorded, and begin anew."""
        self._after_another = False
        """Another torch.profiler recorded before."""
        self._paused = False
        self._missed = False
        """What another torch.profiler records now was to be recorded."""
        self._guard: memory_guard.MemoryGuard | None = None
        self._pending = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(self._overflow)

    @property
    def windows(self) -> int:
        """Count the recordings of its own."""
        return len(self._recorded) - len(self.adopted)

    @property
    def adopted(self) -> list[ScriptTrace]:
        """The recordings of the script's own profilers that are windows of the file."""
        return [window for window in self._recorded if isinstance(window, ScriptTrace)]

    @property
    def mine(self) -> bool:
        """Tell whether this is the process to record: no worker that was forked."""
        return os.getpid() == self._pid

    def prepare(self) -> None:
        """Get the profiler ready, so that starting it costs the first step nothing."""
        if self._profiler is None and not self._paused and not self.overflowed and self.mine:
            may_fail = self._replaceable or self._after_another
            stacks = self._stacks and (STACKS_FROM_ANYWHERE or not may_fail)
            self.lacks_stacks |= self._stacks and not stacks
            self._profiler = _profiler(stacks=stacks, memory=self._memory)
            with quiet_kineto():
                self._done(self._profiler.prepare_trace)

    def discard(self) -> None:
        """Let go of a profiler that was prepared and not started: torch may not bear another."""
        if self._profiler is not None and not self.running and self.mine:
            if self._done(self._profiler.start_trace):
                self._done(self._profiler.stop_trace)
            self._profiler = None

    def start(self, *, provisional: bool = False, replaceable: bool = True) -> None:
        """Begin to record.

        A provisional recording gives way to a range of the script's own, if one may come
        (`replaceable`).
        """
        if not self.mine:
            return
        self._for_graphs = False  # what runs for them goes on as what is asked for
        if self._paused and self._wanted is _Wanted.ALL:  # the range is the other profiler's
            return
        if not provisional:
            if self._wanted is not _Wanted.RANGE:
                self.ranges += 1
            if self._wanted is _Wanted.ALL:
                self._drop()
        self._wanted = _Wanted.ALL if provisional else _Wanted.RANGE
        self._replaceable = provisional and replaceable
        self._begin()

    def stop(self) -> None:
        """End the recording, if one runs."""
        if self.mine:
            self._wanted = _Wanted.NOTHING
            if not self._for_graphs:
                self._end()

    def graph_begins(self) -> None:
        """Record how a graph is captured: what its replays launch is called then only.

        Where nothing is recorded now, this is a recording apart, which goes beside the trace.
        """
        if not self.mine:
            return
        self._capturing += 1
        self._graphs_seen |= self.running and not self._for_graphs
        if not self.running and not self._paused and not self.overflowed:
            self._begin()
            self._for_graphs = self.running

    def graph_ended(self) -> None:
        """End what was recorded for graphs alone."""
        if not self.mine or not self._capturing:
            return
        self._capturing -= 1
        if self._for_graphs and not self._capturing:
            self._for_graphs = False
            seconds, windows = self.seconds, len(self._recorded)
            self._end()
            self._captures += self._recorded[windows:]
            del self._recorded[windows:]
            self.seconds = seconds

    def end_of_range(self) -> None:
        """End the recording, unless it is of the whole script."""
        if self._wanted is not _Wanted.ALL:
            self.stop()

    def pause(self) -> None:
        """Record nothing while another torch.profiler does: there can be only one."""
        if self.mine:
            self._paused = True
            self._missed = self._missed or self._wanted is not _Wanted.NOTHING
            self._end()
            self.discard()
            self._after_another = True

    def adopt(self, trace: ScriptTrace) -> None:
        """Take what another torch.profiler recorded for what this one would have recorded."""
        if self.mine and self._missed:
            self._recorded.append(trace)

    def resume(self) -> None:
        """Record what is still to be recorded, since the other torch.profiler has ended."""
        self._paused = self._missed = False
        if self.mine and self._wanted is not _Wanted.NOTHING:
            self._begin()

    def write(self, path: Path) -> bool:
        """Write the trace as gzip; tell whether it holds anything to report, else there is none.

        That can be done once. The file is whole or not there. Raises OSError; `ElsewhereError`
        where there is room but not for `path`.
        """
        if not self._recorded:
            return False
        path = Path(os.path.realpath(path))
        written = self._write(self._recorded, path)
        if written:
            self._write_captures(beside(path))
        return written

    def _write_captures(self, path: Path) -> None:
        """Write how graphs were captured; what an earlier capture of this name left is no more."""
        if self._captures:
            path.parent.mkdir(exist_ok=True)
            if self._write(self._captures, path, _CAPTURE):
                return
        path.unlink(missing_ok=True)
        with suppress(OSError):  # others' traces are in it, or it is not there
            path.parent.rmdir()

    def _write(
        self,
        recorded: list[torch.profiler.profile | ScriptTrace],
        path: Path,
        wanted: re.Pattern[bytes] | None = None,
    ) -> bool:
        """Write recordings as one trace; tell whether it holds what is wanted, work if nothing."""
        with atomic_files.temp_directory(path, _roomiest(path.parent)) as folder:
            packed = Path(folder) / path.name
            held: list[bool] = []
            with gzip.open(packed, "wb", _COMPRESSION) as target:
                plain = Path(folder) / "plain.json"
                windows = _exported(recorded, plain, held, wanted or _WORK)
                if self._monitor is None or wanted is not None:
                    join_trace_windows(windows, target)
                else:
                    join_trace_windows(windows, target, self._monitor.events)
            small = wanted is None and packed.stat().st_size <= _SMALL_BYTES
            if not any(held) or (small and not _rows(packed)):
                return False
            _deliver(packed, path)
        return True

    def _begin(self) -> None:
        self._missed = self._missed or self._paused
        if self.running or self._paused or self.overflowed:
            return
        self.prepare()
        self.running, self._begun = True, time.monotonic()
        self._thread = threading.get_ident()
        if self._profiler is None or not self._done(self._profiler.start_trace):
            self.running = False
            return
        if self._monitor is not None:
            self._monitor.start()
        if threading.current_thread() is threading.main_thread():
            limit = int(memory_guard.free_bytes() * self._share)
            self._guard = memory_guard.MemoryGuard(limit, self._exceeded)
            self._guard.start()

    def _end(self) -> None:
        if not self.running or self._profiler is None:
            return
        if not self.all_threads and threading.get_ident() != self._thread:
            self.lost = True
            return
        self.running = False
        if self._guard is not None:
            self._guard.stop()
        if self._monitor is not None:
            self._monitor.stop()
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        self.seconds += time.monotonic() - self._begun
        for key, value in self._metadata().items():
            self._profiler.add_metadata(key, value)
        profiler = self._profiler
        if self._done(profiler.stop_trace):
            self._recorded.append(profiler)
        self._profiler = None

    def _done(self, step: Callable[[], object]) -> bool:
        """Have torch's profiler take a step; where it fails, let go of it: the program goes on."""
        self.busy = True
        try:
            step()
        except Exception as error:  # noqa: BLE001 - torch's own checks, and a user's `-W error`
            self.failures[reason(error)] = None
            self._profiler = None
        finally:
            self.busy = False
        return self._profiler is not None

    def _drop(self) -> None:
        """Forget what was recorded before the first range, also where that was too much."""
        self._end()
        if self._graphs_seen:  # how they were captured is in it
            self._captures += self._recorded
        self._graphs_seen = False
        self._recorded.clear()
        self.seconds, self.overflowed, self.dropped = 0.0, False, True
        self.lacks_stacks = False

    def _exceeded(self) -> None:
        """Ask the main thread to stop the profiler: older ones stop on their own thread only."""
        ctypes.pythonapi.Py_AddPendingCall(self._pending, None)

    def _overflow(self, _: Any) -> int:  # noqa: ANN401 - C's void*
        if self.running:
            self.overflowed = True
            self._end()
        return 0

    def _metadata(self) -> dict[str, str]:
        """Give what the trace should say of where it comes from."""
        from pyprof.version import __version__  # noqa: PLC0415 - once, and only here

        metadata = {"torch_version": str(torch.__version__), "pyprof_version": __version__}
        if (rank := self._rank()) is not None:  # Kineto knows it only if the group is there first
            metadata["pyprof_rank"] = str(rank)
        return metadata


def _exported(
    recorded: list[torch.profiler.profile | ScriptTrace],
    plain: Path,
    held: list[bool],
    wanted: re.Pattern[bytes],
) -> Iterator[Path]:
    """Write the trace of one window after the other to the same file."""
    for profiler in recorded:
        profiler.export_chrome_trace(str(plain))
        held.append(_holds(plain, wanted))
        yield plain


class ElsewhereError(OSError):
    """A file could not be written where it should be; it is in `place`."""

    def __init__(self, place: Path, error: OSError) -> None:
        super().__init__(error.errno, error.strerror or str(error))
        self.place = place


def _roomiest(folder: Path) -> Path:
    """Give the folder itself, or that for temporary files where there is more room."""
    other = Path(tempfile.gettempdir())
    return max((folder, other), key=lambda place: shutil.disk_usage(place).free)


def _deliver(packed: Path, path: Path) -> None:
    """Put a whole file in its place, perhaps on another disk."""
    try:
        if packed.parent.parent == path.parent:
            packed.replace(path)
            return
        with atomic_files.temp_directory(path) as folder:
            shutil.copyfile(packed, Path(folder) / path.name).replace(path)
    except OSError as error:
        refuge = Path(tempfile.mkdtemp(prefix="pyprof-")) / path.name
        shutil.move(packed, refuge)
        raise ElsewhereError(refuge, error) from None


def _profiler(*, stacks: bool, memory: bool) -> torch.profiler.profile:
    activities = [ProfilerActivity.CPU]
    if torch.cuda.is_available():
        activities.append(ProfilerActivity.CUDA)
    return torch.profiler.profile(
        activities=activities,
        record_shapes=True,
        profile_memory=memory,
        with_stack=stacks,
        experimental_config=None if memory else _of_all_threads(),
    )


def _of_all_threads() -> _ExperimentalConfig | None:
    """Give what has all threads recorded; None in a torch that records one only."""
    try:
        return _ExperimentalConfig(profile_all_threads=True)
    except TypeError:
        return None


ALL_THREADS = _of_all_threads() is not None
"""Whether this torch records all threads, and stops a recording on any of them."""

STACKS_FROM_ANYWHERE = torch.__version__ >= "2.7"  # as versions, not as texts
"""Whether a recording with stacks can be ended wherever it began. Older ones fail at that where it
began inside a function of C, such as the `next` of a context manager, that another recording with
stacks saw being called ("Python replay stack is empty")."""


def _holds(plain: Path, wanted: re.Pattern[bytes]) -> bool:
    with (
        plain.open("rb") as file,
        closing(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)) as t,
    ):
        return wanted.search(t) is not None


def _rows(trace: Path) -> bool:
    """Tell whether a trace has a row: ops that only look at memory make none."""
    from pyprof.readers import read  # noqa: PLC0415 - it loads Arrow

    return bool(read(trace).activities.num_rows)
