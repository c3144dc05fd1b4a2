"""Processes that a script starts by `multiprocessing`: each records its own work beside the script.

Of `torch.multiprocessing.spawn`, too. Workers of a DataLoader are left alone.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyprof.capture import request as window
from pyprof.capture.exit_hooks import on_exit
from pyprof.capture.kineto import memory_guard

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType

    from pyprof.capture.request import Request

_SHARE = memory_guard.SHARE / 8
"""Of the free memory, for each: there may be as many as there are GPUs."""
_LEFT_ALONE = ("torch.utils.data.", "multiprocessing.")
"""Modules whose functions serve the script's own process: loaders, managers, pools' queues."""
_COMPILER = "torch._inductor"
_POOL = "multiprocessing.pool"
_SPAWNED = "torch.multiprocessing.spawn"
_LATE, _NOTHING = "late", ""


class ChildCaptures:
    """What the processes leave behind: where each wrote its capture, or that it did not."""

    def __init__(self, request: Request, suffix: str) -> None:
        self._request = replace(request, output=str(Path(request.output).absolute()))
        self._suffix = suffix
        self._pid = os.getpid()
        self._folder = tempfile.TemporaryDirectory(prefix="pyprof-")
        self._count = 0

    @contextmanager
    def recording(self) -> Iterator[None]:
        """Have every process that is started record itself, until the end of the `with`."""
        with self._folder, replaced_run(self._recorded):
            yield

    def gather(self) -> tuple[list[Path], list[str]]:
        """Wait for the processes as Python would, give their captures and what is to be said."""
        for process in multiprocessing.active_children():
            if not process.daemon:
                process.join()
        folder = Path(self._folder.name)
        ends = [_ended(folder, number) for number in range(self._count)]
        self._folder.cleanup()
        written = [Path(end) for end in ends if end and end != _LATE]
        return written, list(_child_notes(written, ends.count(None), ends.count(_LATE)))

    def _recorded(self, process: BaseProcess) -> Callable[[], object] | None:
        """Give what a process shall run instead, if it is one to record."""
        if os.getpid() != self._pid:
            return None
        number, self._count = self._count, self._count + 1
        index = _index(process)
        run = process.run
        return RecordedProcess(run, self._request, self._suffix, self._folder.name, number, index)


@contextmanager
def replaced_run(instead: Callable[[BaseProcess], Callable[[], object] | None]) -> Iterator[None]:
    """Let processes that are started meanwhile run something else, until the end of the `with`."""
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

    BaseProcess.start = start  # type: ignore[method-assign,assignment]
    try:
        yield
    finally:
        BaseProcess.start = theirs  # type: ignore[method-assign]


def _target(process: BaseProcess) -> str:
    return getattr(getattr(process, "_target", None), "__module__", None) or ""


def _serves(process: BaseProcess) -> bool:
    """Tell whether a process only serves another: it runs nothing of the script's."""
    module = _target(process)
    return (module.startswith(_LEFT_ALONE) and module != _POOL) or called_by_inductor()


def called_by_inductor() -> bool:
    """Whether Inductor calls this: it has processes to compile in, and profilers to choose by."""
    frame: FrameType | None = sys._getframe(1)  # noqa: SLF001 - the cheap way
    while frame is not None:
        if str(frame.f_globals.get("__name__")).startswith(_COMPILER):
            return True
        frame = frame.f_back
    return False


def _index(process: BaseProcess) -> int | None:
    """Give the number that torch.multiprocessing.spawn gives a process, which is its rank."""
    args: list[Any] = [*getattr(process, "_args", ()), None, None]
    return args[1] if _target(process) == _SPAWNED and isinstance(args[1], int) else None


def _ended(folder: Path, number: int) -> str | None:
    """Give where a process wrote its capture; None where it did not come to its end."""
    try:
        return (folder / str(number)).read_text(encoding="utf-8")
    except OSError:
        return None


def _child_notes(written: list[Path], ended: int, late: int) -> Iterator[str]:
    if written:
        processes = "process that the script started has its" if len(written) == 1 else (
            "processes that the script started have their"
        )  # fmt: skip
        yield f"{len(written)} {processes} own capture"
    if ended:
        yield (
            f"{ended} processes that the script started left no capture: they were ended from "
            "outside, or are still running; let them return, and join() them"
        )
    if late:
        yield (
            f"{late} processes that the script started imported torch too late to be captured; "
            "import it at the top of the script"
        )


@dataclass(frozen=True, slots=True)
class RecordedProcess:
    """What a process does, with a recorder around it; pickled where it is not forked."""

    run: Callable[[], object]
    request: Request
    suffix: str
    folder: str
    number: int
    index: int | None

    def __call__(self) -> object:
        """Do it, then write what was recorded."""
        if "torch" not in sys.modules:  # a worker that need not load it
            try:
                return self.run()
            finally:
                self._say(_LATE if "torch" in sys.modules else _NOTHING)
        from pyprof.capture.kineto.recorder import Recorder  # noqa: PLC0415 - it imports torch
        from pyprof.capture.kineto.recording import Recording  # noqa: PLC0415
        from pyprof.capture.kineto.torch_settings import show_compiled_kernels  # noqa: PLC0415

        show_compiled_kernels()
        stacks = not self.request.instrument
        memory = self.request.memory
        recorder = Recorder(stacks=stacks, memory=memory, share=_SHARE, rank=self._rank)
        recording = Recording(recorder, self.request, RecordedProcess.__call__)

        @cache
        def finish() -> None:
            self._say(str(recording.finish(self._place) or _NOTHING))

        def left(status: int) -> int:
            finish()
            return status

        with on_exit(left, finish):
            try:
                return self.run()
            finally:
                finish()

    def _rank(self) -> int | None:
        """Give the rank that its launcher, its process group or its place among the others says."""
        import torch.distributed as group  # noqa: PLC0415 - the user's own

        if (launcher_rank := window.rank()) is not None:
            return launcher_rank
        if group.is_available() and group.is_initialized():
            return group.get_rank()
        return self.index

    def _place(self) -> Path:
        """Give the file for its capture, which no other process of this run takes."""
        rank = self._rank()
        label = f"process{self.number}" if rank is None else f"rank{rank}"
        claim = Path(self.folder) / label
        try:
            claim.touch(exist_ok=False)
        except OSError:
            label += f".process{self.number}"
        return Path(f"{self.request.output}.{label}{self.suffix}").absolute()

    def _say(self, text: str) -> None:
        """Leave word for the script's own process, whole or not at all."""
        try:
            draft = Path(self.folder) / f"{self.number}.draft"
            draft.write_text(text, encoding="utf-8")
            draft.replace(Path(self.folder) / str(self.number))
        except OSError:  # the script's own process has ended
            return
