"""A profiler that runs the user's script: the script's exit code, and signals for it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from pyprof.capture import script
from pyprof.capture.request import mentions_range
from pyprof.errors import PyprofError
from pyprof.process import child_programs, signals

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyprof.capture.request import Request
    from pyprof.capture.under_profiler.script_process import Files


def is_ranged(request: Request) -> bool:
    """Whether to record only steps, or a range that the script may start."""
    return not request.whole and (
        request.steps is not None or mentions_range(script.source(request.target))
    )


def script_command(request: Request, folder: Path, *options: str) -> list[str]:
    """Return the command line of the script's process, which reports in `folder`."""
    inside = [f"--files={folder}", *options]
    if hangs_up():
        inside.append("--hangup")
    if not request.instrument:
        inside.append("--no-init")
    if request.steps is not None:
        inside.append(f"--steps={request.steps}")
    module = "pyprof.capture.under_profiler.script_process"
    return [sys.executable, "-m", module, *inside, "--", *request.target.command()]


def wait(line: Sequence[str], files: Files) -> int:
    """Start a profiler, wait for it, and return the script's exit code.

    Raises PyprofError if it cannot be started. Signals are forwarded to the script alone: the
    profiler then writes its report, which nsys does not always do on a signal of its own. Ctrl-C on
    the terminal has already reached both.
    """
    try:
        process = subprocess.Popen(child_programs.bind(line, hangup=not hangs_up()))  # noqa: S603 - the user's command
    except OSError as error:
        raise PyprofError(f"{line[0]}: {error.strerror}") from error
    noted: list[int] = []

    def forward(number: int, _frame: object) -> None:
        again = number in noted
        noted.append(number)
        if again or number != signal.SIGINT or not _is_in_foreground():
            end_script(files, number)
            if again and not files.pid.exists():
                process.terminate()

    with signals.handling_stop(forward):
        code = process.wait()
    if files.exit_code.exists():  # old versions of nsys return 0 whatever the script did
        return int(files.exit_code.read_text() or code)
    return 128 + noted[0] if noted else code if code >= 0 else 128 - code


def why_nothing(request: Request, no_file: str) -> str:
    """Return why nothing was recorded, and what to do, if the profiler wrote no file."""
    if request.steps is not None:
        return request.why_nothing()
    return f"{no_file}: see its messages above, or the script used no GPU; {request.on_cpu()}"


def end_script(files: Files, number: int) -> None:
    """End the script, or keep it from starting. The profiler ends soon after the script."""
    files.stop.touch()
    if files.pid.exists() and not files.exit_code.exists():
        with suppress(ProcessLookupError, ValueError):  # it has ended, or will check `stop`
            os.kill(int(files.pid.read_text()), number)


def _is_in_foreground() -> bool:
    """Whether Ctrl-C on the terminal reaches this process and the others of its job."""
    try:
        with Path("/dev/tty").open("rb") as terminal:
            return os.tcgetpgrp(terminal.fileno()) == os.getpgrp()
    except OSError:
        return False


def hangs_up() -> bool:
    """Whether closing the terminal ends this process; not under nohup."""
    return hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN
