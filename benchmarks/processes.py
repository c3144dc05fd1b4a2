"""What a command costs, as the operating system counts it: of several runs the cheapest."""

from __future__ import annotations

import os
import sys
import tempfile
from typing import TYPE_CHECKING, NamedTuple

from pipeline import peak_gb

if TYPE_CHECKING:
    from collections.abc import Sequence

PYTHON = sys.executable
_COMPILED = tempfile.gettempdir() + "/pyprof-benchmarks"
"""Where Python keeps what it compiles: an installed package is compiled, too."""


class Cost(NamedTuple):
    """The cost of one run."""

    cpu_s: float
    """Processor time, of the program and of the system on its behalf."""
    memory_mb: float


def cheapest(command: Sequence[str], runs: int) -> Cost:
    """Run a command several times; return the least processor time, and the memory of that run."""
    return min(_run(command) for _ in range(runs))


def _run(command: Sequence[str]) -> Cost:
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": _COMPILED, "PYTHONDONTWRITEBYTECODE": ""}
    pid = os.fork()
    if pid == 0:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        os.execve(command[0], [*command], environment)  # noqa: S606 - our own commands
    _, status, usage = os.wait4(pid, 0)
    if status:
        sys.exit(f"{' '.join(command)} failed")
    return Cost(usage.ru_utime + usage.ru_stime, 1000 * peak_gb(usage))
