"""The user's script in its process: `python -m pyprof.capture.under_profiler.script_process`.

Turns on the markers, runs the script, leaves its exit code in a file. Not for users.
"""

from __future__ import annotations

import os
import signal
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from pyprof.capture import script
from pyprof.capture.child_captures import replaced_run
from pyprof.capture.exit_hooks import on_exit
from pyprof.capture.replacement import replace_attributes
from pyprof.capture.request import StepsToRecord
from pyprof.capture.under_profiler.marking import mark, mark_process
from pyprof.cli.command import Main
from pyprof.process import signals
from pyprof.process.messages import say

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


class Files(NamedTuple):
    """Files by which the script's process and the one that started the profiler communicate."""

    pid: Path
    """Process id of the script, once it runs."""
    exit_code: Path
    """Exit code of the script, once it has ended."""
    stop: Path
    """Exists if the script should not even start."""

    @classmethod
    def within(cls, folder: Path) -> Files:
        """Return the files' paths in a folder."""
        return cls(folder / "pid", folder / "code", folder / "stop")


@click.command(cls=Main, context_settings={"allow_interspersed_args": False}, help=__doc__)
@click.option("--files", "folder", type=click.Path(path_type=Path), required=True)
@click.option("--hangup", is_flag=True)
@click.option("--no-init", is_flag=True)
@click.option("--steps", type=StepsToRecord.parse)
@click.option("--provisional", type=click.Path(path_type=Path))
@click.option("--roctx", is_flag=True)
@click.option("--memory", "snapshot", type=click.Path(path_type=Path))
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
def run_script(
    folder: Path,
    hangup: bool,  # noqa: FBT001 - click passes options by name
    no_init: bool,  # noqa: FBT001 - click passes options by name
    steps: StepsToRecord | None,
    provisional: Path | None,
    roctx: bool,  # noqa: FBT001 - as above
    snapshot: Path | None,
    command: Sequence[str],
) -> None:
    """Run a script with markers on, then exit with its code."""
    if hangup:  # nsys ignores it
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
    files = Files.within(folder)
    files.pid.write_text(str(os.getpid()))
    if files.stop.exists():
        return
    module = command[0] == "-m"
    name, *args = command[1:] if module else command

    def left(code: int) -> int:
        if snapshot is not None and (problem := memory_snapshot.write(snapshot)):
            say(problem)
        files.exit_code.write_text(str(code & 0xFF))
        return code

    with ExitStack() as stack:
        if not no_init:
            mark(stack, script.execute)
            stack.enter_context(replaced_run(mark_process))
        if snapshot is not None:
            from pyprof.capture.kineto import memory_snapshot  # noqa: PLC0415 - it imports torch

            memory_snapshot.begin()
        if roctx:
            from pyprof.capture.rocm.roctx_regions import torch_regions  # noqa: PLC0415 - imports torch

            stack.enter_context(torch_regions(of_script=steps is None))
        if steps is not None:
            _capture_steps(steps, stack)
        if provisional is not None:
            _capture_until_a_range(provisional)
        with on_exit(left):
            code = script.run(script.Target(name, tuple(args), module=module))
    with signals.postponed():
        left(code)
    sys.exit(code)


def _capture_steps(steps: StepsToRecord, stack: ExitStack) -> None:
    """Start and stop the profiler's range by steps; does nothing without a GPU."""
    import torch  # noqa: PLC0415

    if not torch.cuda.is_available():
        return
    from pyprof.capture.kineto.recording import count_steps  # noqa: PLC0415
    from pyprof.instrument.ranges.capture_range import RecordingWindows  # noqa: PLC0415 - it imports torch

    windows = RecordingWindows(
        steps.schedule(),
        _synchronize_before(torch.cuda.profiler.start),
        _synchronize_before(torch.cuda.profiler.stop),
    )
    home, nothing = torch.cuda.profiler, lambda: None
    stack.enter_context(replace_attributes((home, "start", nothing), (home, "stop", nothing)))
    stack.enter_context(count_steps(windows.step))
    stack.callback(windows.finish)


def _capture_until_a_range(gave_way: Path) -> None:
    """Start nsys's range at the script's first use of the GPU.

    When the script starts a range of its own, this one ends, and the file `gave_way` is left.
    """
    import torch  # noqa: PLC0415

    def begin() -> None:
        runtime: Any = torch.cuda.cudart()  # type: ignore[no-untyped-call]
        theirs = runtime.cudaProfilerStart

        def start() -> Any:  # noqa: ANN401 - as the original
            if not gave_way.exists():
                gave_way.touch()
                torch.cuda.synchronize()
                runtime.cudaProfilerStop()
            return theirs()

        theirs()
        runtime.cudaProfilerStart = start

    torch.cuda._lazy_call(begin)  # type: ignore[no-untyped-call]  # noqa: SLF001 - called when CUDA is there


def _synchronize_before(then: Callable[[], object]) -> Callable[[], None]:
    """Wait for the GPU first, so that what a window launched is recorded in it."""
    import torch  # noqa: PLC0415

    def call() -> None:
        torch.cuda.synchronize()
        then()

    return call


if __name__ == "__main__":
    signals.quietly_until_begun()
    run_script()
