"""When to record: from the script's own range, by steps, or all the time."""

from __future__ import annotations

import ast
import os
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyprof.errors import PyprofError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from pyprof.instrument.windows import Schedule

_RANGES = ("torch.cuda.profiler.start", "torch.cuda.profiler.profile", "pyprof.profile")
_RUNTIME = "cudaProfilerStart"
_RANKS = {
    "RANK": "WORLD_SIZE",
    "OMPI_COMM_WORLD_RANK": "OMPI_COMM_WORLD_SIZE",
    "PMI_RANK": "PMI_SIZE",
    "SLURM_PROCID": "SLURM_NTASKS",
}
"""Variables that launchers set: a process's rank, and how many there are."""


@dataclass(frozen=True, slots=True)
class Steps:
    """Which steps to record: after `wait` and `warmup` of them, `active`, and so on `repeat` times.

    As in torch.profiler.schedule, a `repeat` of 0 goes on until the script ends.
    """

    wait: int
    warmup: int
    active: int
    repeat: int = 1

    @classmethod
    def parse(cls, text: str) -> Steps:
        """Read `WAIT,WARMUP,ACTIVE[,REPEAT]`; PyprofError where it is not that."""
        parts = text.split(",")
        if len(parts) not in {3, 4} or not all(part.strip().isdecimal() for part in parts):
            raise PyprofError(f"--steps {text}: expected three counts, such as 5,2,3, or four")
        steps = cls(*(int(part) for part in parts))
        if steps.active < 1:
            raise PyprofError(f"--steps {text}: the third count has to be 1 or more")
        return steps

    def __str__(self) -> str:
        return f"{self.wait},{self.warmup},{self.active},{self.repeat}"

    def schedule(self) -> Schedule:
        """Give the same as torch.profiler tells it: what to do at each step."""
        from torch.profiler import schedule  # noqa: PLC0415 - torch is the user's own

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that no warm-up skews: it was asked for
            return schedule(
                wait=self.wait, warmup=self.warmup, active=self.active, repeat=self.repeat
            )


class StepCounter:
    """Steps of a training loop, however the script tells of them.

    `pyprof.step()` is the script's word. Until it comes, each step of an optimizer counts; a
    script with two optimizers should say it itself.
    """

    def __init__(self, ended: Callable[[], object]) -> None:
        self._ended = ended
        self._told = 0
        self._optimized = 0
        self.count = 0

    def told(self) -> None:
        """Count a `pyprof.step()`."""
        self._told += 1
        self._advance(self._told)

    def optimized(self) -> None:
        """Count the step of an optimizer."""
        if not self._told:
            self._optimized += 1
            self._advance(self._optimized)

    def _advance(self, steps: int) -> None:
        if steps > self.count:
            self.count = steps
            self._ended()


def names_a_range(source: str) -> bool:
    """Tell whether a script's code can start a range to capture. Whether it does, the run tells."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about the script, which will say them itself
            tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return False
    homes = dict(pair for node in ast.walk(tree) for pair in _imported(node))
    return any(
        name in _RANGES or name.rpartition(".")[2] == _RUNTIME
        for node in ast.walk(tree)
        if isinstance(node, (ast.Name, ast.Attribute))
        for name in [_dotted(node, homes)]
    )


def _imported(node: ast.AST) -> Iterator[tuple[str, str]]:
    """Give the names that an import makes, and what each stands for."""
    if isinstance(node, ast.Import):
        yield from ((each.asname, each.name) for each in node.names if each.asname)
    elif isinstance(node, ast.ImportFrom) and node.module:
        for each in node.names:
            yield each.asname or each.name, f"{node.module}.{each.name}"


def _dotted(node: ast.expr, homes: Mapping[str, str]) -> str:
    """Give the full name of `a.b.c`; where that begins with a call or the like, its end."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if isinstance(node, ast.Name):
        parts.append(homes.get(node.id, node.id))
    return ".".join(reversed(parts))


def rank() -> int | None:
    """Give this process's rank in a distributed job, by what its launcher set; else None."""
    for name, size in _RANKS.items():
        value = os.environ.get(name, "")
        if value.isdecimal() and os.environ.get(size) not in {None, "1"}:
            return int(value)
    return None


def ranked(name: str) -> str:
    """Put the rank behind a file's name, where there is one: each rank writes its own."""
    found = rank()
    return name if found is None else f"{name}.rank{found}"
