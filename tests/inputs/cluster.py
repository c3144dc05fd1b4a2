"""A Dask cluster on this machine, as a user starts one."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from queue import SimpleQueue
from threading import Thread
from typing import IO

from tests.known import known
from tests.programs import TOP, environment

_HERE = ("--host", "127.0.0.1", "--no-dashboard")
_END = ""


@contextmanager
def cluster(workers: int, **variables: str) -> Iterator[str]:
    """Run `dask scheduler` and so many times `dask worker`; return the scheduler's address.

    `variables` are added to the environment.
    """
    with ExitStack() as running:
        log = running.enter_context(_dask(variables, "scheduler", "--port", "0", *_HERE))
        address = _said(log, "Scheduler at:")
        one = ("worker", address, "--nthreads", "1", "--no-nanny", *_HERE)
        for log in [running.enter_context(_dask(variables, *one)) for _ in range(workers)]:
            _said(log, "Registered to:")
        yield address


@contextmanager
def _dask(variables: dict[str, str], *arguments: str) -> Iterator[SimpleQueue[str]]:
    """Run a program of Dask's; return the lines of its log as they come."""
    lines: SimpleQueue[str] = SimpleQueue()
    command = [sys.executable, "-m", "dask", *arguments]
    with subprocess.Popen(
        command, cwd=TOP, env=environment() | variables, stderr=subprocess.PIPE, text=True
    ) as process:
        reader = Thread(target=_read, args=(known(process.stderr), lines))
        reader.start()
        try:
            yield lines
        finally:
            process.kill()
            reader.join()


def _read(log: IO[str], lines: SimpleQueue[str]) -> None:
    for line in log:
        lines.put(line)
    lines.put(_END)


def _said(lines: SimpleQueue[str], words: str) -> str:
    for line in iter(lines.get, _END):
        if words in line:
            return line.split()[-1]
    raise AssertionError(f"the program ended without {words!r}")
