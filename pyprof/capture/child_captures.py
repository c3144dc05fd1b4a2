"""Processes that a script starts by `multiprocessing`: each records its own work.

Includes `torch.multiprocessing.spawn`; workers of a DataLoader are left alone.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
import tempfile
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cache
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyprof.capture import request as window
from pyprof.capture.exit_hooks import on_exit
from pyprof.capture.kineto import memory_guard
from pyprof.capture.replacement import replace_attributes
from pyprof.process import atomic_files
from pyprof.quantities import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager
    from types import FrameType

    from pyprof.capture.request import Request

_SHARE = memory_guard.SHARE / 8
"""Share of the free memory for each process: there may be one per GPU."""
_LEFT_ALONE = ("torch.utils.data.", "multiprocessing.")
"""Modules whose functions serve the script's own process: loaders, managers, pools' queues."""
_POOL = "multiprocessing.pool"
"""Of the modules left alone, the one whose processes run the script's functions."""
_SPAWNED = "torch.multiprocessing.spawn"
_LATE, _NOTHING = "late", ""
"""Reports of processes without a capture: torch was imported too late; nothing was recorded."""


class ChildCaptures:
    """The captures of child processes: where each was written, or that it is missing."""

    def __init__(self, request: Request, suffix: str) -> None:
        self._request = replace(request, output=str(Path(request.output).absolute()))
        self._suffix = suffix
        self._pid = os.getpid()
        self._folder = tempfile.TemporaryDirectory(prefix="pyprof-")
        self._count = 0

    @contextmanager
    def recording(self) -> Iterator[None]:
        """Have every process started inside the `with` record itself."""
        with self._folder, replaced_run(self._wrap_run):
            yield

    def gather(self) -> tuple[list[Path], list[str]]:
        """Wait for the processes as Python would; return their captures, and notes for the user."""
        for process in multiprocessing.active_children():
            if not process.daemon:
                process.join()
        ends = []
        for number in range(self._count):
            with suppress(OSError):  # it did not end normally
                ends.append((Path(self._folder.name) / str(number)).read_text(encoding="utf-8"))
        self._folder.cleanup()
        written = [Path(end) for end in ends if end and end != _LATE]
        return written, list(_child_notes(len(written), self._count - len(ends), ends.count(_LATE)))

    def _wrap_run(self, process: BaseProcess) -> Callable[[], object] | None:
        """Return what the process should run instead; None in a forked copy of ourselves."""
        if os.getpid() != self._pid:
            return None
        number, self._count = self._count, self._count + 1
        args: list[Any] = [*getattr(process, "_args", ()), None, None]
        is_ranked = _target(process) == _SPAWNED and isinstance(args[1], int)
        return RecordedProcess(
            run=process.run,
            request=self._request,
            suffix=self._suffix,
            folder=self._folder.name,
            number=number,
            index=args[1] if is_ranked else None,
        )


def replaced_run(
    instead: Callable[[BaseProcess], Callable[[], object] | None],
) -> AbstractContextManager[None]:
    """Let processes started inside the `with` run what `instead` returns, unless None."""
    theirs: Any = BaseProcess.start

    def start(process: BaseProcess) -> None:
        run = None if _serves(process) else instead(process)
        if run is None:
            theirs(process)
            return
        process.run = run  # type: ignore[method-assign,assignment]  # carried over, or forked, with the object
        try:
            theirs(process)
        finally:
            del process.run

    return replace_attributes((BaseProcess, "start", start))


def _target(process: BaseProcess) -> str:
    return getattr(getattr(process, "_target", None), "__module__", None) or ""


def _serves(process: BaseProcess) -> bool:
    """Whether a process only serves the script's own, and runs none of its code."""
    module = _target(process)
    return (module.startswith(_LEFT_ALONE) and module != _POOL) or called_by_inductor()


def called_by_inductor() -> bool:
    """Whether Inductor calls: it starts processes to compile in, and profilers to benchmark."""
    frame: FrameType | None = sys._getframe(1)  # noqa: SLF001 - the cheap way
    while frame is not None:
        if str(frame.f_globals.get("__name__")).startswith("torch._inductor"):
            return True
        frame = frame.f_back
    return False


def _child_notes(written: int, ended: int, late: int) -> Iterator[str]:
    of_script = "that the script started"
    if written:
        owns = "has its" if written == 1 else "have their"
        yield f"{counted(written, 'process')} {of_script} {owns} own capture"
    if ended:
        yield (
            f"{counted(ended, 'process')} {of_script} left no capture: ended from outside, or "
            "still running; let each return, and join() it"
        )
    if late:
        yield (
            f"{counted(late, 'process')} {of_script} imported torch too late to be captured; "
            "import it at the top of the script"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedProcess:
    """A process's work with a recorder around it; pickled unless forked."""

    run: Callable[[], object]
    request: Request
    suffix: str
    folder: str
    number: int
    index: int | None
    """Its index in torch.multiprocessing.spawn, which is its rank."""

    def __call__(self) -> object:
        """Run it, then write the recording."""
        if "torch" not in sys.modules:  # a worker that need not load it
            try:
                return self.run()
            finally:
                self._report(_LATE if "torch" in sys.modules else _NOTHING)
        from pyprof.capture.kineto.recording import Recording  # noqa: PLC0415 - it imports torch
        from pyprof.capture.kineto.torch_settings import show_compiled_kernels  # noqa: PLC0415

        show_compiled_kernels()
        recording = Recording(self.request, RecordedProcess.__call__, share=_SHARE, rank=self._rank)

        @cache
        def finish() -> None:
            self._report(str(recording.finish(self._place) or _NOTHING))

        def left(status: int) -> int:
            finish()
            return status

        with on_exit(left, finish):
            try:
                return self.run()
            finally:
                finish()

    def _rank(self) -> int | None:
        """Return the rank by launcher, process group or index in a spawn; else None."""
        import torch.distributed as group  # noqa: PLC0415 - the user's own

        if (launcher_rank := window.rank()) is not None:
            return launcher_rank
        if group.is_available() and group.is_initialized():
            return group.get_rank()
        return self.index

    def _place(self) -> Path:
        """Return the path for its capture, unique among the processes of this run."""
        rank = self._rank()
        label = f"process{self.number}" if rank is None else f"rank{rank}"
        claim = Path(self.folder) / label
        try:
            claim.touch(exist_ok=False)
        except OSError:
            label += f".process{self.number}"
        return Path(f"{self.request.output}.{label}{self.suffix}").absolute()

    def _report(self, text: str) -> None:
        with suppress(OSError):  # the script's own process has ended
            atomic_files.replace_text(Path(self.folder) / str(self.number), text)
