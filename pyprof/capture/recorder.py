"""torch.profiler around the part of a script that is to be captured, and its trace as a file."""

from __future__ import annotations

import ctypes
import gzip
import os
import shutil
import threading
import time
from typing import TYPE_CHECKING, Any

import torch
from torch.profiler import ProfilerActivity, record_function

from pyprof.capture import memory, window

if TYPE_CHECKING:
    from pathlib import Path

    from pyprof.capture.window import Steps

_COMPRESSION = 3  # twice the speed of the usual 6 for a tenth more bytes


class Recorder:
    """At most one recording: of the first range that is started, until it is stopped."""

    def __init__(self, *, stacks: bool, share: float = memory.SHARE) -> None:
        self.seconds = 0.0
        """How long it recorded."""
        self.ranges = 0
        """How often the script started a range."""
        self.overflowed = False
        """Recording was ended for want of memory."""
        self.displaced = False
        """The script started a torch.profiler of its own, and there can be only one."""
        self._stacks = stacks
        self._share = share
        self._pid = os.getpid()
        self._profiler: torch.profiler.profile | None = None
        self._begun: float | None = None
        self._running = False
        self._provisional = False
        self._guard: memory.Guard | None = None
        self._pending = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(self._overflow)

    @property
    def recorded(self) -> bool:
        """Tell whether there is anything to write."""
        return self._begun is not None and not self._running

    def prepare(self) -> None:
        """Get the profiler ready, so that starting it costs the first step nothing."""
        if self._profiler is None and os.getpid() == self._pid:
            self._profiler = _profiler(stacks=self._stacks)
            self._profiler.prepare_trace()

    def start(self, *, provisional: bool = False) -> None:
        """Begin to record. A provisional recording gives way to a range of the script's own."""
        if os.getpid() != self._pid:  # a forked worker
            return
        if not provisional:
            self.ranges += self._provisional or not self._running
            if self._running and self._provisional:
                self.stop()
                self._profiler = self._begun = None
        if self._begun is not None:
            return
        self.prepare()
        self._provisional, self._running, self._begun = provisional, True, time.monotonic()
        if self._profiler is not None:
            self._profiler.start_trace()
        if threading.current_thread() is threading.main_thread():
            limit = int(memory.free_bytes() * self._share)
            self._guard = memory.Guard(limit, self._exceeded)
            self._guard.start()

    def stop(self) -> None:
        """End the recording, if one runs."""
        if not self._running or self._profiler is None or os.getpid() != self._pid:
            return
        self._running = False
        if self._guard is not None:
            self._guard.stop()
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        self.seconds = time.monotonic() - (self._begun or 0)
        for key, value in _facts().items():
            self._profiler.add_metadata(key, value)
        self._profiler.stop_trace()

    def give_way(self) -> None:
        """End the recording since another torch.profiler is about to begin."""
        if self._running:
            self.displaced = True
            self.stop()

    def end_of_range(self) -> None:
        """End the recording, unless it is of the whole script."""
        if not self._provisional:
            self.stop()

    def write(self, path: Path) -> None:
        """Write the trace as gzip; the file is whole or not there."""
        if self._profiler is None:
            raise RuntimeError("nothing was recorded")
        plain = path.with_name(f".{path.name}.{os.getpid()}.json")
        packed = plain.with_suffix(".gz")
        try:
            self._profiler.export_chrome_trace(str(plain))
            with plain.open("rb") as source, gzip.open(packed, "wb", _COMPRESSION) as target:
                shutil.copyfileobj(source, target, 1 << 20)
            packed.replace(path)
        finally:
            plain.unlink(missing_ok=True)
            packed.unlink(missing_ok=True)

    def _exceeded(self) -> None:
        """Ask the main thread, which alone can stop the profiler, to do so."""
        ctypes.pythonapi.Py_AddPendingCall(self._pending, None)

    def _overflow(self, _: Any) -> int:  # noqa: ANN401 - C's void*
        if self._running:
            self.overflowed = True
            self.stop()
        return 0


class StepRecorder:
    """Records the steps that were asked for."""

    def __init__(self, recorder: Recorder, steps: Steps) -> None:
        self._recorder = recorder
        self._first = steps.wait + steps.warmup
        self._last = self._first + steps.active
        self._wait = steps.wait
        self._mark: record_function | None = None
        self.count = 0
        self._enter(0)

    def step(self) -> None:
        """Tell that a step ended."""
        self.count += 1
        self._leave()
        self._enter(self.count)

    def finish(self) -> None:
        """End the recording where it is."""
        self._leave()
        self._recorder.stop()

    def _enter(self, step: int) -> None:
        if step == self._wait:
            self._recorder.prepare()
        if step == self._first:
            self._recorder.start()
        if step == self._last:
            self._recorder.stop()
        if self._first <= step < self._last:
            self._mark = record_function(f"ProfilerStep#{step}")
            self._mark.__enter__()  # type: ignore[no-untyped-call]

    def _leave(self) -> None:
        if self._mark is not None:
            self._mark.__exit__(None, None, None)
            self._mark = None


def _profiler(*, stacks: bool) -> torch.profiler.profile:
    activities = [ProfilerActivity.CPU]
    if torch.cuda.is_available():
        activities.append(ProfilerActivity.CUDA)
    return torch.profiler.profile(
        activities=activities, record_shapes=True, with_stack=stacks, with_modules=stacks
    )


def _facts() -> dict[str, str]:
    """Give what the trace should say of where it comes from."""
    from pyprof import __version__  # noqa: PLC0415 - once, and only here

    facts = {"torch_version": str(torch.__version__), "pyprof_version": __version__}
    if (rank := window.rank()) is not None:  # Kineto knows it only if the group is there first
        facts["pyprof_rank"] = str(rank)
    return facts
