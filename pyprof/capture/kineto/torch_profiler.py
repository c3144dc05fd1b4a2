"""A script captured by torch.profiler in this very process."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from pyprof.capture import script
from pyprof.capture.child_captures import ChildCaptures
from pyprof.capture.exit_hooks import on_exit
from pyprof.capture.kineto import SUFFIX, device_monitor
from pyprof.capture.request import (
    Outcome,
    add_rank,
    check_place,
    make_room_for_snapshot,
    relative_to_here,
)
from pyprof.errors import PyprofError, reason
from pyprof.process import signals
from pyprof.process.messages import say

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyprof.capture.kineto.device_monitor import DeviceMonitor
    from pyprof.capture.kineto.recording import Recording
    from pyprof.capture.request import Request


def run(request: Request, conclude: Callable[[Outcome], int] = lambda done: done.code) -> Outcome:
    """Run the script and write NAME.pt.trace.json.gz, even if the script fails.

    If the script ends the process itself, `conclude` is called first, and returns the exit code.
    """
    path = Path(add_rank(request.output) + SUFFIX)
    check_place(path)
    if request.memory:
        make_room_for_snapshot(path)
    try:
        from pyprof.capture.kineto.recording import Recording  # noqa: PLC0415 - torch is the user's own
        from pyprof.capture.kineto.torch_settings import show_compiled_kernels  # noqa: PLC0415 - as above
    except ImportError as error:
        raise PyprofError(
            f"torch.profiler needs torch in this Python: {error}; pyprof doctor shows the remedy"
        ) from error
    show_compiled_kernels()
    monitor = _monitor() if request.metrics else None
    recording = Recording(request, script.execute, monitor=monitor)
    children = ChildCaptures(request, SUFFIX)
    folder = Path.cwd()
    place = folder / path  # the script may go to another folder

    def finish(code: int) -> Outcome:
        with signals.postponed():
            written, wrong = _write_recording(recording, place)
            captured, child_notes = children.gather()
        others = tuple(captured) or (() if written else recording.others.traces()[-1:])
        notes = [*wrong, *recording.notes(), *child_notes]
        if written is None and not others and not wrong:
            notes.append(request.why_nothing())
        return Outcome(
            code=code or bool(wrong),
            path=written and relative_to_here(written),
            notes=tuple(notes),
            others=tuple(map(relative_to_here, others)),
            memory=request.memory,
        )

    def left(status: int) -> int:
        script.go_back(str(folder))
        return conclude(finish(status & 0xFF))

    def replaced() -> None:
        done = finish(0)
        warning = "the script replaced itself by another program (os.exec), which is not captured"
        conclude(Outcome(code=0, path=done.path, notes=(*done.notes, warning), others=done.others))

    parent = os.getpid()
    with children.recording():
        with on_exit(left, replaced):
            code = script.run(request.target)
            if os.getpid() != parent:  # a worker that the script forked and let return
                sys.stdout.flush()
                os._exit(code)
        return finish(code)


def _monitor() -> DeviceMonitor | None:
    """Return a monitor of the GPUs' power and clocks; None, with a message, if impossible."""
    try:
        return device_monitor.DeviceMonitor(device_monitor.nvml().read)
    except Exception as error:  # noqa: BLE001 - of drivers and of torch: the run is worth more
        say(f"no power or clocks are sampled: {reason(error)}")
        return None


def _write_recording(recording: Recording, path: Path) -> tuple[Path | None, list[str]]:
    """Write the file where there is room; return its path, and messages if it is elsewhere."""
    try:
        return recording.finish(lambda: path), []
    except OSError as error:
        place = getattr(error, "place", None)
        what = f"the recording is in {place}" if place else "make room, and capture again"
        return place, [f"{path}: {error.strerror or error}; {what}"]
