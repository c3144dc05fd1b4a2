"""What to record of a script, when, and the outcome."""

from __future__ import annotations

import ast
import math
import os
import shlex
import warnings
from dataclasses import KW_ONLY, dataclass, replace
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

from pyprof.errors import PyprofError
from pyprof.process import overwrite_guard, stdio

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyprof.capture.script import Target
    from pyprof.instrument.ranges.capture_range import Schedule

_RANGES = ("torch.cuda.profiler.start", "torch.cuda.profiler.profile", "pyprof.profile")
"""Functions that start the range to capture."""
_TRAINERS = "pyprof.trainers."
"""Prefix of callbacks that mark a range for the script."""
_RUNTIME = "cudaProfilerStart"
"""CUDA's own function for that, from whatever binding."""
_RANKS = {
    "RANK": "WORLD_SIZE",
    "OMPI_COMM_WORLD_RANK": "OMPI_COMM_WORLD_SIZE",
    "PMI_RANK": "PMI_SIZE",
    "SLURM_PROCID": "SLURM_NTASKS",
}
"""Variables that launchers set: a process's rank, and the number of ranks."""


@dataclass(frozen=True, slots=True)
class StepsToRecord:
    """Which steps to record: skip `wait` and `warmup`, record `active`, `repeat` times.

    As in torch.profiler.schedule, a `repeat` of 0 continues until the script ends.
    """

    wait: int
    warmup: int
    active: int
    repeat: int = 1

    @classmethod
    def parse(cls, text: str) -> StepsToRecord:
        """Parse `WAIT,WARMUP,ACTIVE[,REPEAT]`. Raises PyprofError."""
        parts = text.split(",")
        if len(parts) not in {3, 4} or not all(part.strip().isdecimal() for part in parts):
            raise PyprofError(f"{text!r}: expected three counts, such as 5,2,3, or four")
        steps = cls(*(int(part) for part in parts))
        if steps.active < 1:
            raise PyprofError(f"{text!r}: the third count has to be 1 or more")
        return steps

    def __str__(self) -> str:
        return f"{self.wait},{self.warmup},{self.active},{self.repeat}"

    def schedule(self) -> Schedule:
        """Return the same as a schedule of torch.profiler."""
        from torch.profiler import schedule  # noqa: PLC0415 - torch is the user's own

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about a missing warm-up, which the user chose
            return schedule(
                wait=self.wait, warmup=self.warmup, active=self.active, repeat=self.repeat
            )


def mentions_range(source: str) -> bool:
    """Whether a script's code can start a range to capture; running it shows whether it does."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the script's own, shown when it runs
            tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return False
    homes: dict[str, str] = {}  # full names, by the names that imports bind
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            homes |= {each.asname: each.name for each in node.names if each.asname}
        elif isinstance(node, ast.ImportFrom) and node.module:
            homes |= {each.asname or each.name: f"{node.module}.{each.name}" for each in node.names}
    nodes = (node for node in ast.walk(tree) if isinstance(node, (ast.Name, ast.Attribute)))
    return any(
        name in _RANGES or name.startswith(_TRAINERS) or name.rpartition(".")[2] == _RUNTIME
        for name in (_full_name(node, homes) for node in nodes)
    )


def _full_name(node: ast.expr, homes: Mapping[str, str]) -> str:
    """Return the full name of `a.b.c`; only the end if it begins with a call or the like."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if isinstance(node, ast.Name):
        parts.append(homes.get(node.id, node.id))
    return ".".join(reversed(parts))


def rank() -> int | None:
    """Return this process's rank, as set by its launcher; else None."""
    for name, size in _RANKS.items():
        value = os.environ.get(name, "")
        if value.isdecimal() and os.environ.get(size) not in {None, "1"}:
            return int(value)
    return None


def add_rank(name: str) -> str:
    """Append the rank to a file name, if there is one: each rank writes its own."""
    own_rank = rank()
    return name if own_rank is None else f"{name}.rank{own_rank}"


def set_aside(capture: Path, began_s: float) -> str:
    """Rename the snapshot beside a capture if older than its run; return a note, "" if not.

    It would be mistaken for this run's.
    """
    snapshot = overwrite_guard.snapshot_beside(capture)
    try:
        if snapshot.stat().st_mtime >= began_s:
            return ""
        names = (f"{snapshot.name}.old{number or ''}" for number in count())
        old = next(path for path in map(snapshot.with_name, names) if not path.exists())
        snapshot.rename(old)
    except OSError:
        return ""
    return f"{relative_to_here(snapshot)} was of an earlier run: it is {relative_to_here(old)} now"


def make_room_for_snapshot(capture: Path) -> None:
    """Check that a snapshot can be written beside a capture of this name; raises PyprofError.

    A snapshot without a capture of ours beside it is set aside, since it may be the only copy.
    """
    check_place(overwrite_guard.snapshot_beside(capture), lambda _: True)
    if not overwrite_guard.recorded(capture) and (note := set_aside(capture, math.inf)):
        stdio.say(note)


@dataclass(frozen=True, slots=True)
class Request:
    """One run of a script under a profiler."""

    target: Target
    output: str
    """The file's name without the suffix of the tool."""
    _: KW_ONLY
    whole: bool = False
    """Record everything; else the steps, or the range that the script starts, if any."""
    steps: StepsToRecord | None = None
    instrument: bool = True
    """Call pyprof.init() for the script."""
    graph_nodes: bool = True
    """Record the kernels inside CUDA graphs individually (nsys)."""
    memory: bool = False
    """Also record allocations."""
    metrics: bool = False
    """Sample the GPUs' counters."""

    def on_cpu(self) -> str:
        """Return how to time the script's ops without GPU work."""
        command = shlex.join(self.target.command())
        return f"to time ops on the CPU: python -m pyprof.capture --tool torch {command}"

    def why_nothing(self) -> str:
        """Return why nothing was recorded, and what to do."""
        if self.steps is not None:
            return (
                f"nothing was captured: the script ended before step "
                f"{self.steps.wait + self.steps.warmup}; steps are counted by the optimizer or "
                "pyprof.step()"
            )
        return (
            "nothing was captured: this process ran no torch op while it was recorded. If "
            "the script starts other programs that do, capture those: use python -m pyprof.capture "
            "instead of their python, or torchrun --nproc-per-node N -m pyprof.capture "
            f"{shlex.join(self.target.command())}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The result of a run."""

    code: int
    """The script's exit code."""
    path: Path | None
    """The file written; None if nothing was captured."""
    notes: tuple[str, ...] = ()
    """Messages for the user."""
    empty: bool = False
    """Whether the file has no GPU work, according to the notes."""
    others: tuple[Path, ...] = ()
    """Further files: those of processes that the script started, else its own profiler's."""
    memory: bool = False
    """Whether memory was recorded, too."""

    @property
    def captures(self) -> tuple[Path, ...]:
        """The captures to report."""
        own = () if self.path is None or self.empty else (self.path,)
        return own or self.others

    @property
    def recordings(self) -> tuple[Path, ...]:
        """Recordings of memory to report: a GPU's snapshot, else the captures' own events."""
        if not self.memory or self.path is None:
            return ()
        snapshot = overwrite_guard.snapshot_beside(self.path)
        if snapshot.is_file():
            return (snapshot,)
        return () if self.path.suffix == ".sqlite" else self.captures

    def with_old_set_aside(self, began_s: float) -> Outcome:
        """Set aside what an older capture left beside the file, and note that."""
        if self.path is None or not (note := set_aside(self.path, began_s)):
            return self
        return replace(self, notes=(*self.notes, note))

    def exit_code(self) -> int:
        """Return the script's own exit code; 1 if that is 0 but there is nothing to report."""
        return self.code or int(not self.captures)


def relative_to_here(path: Path) -> Path:
    """Return an absolute path relative to the current folder, if it is inside."""
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path


def check_place(path: Path, own: Callable[[Path], bool] = overwrite_guard.recorded) -> None:
    """Raise PyprofError if no file can be written here: a run that is not saved is lost.

    Also if a capture is there, unless `own` accepts it: what `pyprof capture` wrote may be
    replaced.
    """
    overwrite_guard.current().check_not_capture(str(path), own)
    path = Path(os.path.realpath(path))
    if path.is_symlink():
        raise PyprofError(f"{path}: a link to itself; remove it, or choose another place with -o")
    if path.exists() and not path.is_file():  # it would replace a device
        raise PyprofError(f"{path}: is not a regular file; choose another place with -o")
    folder = path.parent
    if not folder.is_dir():
        raise PyprofError(f"{folder}: no such folder; create it, or choose another place with -o")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise PyprofError(f"{folder}: no permission to write there; choose another place with -o")
