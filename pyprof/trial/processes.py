"""The process of one run: started alone in its session, so that all of it can be ended."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyprof.process import child_programs, signals
from pyprof.trial.run_files import RunResult

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from pyprof.trial.run_files import RunRequest

_LAST_LINES_BYTES = 1 << 16
_TIMED_OUT = 124
"""Exit code of `timeout`."""


@dataclass(frozen=True, kw_only=True)
class RunPaths:
    """Files of one run."""

    request: Path
    result: Path
    log: Path
    """What the script prints."""

    @classmethod
    def named(cls, folder: Path, stem: str) -> RunPaths:
        """Name them in a folder."""
        suffixes = {"request": "request.json", "result": "result.json", "log": "log"}
        return cls(**{key: folder / f"{stem}.{suffix}" for key, suffix in suffixes.items()})


def perform(
    request: RunRequest, paths: RunPaths, environment: Mapping[str, str], limit_s: float | None
) -> RunResult:
    """Run the script as requested; a failure is part of the result."""
    request.write(paths.request)
    paths.result.unlink(missing_ok=True)
    program = [sys.executable, "-m", "pyprof.trial.script.child", str(paths.request)]
    with paths.log.open("wb") as log:
        process = subprocess.Popen(  # noqa: S603 - the user's own script
            child_programs.bind(program),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            env={**os.environ, **environment},
            start_new_session=True,
        )
        try:
            code: int | None = process.wait(limit_s)
        except subprocess.TimeoutExpired:
            code = None
        finally:
            with signals.postponed():
                _end_session(process)
    return _read_result(paths, code, limit_s)


def _end_session(process: subprocess.Popen[bytes]) -> None:
    """End the process and those that it started, such as workers of a DataLoader."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, number)
        with suppress(subprocess.TimeoutExpired):
            process.wait(1)


def _read_result(paths: RunPaths, code: int | None, limit_s: float | None) -> RunResult:
    """Return what a run found; `code` is None if it did not end in time."""
    try:
        result = RunResult.read(paths.result)
    except (OSError, ValueError):
        result = RunResult(code=code or 1, error="" if code else "its process left no result")
    if code is None and result.code:  # else its threads did not end after its last line
        return RunResult(code=_TIMED_OUT, error=f"ended after {limit_s:.0f} s: it takes too long")
    result.code = result.code or code or 0
    if result.code and not result.error:
        log = paths.log.read_bytes()[-_LAST_LINES_BYTES:].decode(errors="replace")
        lines = [line.strip() for line in log.splitlines() if line.strip()]
        result.error = lines[-1] if lines else _describe_end(result.code)
    return result


def _describe_end(code: int) -> str:
    """Say how a process ended that printed nothing."""
    with suppress(ValueError):
        return f"ended by {signal.Signals(-code).name}"
    return f"exit code {code}"
