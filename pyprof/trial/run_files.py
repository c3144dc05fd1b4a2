"""The request to a run, and its result: files between the processes of a trial."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias

from pyprof.process import atomic_files
from pyprof.trial.change import Chosen

if TYPE_CHECKING:
    from pathlib import Path

Mode: TypeAlias = Literal["time", "losses", "profile"]
"""time: as the script is; losses: compiled code draws the random numbers of eager code; profile:
under torch.profiler."""


@dataclass(frozen=True, kw_only=True)
class RunRequest:
    """One run of the script."""

    name: str
    args: tuple[str, ...]
    module: bool
    changes: tuple[Chosen, ...]
    steps: int
    """End after this many steps; 0: run to the end."""
    seed: bool
    """Set all seeds to 0 before the script starts."""
    mode: Mode
    result: str
    """Path of the `RunResult`."""
    capture: str = ""
    """Path of the capture without its suffix, of a profiled run."""
    recorded_steps: str = ""
    """Which steps a profiled run records, as `pyprof capture --steps`; "": all of the run."""

    def write(self, path: Path) -> None:
        """Write it as JSON."""
        path.write_text(json.dumps(asdict(self)), encoding="utf-8")

    @classmethod
    def read(cls, path: Path) -> RunRequest:
        """Read what `write` wrote."""
        content = json.loads(path.read_text("utf-8"))
        chosen = tuple(Chosen(**each) for each in content.pop("changes"))
        return cls(**{**content, "changes": chosen, "args": tuple(content["args"])})


@dataclass(kw_only=True)
class RunResult:
    """What a run found."""

    code: int = 0
    """Exit code of the script; 0 if it was ended after the requested steps."""
    error: str = ""
    """The last line of its output, where it failed."""
    refused: dict[str, str] = field(default_factory=dict)
    """Why changes were not applied, by their text."""
    no_effect: dict[str, str] = field(default_factory=dict)
    """Why changes that were applied had no effect."""
    notes: list[str] = field(default_factory=list)
    """Other notes of a change, such as graph breaks."""
    steps_of: str = ""
    """What ends a step; "" if no steps were seen."""
    step_ns: list[float] = field(default_factory=list)
    """Length of each step, from the end of the one before."""
    compiling: list[bool] = field(default_factory=list)
    """Whether torch.compile compiled something in that step."""
    losses: list[float] = field(default_factory=list)
    """Each loss whose backward() was called."""
    wall_ns: int = 0
    """From the start of the script to its end, or that of the last requested step."""
    peak_memory_bytes: int | None = None
    """Peak of memory allocated on the GPU; without one, peak of the process's resident memory."""
    device: str = ""
    """Name of the GPU; without one, "CPU" and the number of torch's threads."""
    capture: str = ""
    """Path of the capture, of a profiled run."""

    def write(self, path: Path) -> None:
        """Write the result as JSON; the file is never half written."""
        atomic_files.replace_text(path, json.dumps(asdict(self)))

    @classmethod
    def read(cls, path: Path) -> RunResult:
        """Read what `write` wrote."""
        return cls(**json.loads(path.read_text("utf-8")))
