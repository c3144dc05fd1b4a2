"""The script's side of a capture by nsys: `python -m pyprof.capture.launch OPTIONS -- SCRIPT`.

Turns on the markers, runs the script, leaves its exit code in a file. Not for users.
"""

from __future__ import annotations

import os
import signal
import sys
from contextlib import ExitStack, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from pyprof import signals
from pyprof.capture import script
from pyprof.capture.window import StepCounter, Steps
from pyprof.cli import Main

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


class Files(NamedTuple):
    """What the script's process and the one that started nsys say to each other."""

    pid: Path
    """The script's process, as soon as there is one."""
    exit_code: Path
    """The script's, once it has ended."""
    stop: Path
    """Is there when the script should not even begin."""

    @classmethod
    def within(cls, folder: Path) -> Files:
        """Name them."""
        return cls(folder / "pid", folder / "code", folder / "stop")


@click.command(cls=Main, context_settings={"allow_interspersed_args": False}, help=__doc__)
@click.option("--files", "folder", type=click.Path(path_type=Path), required=True)
@click.option("--hangup", is_flag=True)
@click.option("--no-init", is_flag=True)
@click.option("--steps", type=Steps.parse)
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
def launch(
    folder: Path,
    hangup: bool,  # noqa: FBT001 - click passes options by name
    no_init: bool,  # noqa: FBT001 - click passes options by name
    steps: Steps | None,
    command: Sequence[str],
) -> None:
    """Run a script with markers on, then exit with its code."""
    if hangup:  # which nsys is kept from
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
    files = Files.within(folder)
    files.pid.write_text(str(os.getpid()))
    if files.stop.exists():
        return
    module = command[0] == "-m"
    name, *args = command[1:] if module else command
    with ExitStack() as stack:
        if not no_init:
            _mark(stack)
        if steps is not None:
            _capture_steps(steps, stack)
        code = script.run(script.Target(name, tuple(args), module=module))
        with signals.postponed():
            files.exit_code.write_text(str(code))
    sys.exit(code)


def _mark(stack: ExitStack) -> None:
    """Turn on PyProf's markers, and PyTorch's own where it can emit them."""
    import torch  # noqa: PLC0415 - the user's own

    from pyprof import instrument  # noqa: PLC0415 - it imports torch
    from pyprof.instrument.stack import begin_at  # noqa: PLC0415

    begin_at(script.execute.__code__)
    instrument.init(force=True)
    stack.callback(instrument.stop)
    if torch.cuda.is_available():
        theirs = torch.autograd.profiler.emit_nvtx
        stack.enter_context(theirs(record_shapes=True))  # type: ignore[no-untyped-call]
        _set_back(stack, torch.autograd.profiler, "emit_nvtx", _already_on)


def _already_on(*_: object, **__: object) -> nullcontext[None]:
    """Stand for emit_nvtx in a script that turns it on itself: it cannot be on twice."""
    return nullcontext()


def _set_back(stack: ExitStack, home: Any, name: str, value: object) -> None:  # noqa: ANN401 - any module
    stack.callback(setattr, home, name, getattr(home, name))
    setattr(home, name, value)


def _capture_steps(steps: Steps, stack: ExitStack) -> None:
    """Start and stop the range that nsys waits for by steps; without CUDA it waits for none."""
    import torch  # noqa: PLC0415

    if not torch.cuda.is_available():
        return
    from pyprof.capture.in_process import count_steps  # noqa: PLC0415
    from pyprof.instrument.windows import Windows  # noqa: PLC0415 - it imports torch

    windows = Windows(
        steps.schedule(), _finished(torch.cuda.profiler.start), _finished(torch.cuda.profiler.stop)
    )
    for name in ("start", "stop"):
        _set_back(stack, torch.cuda.profiler, name, lambda: None)
    count_steps(StepCounter(windows.step), stack)
    stack.callback(windows.finish)


def _finished(then: Callable[[], object]) -> Callable[[], None]:
    """Wait for the GPU first, so that what was launched in a window is recorded with it."""
    import torch  # noqa: PLC0415

    def call() -> None:
        torch.cuda.synchronize()
        then()

    return call


if __name__ == "__main__":
    signals.quietly_until_begun()
    launch()
