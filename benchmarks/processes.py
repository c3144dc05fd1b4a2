"""What a command costs, as the operating system counts it: of several runs the cheapest."""

from __future__ import annotations

import os
import sys
import tempfile
import time
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import resource
    from collections.abc import Sequence
    from pathlib import Path

PYTHON = sys.executable
_COMPILED = tempfile.gettempdir() + "/pyprof-benchmarks"
"""Where Python keeps what it compiles: an installed package is compiled, too."""


class Cost(NamedTuple):
    """The cost of one run, with the processes that the command waited for."""

    wall_s: float
    cpu_s: float
    """Processor time, of the program and of the system on its behalf."""
    memory_mb: float
    """The most that one process held at once."""


def cheapest(command: Sequence[str], runs: int) -> Cost:
    """Run a command several times; return the run that took least processor time."""
    return min((run(command) for _ in range(runs)), key=lambda cost: cost.cpu_s)


def run(command: Sequence[str], output: str | Path = os.devnull) -> Cost:
    """Run a command; what it prints goes into a file."""
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": _COMPILED, "PYTHONDONTWRITEBYTECODE": ""}
    begun = time.perf_counter()
    pid = os.fork()
    if pid == 0:
        os.dup2(os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 1)
        os.execve(command[0], [*command], environment)  # noqa: S606 - our own commands
    _, status, usage = os.wait4(pid, 0)
    wall_s = time.perf_counter() - begun
    if status:
        sys.exit(f"{' '.join(command)} failed")
    return Cost(wall_s, usage.ru_utime + usage.ru_stime, peak_mb(usage))


def peak_mb(usage: resource.struct_rusage) -> float:
    """Return the most memory that a process, or one that it waited for, held at once, in MB."""
    unit = 1024 if sys.platform.startswith("linux") else 1  # ru_maxrss: kB there, bytes on macOS
    return usage.ru_maxrss * unit / 1e6
