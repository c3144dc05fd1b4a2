"""What a capture is to do, and what came of it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pyprof import guard
from pyprof.errors import PyprofError

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyprof.capture.script import Target
    from pyprof.capture.window import Steps


@dataclass(frozen=True, slots=True)
class Request:
    """One run of a script under a profiler."""

    target: Target
    output: str
    """The file's name without what the tool puts behind it."""
    whole: bool = False
    """Record all of it; else the range that the script starts, or the steps."""
    steps: Steps | None = None
    instrument: bool = True
    """Call pyprof.init() for the script."""
    graph_nodes: bool = False
    """Record the kernels inside CUDA graphs one by one (nsys)."""

    def nothing(self) -> str:
        """Say why nothing was recorded, and what to do."""
        if self.steps is not None:
            return (
                f"nothing was captured: the script ended before step "
                f"{self.steps.wait + self.steps.warmup}; steps are those of an optimizer, or "
                "what pyprof.step() says"
            )
        return (
            "nothing was captured: the script never started its range (pyprof.profile() or "
            "torch.cuda.profiler.start()); use --all or --steps 2,1,3"
        )


@dataclass(frozen=True, slots=True)
class Outcome:
    """How it went."""

    code: int
    """The script's exit code."""
    path: Path | None
    """The file written; None where nothing was captured."""
    notes: tuple[str, ...] = ()
    """Sentences for the user."""
    empty: bool = False
    """The file holds no GPU work, as the notes say."""


def check_place(path: Path, own: Callable[[Path], bool] = guard.recorded) -> None:
    """Raise PyprofError where no file can be written to: a run that is not kept is lost.

    Also where another's capture is; what `pyprof capture` wrote, as `own` tells, is replaced.
    """
    guard.current().no_capture(str(path), own)
    path = Path(os.path.realpath(path))
    if path.is_symlink():
        raise PyprofError(f"{path}: a link to itself; remove it, or choose another place with -o")
    folder = path.parent
    if not folder.is_dir():
        raise PyprofError(f"{folder}: no such folder to write to")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise PyprofError(f"{folder}: no permission to write there; choose another place with -o")
