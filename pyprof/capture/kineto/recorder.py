"""torch.profiler over the parts of a script to be captured: starts, pauses, stops."""

from __future__ import annotations

import ctypes
import os
import re
import threading
import time
import warnings
from contextlib import suppress
from enum import Enum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch._C._profiler import _ExperimentalConfig
from torch.profiler import ProfilerActivity

from pyprof.capture import request
from pyprof.capture.kineto import memory_guard
from pyprof.capture.kineto.script_profilers import ScriptTrace
from pyprof.capture.kineto.torch_settings import quiet_kineto
from pyprof.capture.kineto.trace_file import write_trace
from pyprof.errors import reason
from pyprof.readers.settings import own_captures_path
from pyprof.version import __version__

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyprof.capture.kineto.device_monitor import DeviceMonitor

_CAPTURE = re.compile(rb'"name": "(?:cuda|hip)StreamBeginCapture')
"""An event that a trace with the capture of a graph contains."""


class _Wanted(Enum):
    """What is to be recorded now, whether or not it can be."""

    NOTHING = 0
    ALL = 1
    """Record everything, until the script starts its own range."""
    RANGE = 2


class Recorder:
    """Records each range from its start to its stop: the windows of one file."""

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
        """Time recorded."""
        self.in_ranges = False
        """Whether the script started a range."""
        self.overflowed = False
        """Whether recording ended for lack of memory."""
        self.busy = False
        """Whether a torch.profiler that starts or stops now is ours."""
        self.running = False
        """Whether it records now."""
        self.lost = False
        """Whether a recording was ended on another thread, which this torch does not support."""
        self.lacks_stacks = False
        """Whether stacks were left out: this torch might fail to end a recording with them."""
        self.failures: dict[str, None] = {}
        """Errors of torch on starting or ending a recording, which is lost."""
        self._stacks, self._share, self._rank = stacks, share, rank
        self._memory = memory
        self.all_threads = ALL_THREADS and not memory
        """Torch records memory only when it records threads one by one."""
        self._monitor = monitor
        self._pid = os.getpid()
        self._profiler: torch.profiler.profile | None = None
        self._recorded: list[torch.profiler.profile | ScriptTrace] = []
        self._captures: list[torch.profiler.profile | ScriptTrace] = []
        """Recordings of graph captures outside the requested parts."""
        self._capturing = 0
        """Graphs being captured now."""
        self._for_graphs = False
        """Whether the current recording is only for graph captures."""
        self._graphs_seen = False
        """Whether a graph was captured in the recordings so far."""
        self._begun = 0.0
        self._thread = 0
        self._wanted = _Wanted.NOTHING
        self._replaceable = False
        """Whether a range of the script may replace the current recording."""
        self._after_another = False
        """Whether another torch.profiler recorded before."""
        self._paused = False
        self._missed = False
        """Whether another torch.profiler records what we should have recorded."""
        self._guard: memory_guard.MemoryGuard | None = None
        self._pending = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(self._overflow)

    @property
    def windows(self) -> int:
        """The number of recordings of its own."""
        return len(self._recorded) - len(self.adopted)

    @property
    def adopted(self) -> list[ScriptTrace]:
        """The recordings of the script's own profilers that are windows of the file."""
        return [window for window in self._recorded if isinstance(window, ScriptTrace)]

    @property
    def mine(self) -> bool:
        """Whether this is the process to record, not a forked worker."""
        return os.getpid() == self._pid

    def prepare(self) -> None:
        """Prepare the profiler, so that starting it does not slow the first step."""
        if self._profiler is None and not self._paused and not self.overflowed and self.mine:
            may_fail = self._replaceable or self._after_another
            stacks = self._stacks and (STACKS_FROM_ANYWHERE or not may_fail)
            self.lacks_stacks |= self._stacks and not stacks
            activities = [ProfilerActivity.CPU]
            if torch.cuda.is_available():
                activities.append(ProfilerActivity.CUDA)
            self._profiler = torch.profiler.profile(
                activities=activities,
                record_shapes=True,
                profile_memory=self._memory,
                with_stack=stacks,
                experimental_config=None if self._memory else _all_threads_config(),
            )
            with quiet_kineto():
                self._try_step(self._profiler.prepare_trace)

    def discard(self) -> None:
        """Drop a profiler that was prepared but not started: torch may not support another."""
        if self._profiler is not None and not self.running and self.mine:
            if self._try_step(self._profiler.start_trace):
                self._try_step(self._profiler.stop_trace)
            self._profiler = None

    def start(self, *, provisional: bool = False, replaceable: bool = True) -> None:
        """Start recording.

        A provisional recording is dropped when the script starts a range of its own, if one may
        come (`replaceable`).
        """
        if not self.mine:
            return
        self._for_graphs = False  # a recording for graph captures becomes the requested one
        if self._paused and self._wanted is _Wanted.ALL:  # the script's own profiler's range
            return
        if not provisional:
            self.in_ranges = True
            if self._wanted is _Wanted.ALL:  # drop what was recorded, even if that overflowed
                self._end()
                if self._graphs_seen:  # it contains the graph captures
                    self._captures += self._recorded
                self._recorded.clear()
                self._graphs_seen = self.overflowed = self.lacks_stacks = False
                self.seconds = 0.0
        self._wanted = _Wanted.ALL if provisional else _Wanted.RANGE
        self._replaceable = provisional and replaceable
        self._begin()

    def stop(self) -> None:
        """Stop recording, if running."""
        if self.mine:
            self._wanted = _Wanted.NOTHING
            if not self._for_graphs:
                self._end()

    def graph_begins(self) -> None:
        """Record the capture of a graph: its ops are called only then, not in its replays.

        Outside the requested parts this is a separate recording, written beside the trace.
        """
        if not self.mine:
            return
        self._capturing += 1
        self._graphs_seen |= self.running and not self._for_graphs
        if not self.running and not self._paused and not self.overflowed:
            self._begin()
            self._for_graphs = self.running

    def graph_ended(self) -> None:
        """Stop a recording that was only for graph captures."""
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
        """Stop recording, unless the whole script is wanted."""
        if self._wanted is not _Wanted.ALL:
            self.stop()

    def pause(self) -> None:
        """Stop recording while another torch.profiler records: only one can."""
        if self.mine:
            self._paused = True
            self._missed = self._missed or self._wanted is not _Wanted.NOTHING
            self._end()
            self.discard()
            self._after_another = True

    def adopt(self, trace: ScriptTrace) -> None:
        """Take over what another torch.profiler recorded in place of this one."""
        if self.mine and self._missed:
            self._recorded.append(trace)

    def resume(self) -> None:
        """Continue recording, if still wanted, after the other torch.profiler ended."""
        self._paused = self._missed = False
        if self.mine and self._wanted is not _Wanted.NOTHING:
            self._begin()

    def write(self, path: Path) -> bool:
        """Write the trace as gzip; return whether there is anything to report, else write nothing.

        Can be called once. The file appears only when complete. Raises OSError; `ElsewhereError` if
        it had to be saved elsewhere.
        """
        if not self._recorded:
            return False
        path = Path(os.path.realpath(path))
        events = None if self._monitor is None else self._monitor.events
        if not write_trace(self._recorded, path, events=events):
            return False
        captures = own_captures_path(path)
        if self._captures:
            captures.parent.mkdir(exist_ok=True)
        if not self._captures or not write_trace(self._captures, captures, _CAPTURE):
            captures.unlink(missing_ok=True)  # those of an earlier capture of the same name
            with suppress(OSError):  # not empty, or not there
                captures.parent.rmdir()
        return True

    def _begin(self) -> None:
        self._missed = self._missed or self._paused
        if self.running or self._paused or self.overflowed:
            return
        self.prepare()
        self.running, self._begun = True, time.monotonic()
        self._thread = threading.get_ident()
        if self._profiler is None or not self._try_step(self._profiler.start_trace):
            self.running = False
            return
        if self._monitor is not None:
            self._monitor.start()
        if threading.current_thread() is threading.main_thread():
            limit = int(memory_guard.free_bytes() * self._share)
            # Older profilers stop only on their own thread: the main one is asked to do it.
            stop = partial(ctypes.pythonapi.Py_AddPendingCall, self._pending, None)
            self._guard = memory_guard.MemoryGuard(limit, stop)
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
        profiler = self._profiler
        profiler.add_metadata("torch_version", str(torch.__version__))
        profiler.add_metadata("pyprof_version", __version__)
        if (rank := self._rank()) is not None:  # Kineto knows it only if the group is there first
            profiler.add_metadata("pyprof_rank", str(rank))
        if self._try_step(profiler.stop_trace):
            self._recorded.append(profiler)
        self._profiler = None

    def _try_step(self, step: Callable[[], object]) -> bool:
        """Run a step of torch's profiler; if it fails, drop the profiler: the program goes on."""
        self.busy = True
        try:
            with warnings.catch_warnings():
                # torch 2.11 says so of every profiler's first cycle; each of ours has only one
                warnings.filterwarnings("ignore", "Warning: Profiler clears events")
                step()
        except Exception as error:  # noqa: BLE001 - torch's own checks, and a user's `-W error`
            self.failures[reason(error)] = None
            self._profiler = None
        finally:
            self.busy = False
        return self._profiler is not None

    def _overflow(self, _: Any) -> int:  # noqa: ANN401 - C's void*
        if self.running:
            self.overflowed = True
            self._end()
        return 0


def _all_threads_config() -> _ExperimentalConfig | None:
    """Return the option to record all threads; None if this torch records only one."""
    try:
        return _ExperimentalConfig(profile_all_threads=True)
    except TypeError:
        return None


ALL_THREADS = _all_threads_config() is not None
"""Whether this torch records all threads, and can stop a recording on any of them."""

STACKS_FROM_ANYWHERE = torch.__version__ >= "2.7"  # as versions, not as texts
"""Whether a recording with stacks can always be ended. Older versions fail if it began inside a C
function, such as the `next` of a context manager, whose call another recording with stacks saw
("Python replay stack is empty")."""
