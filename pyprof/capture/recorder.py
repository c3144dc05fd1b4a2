"""torch.profiler around the parts of a script that are to be captured, and one file of them."""

from __future__ import annotations

import ctypes
import gzip
import os
import shutil
import tempfile
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch.profiler import ProfilerActivity

from pyprof.capture import memory, window
from pyprof.capture.joined import join
from pyprof.cli import draft

if TYPE_CHECKING:
    from collections.abc import Iterator

_COMPRESSION = 3  # twice the speed of the usual 6 for a tenth more bytes


class Recorder:
    """A recording of each range that is started, until it is stopped: the windows of a file."""

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
        self._recorded: list[torch.profiler.profile] = []
        self._begun = 0.0
        self._running = False
        self._provisional = False
        self._guard: memory.Guard | None = None
        self._pending = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(self._overflow)

    @property
    def recorded(self) -> bool:
        """Tell whether there is anything to write."""
        return bool(self._recorded)

    @property
    def windows(self) -> int:
        """Count the recordings."""
        return len(self._recorded)

    def prepare(self) -> None:
        """Get the profiler ready, so that starting it costs the first step nothing."""
        if self._profiler is None and not self._ended and os.getpid() == self._pid:
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
                self._recorded.clear()
                self.seconds = 0.0
        if not self._running and torch.autograd._profiler_enabled():  # type: ignore[attr-defined]  # noqa: SLF001
            self.displaced = True
        if self._running or self._ended:
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
        self.seconds += time.monotonic() - self._begun
        for key, value in _facts().items():
            self._profiler.add_metadata(key, value)
        self._profiler.stop_trace()
        self._recorded.append(self._profiler)
        self._profiler = None

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
        """Write the trace as gzip, which can be done once; the file is whole or not there.

        Raises OSError; `ElsewhereError` where there is room but not for `path`.
        """
        path = Path(os.path.realpath(path))
        with tempfile.TemporaryDirectory(prefix=draft(path), dir=_roomiest(path.parent)) as folder:
            packed = Path(folder) / path.name
            with gzip.open(packed, "wb", _COMPRESSION) as target:
                join(self._exported(Path(folder) / "plain.json"), target)
            _deliver(packed, path)

    def _exported(self, plain: Path) -> Iterator[Path]:
        """Write the trace of one window after the other to the same file."""
        for profiler in self._recorded:
            profiler.export_chrome_trace(str(plain))
            yield plain

    @property
    def _ended(self) -> bool:
        return self.overflowed or self.displaced

    def _exceeded(self) -> None:
        """Ask the main thread, which alone can stop the profiler, to do so."""
        ctypes.pythonapi.Py_AddPendingCall(self._pending, None)

    def _overflow(self, _: Any) -> int:  # noqa: ANN401 - C's void*
        if self._running:
            self.overflowed = True
            self.stop()
        return 0


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
        with tempfile.TemporaryDirectory(prefix=draft(path), dir=path.parent) as folder:
            shutil.copyfile(packed, Path(folder) / path.name).replace(path)
    except OSError as error:
        refuge = Path(tempfile.mkdtemp(prefix="pyprof-")) / path.name
        shutil.move(packed, refuge)
        raise ElsewhereError(refuge, error) from None


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
