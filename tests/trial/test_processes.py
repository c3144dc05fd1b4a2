"""The process of one run, and messages about how it ended."""

import signal
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from pyprof.trial import processes
from pyprof.trial.run_files import RunRequest, RunResult


def _perform(
    folder: Path, text: str, limit_s: float | None = None, environment: dict[str, str] | None = None
) -> RunResult:
    script, paths = folder / "a.py", processes.RunPaths.named(folder, "run-001")
    script.write_text(text)
    request = RunRequest(
        name=str(script), args=(), module=False, changes=(), steps=0, seed=True, mode="time",
        result=str(paths.result),
    )  # fmt: skip
    return processes.perform(request, paths, environment or {}, limit_s)


@pytest.mark.parametrize(
    ("text", "code", "error"),
    [
        ("print('no data'); raise SystemExit(124)", 124, "no data"),
        ("import os, signal; os.kill(0, signal.SIGKILL)", -signal.SIGKILL, "ended by SIGKILL"),
        ("raise SystemExit(9)", 9, "exit code 9"),
        ("import os; os.execvp('true', ['true'])", 1, "its process left no result"),
    ],
    ids=["as-timeout-does", "signal", "silent", "another-program"],
)
def test_the_failure_of_a_script_is_described(
    tmp_path: Path, text: str, code: int, error: str
) -> None:
    done = _perform(tmp_path, text)
    assert (done.code, done.error) == (code, error)


@pytest.mark.slow
def test_a_run_that_takes_too_long_is_ended(tmp_path: Path) -> None:
    done = _perform(tmp_path, "import time\ntime.sleep(1000)", limit_s=0.6)
    assert (done.code, done.error) == (124, "ended after 1 s: it takes too long")


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_what_the_script_started_ends_with_it(tmp_path: Path) -> None:
    """Such as loader workers of a script that is ended after some steps."""
    mark = f"pyprof-{tmp_path.name}-left-over"
    done = _perform(
        tmp_path,
        "import subprocess, sys\n"
        f"subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(1000)', {mark!r}])\n",
    )
    assert done.code == 0
    end = time.monotonic() + 10  # a killed process may take a moment to go
    while _is_running(mark) and time.monotonic() < end:
        time.sleep(0.01)
    assert not _is_running(mark)


def _is_running(mark: str) -> bool:
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            if mark.encode() in path.read_bytes():
                return True
    return False
