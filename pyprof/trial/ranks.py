"""Ranks of one job that all run the same trial: same runs in the same order, one answer.

Each rank runs `pyprof try` itself (`torchrun -m pyprof try`), and each run is a job of its own: the
ranks agree on its port, and read each other's results, through files in the folder of the trial.
"""

from __future__ import annotations

import os
import socket
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pyprof.capture.request import rank as own_rank
from pyprof.errors import PyprofError
from pyprof.process import atomic_files
from pyprof.trial.run_files import RunResult

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

_POLL_S = 0.02
_LIMIT_S = 600.0
"""Time limit for the file of another rank."""


@dataclass(frozen=True)
class Ranks:
    """This process's rank, and how many there are."""

    rank: int
    size: int
    job: str
    """Distinguishes the files of this job from those of an earlier one."""

    @classmethod
    def here(cls) -> Ranks:
        """Read rank and size from the variables that torchrun sets."""
        rank = own_rank()
        if rank is None:
            return cls(0, 1, "")
        size = int(os.environ.get("WORLD_SIZE", "1"))
        if int(os.environ.get("LOCAL_WORLD_SIZE", size)) != size:
            raise PyprofError("pyprof try needs all ranks on one machine; use one node")
        return cls(rank, size, f"{os.environ.get('MASTER_PORT', '')}-{os.getppid()}")

    @property
    def first(self) -> bool:
        """Whether this process reports."""
        return self.rank == 0

    def stem(self, number: int, rank: int | None = None) -> str:
        """Name the files of a rank's run."""
        if self.size == 1:
            return f"run-{number:03}"
        return f"run-{number:03}.{self.job}.rank{self.rank if rank is None else rank}"

    def environment(self, folder: Path, number: int) -> dict[str, str]:
        """Return the variables by which the processes of a run find each other."""
        if self.size == 1:
            return {}
        file = folder / f"run-{number:03}.{self.job}.port"
        if self.first:
            with socket.socket() as probe:
                probe.bind(("127.0.0.1", 0))
                free_port = probe.getsockname()[1]
            atomic_files.replace_text(file, str(free_port))
        _wait_for(file)
        return {"MASTER_PORT": file.read_text(), "TORCHELASTIC_USE_AGENT_STORE": "False"}

    def gather(self, folder: Path, number: int, own: RunResult) -> RunResult:
        """Return the result of all ranks: times and memory of the largest, losses of the first."""
        if self.size == 1:
            return own
        results = []
        for rank in range(self.size):
            path = folder / f"{self.stem(number, rank)}.shared.json"
            if rank == self.rank:
                own.write(path)
            _wait_for(path)
            results.append(RunResult.read(path))
        return merge_results(results)


def merge_results(results: Sequence[RunResult]) -> RunResult:
    """Merge the results of ranks in their order."""
    steps = zip(*(result.step_ns for result in results), strict=False)
    compiling = zip(*(result.compiling for result in results), strict=False)
    peaks = [r.peak_memory_bytes for r in results if r.peak_memory_bytes is not None]
    return replace(
        results[0],
        code=next((result.code for result in results if result.code), 0),
        error=next((result.error for result in results if result.error), ""),
        refused={key: why for result in results for key, why in result.refused.items()},
        no_effect={key: why for result in results for key, why in result.no_effect.items()},
        notes=list(dict.fromkeys(note for result in results for note in result.notes)),
        step_ns=[max(lengths) for lengths in steps],
        compiling=[any(flags) for flags in compiling],
        wall_ns=max(result.wall_ns for result in results),
        peak_memory_bytes=max(peaks, default=None),
    )


def _wait_for(path: Path) -> None:
    """Wait for a file of another rank. Raises PyprofError if it does not come."""
    end = time.monotonic() + _LIMIT_S
    while not path.exists():
        if time.monotonic() > end:
            raise PyprofError(f"another rank did not write {path}; look at its output")
        time.sleep(_POLL_S)
