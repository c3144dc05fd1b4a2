"""Runs of a trial in turn, each in a fresh process, a baseline on both sides of each change."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from pyprof.errors import PyprofError
from pyprof.inputs.trial_folder import RUNS
from pyprof.trial import processes
from pyprof.trial.change import Chosen, Launch, changes
from pyprof.trial.run_files import Mode, RunRequest, RunResult

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from pyprof.capture.script import Target
    from pyprof.trial.ranks import Ranks

Variant: TypeAlias = "tuple[Chosen, ...]"
"""The changes of a run; () for the baseline."""
BASELINE: Variant = ()
_LIMIT_FACTOR, _LIMIT_EXTRA_S = 10, 300
"""A run may take this multiple of the longest so far, and this much more."""
_PROFILED_STEPS, _PROFILE_WARM_UP = 5, 3
"""Steps that are profiled, and those before them; in one between, the profiler warms up."""


def label(variant: Variant) -> str:
    """Return the changes as the user writes them."""
    return " + ".join(map(str, variant)) if variant else "without a change"


@dataclass(frozen=True, kw_only=True)
class TrialRun:
    """One run, in the order of runs."""

    number: int
    variant: Variant
    mode: Mode
    result: RunResult

    @property
    def usable(self) -> bool:
        """Whether the script ran with the change."""
        return not (self.result.code or self.result.refused or self.result.no_effect)


@dataclass(kw_only=True)
class Trial:
    """A script, how it is run, and the runs so far."""

    target: Target
    folder: Path
    ranks: Ranks
    steps: int
    seed: bool
    report: Callable[[TrialRun], object]
    """Called after each run."""
    runs: list[TrialRun] = field(default_factory=list)
    not_tried: tuple[str, ...] = ()
    """Advice on the script that no change follows."""

    def begin(self) -> None:
        """Create the folder, once for all ranks. Raises PyprofError if something else is in it."""
        if not self.ranks.first:
            return
        files = self.folder / "runs"
        try:
            ours = not self.folder.exists() or (self.folder / RUNS).exists()
            if not ours and any(self.folder.iterdir()):
                raise PyprofError(
                    f"{self.folder}: holds other files; choose another folder with -o"
                )
            files.mkdir(parents=True, exist_ok=True)
            (self.folder / RUNS).write_text("")
        except OSError as error:
            what = error.strerror or error
            raise PyprofError(f"{self.folder}: {what}; choose another folder with -o") from None

    def measure(
        self, variants: Sequence[Variant], rounds: int, undecided: Callable[[Variant], bool]
    ) -> None:
        """Run each change twice between two baselines, in each round; more where undecided.

        A change that is refused or fails is not run again. Raises PyprofError if the script fails
        without a change.
        """
        if not any(run.variant == BASELINE for run in self.runs):
            self.baseline()
        for number in range(rounds):
            self._run_round(variants if number % 2 == 0 else variants[::-1])
        for _ in range(rounds + 1):
            self._run_round([v for v in variants if not self._is_dropped(v) and undecided(v)])

    def _run_round(self, variants: Sequence[Variant]) -> None:
        for variant in variants:
            if self._is_dropped(variant):
                continue
            self.perform(variant, "time")
            if not self._is_dropped(variant):
                self.perform(variant, "time")
                self.baseline()

    def baseline(self) -> TrialRun:
        """Run the script without a change. Raises PyprofError if it fails."""
        run = self.perform(BASELINE, "time")
        if run.result.code:
            log = self._paths(run.number).log
            raise PyprofError(
                f"{self.target.name} fails without a change: {run.result.error} (all of its "
                f"output: {log})"
            )
        return run

    def is_usable(self, variant: Variant) -> bool:
        """Whether the script ran with the changes, each time."""
        return any(run.variant == variant for run in self.runs) and not self._is_dropped(variant)

    def _is_dropped(self, variant: Variant) -> bool:
        return any(run.variant == variant and not run.usable for run in self.runs)

    def perform(self, variant: Variant, mode: Mode) -> TrialRun:
        """Run the script once, in a process of its own."""
        number = len(self.runs) + 1
        launch = Launch(args=list(self.target.args))
        for chosen in variant:
            entry = changes()[chosen.name]
            if entry.stage == "launch":
                entry.apply(launch, chosen.value)
        request = self._request(number, variant, mode, launch)
        files = self.folder / "runs"
        environment = {**launch.environment, **self.ranks.environment(files, number)}
        if self.seed and "PYTHONHASHSEED" not in os.environ:
            environment = {"PYTHONHASHSEED": "0", **environment}
        longest = max((run.result.wall_ns for run in self.runs if run.usable), default=None)
        limit_s = None if longest is None else longest / 1e9 * _LIMIT_FACTOR + _LIMIT_EXTRA_S
        own = processes.perform(request, self._paths(number), environment, limit_s)
        result = self.ranks.gather(files, number, own)
        run = TrialRun(number=number, variant=variant, mode=mode, result=result)
        self.runs.append(run)
        if self.ranks.first:
            line = {"number": number, "changes": [*map(str, variant)], "mode": mode}
            with (self.folder / RUNS).open("a", encoding="utf-8") as file:
                file.write(json.dumps({**line, **asdict(result)}) + "\n")
        self.report(run)
        return run

    def _request(self, number: int, variant: Variant, mode: Mode, launch: Launch) -> RunRequest:
        steps, recorded, capture = self.steps, "", ""
        if mode == "profile":
            name = label(variant).replace(" + ", "+") if variant else "baseline"
            safe = "".join(c if c.isalnum() or c in "+=-_." else "-" for c in name)[:64]
            # without its suffix; the number keeps it distinct
            capture = str((self.folder / f"{number:03}-{safe}").absolute())
            seen = max((len(run.result.step_ns) for run in self.runs), default=0)
            active = min(_PROFILED_STEPS, seen - _PROFILE_WARM_UP - 1)
            if active > 0:  # else all steps are recorded, as they are few
                recorded = f"{_PROFILE_WARM_UP},1,{active}"
                steps = _PROFILE_WARM_UP + 1 + active
        return RunRequest(
            name=self.target.name,
            args=tuple(launch.args),
            module=self.target.module,
            changes=tuple(each for each in variant if changes()[each.name].stage != "launch"),
            steps=steps,
            seed=self.seed,
            mode=mode,
            result=str(self._paths(number).result.absolute()),
            capture=capture,
            recorded_steps=recorded,
        )

    def _paths(self, number: int) -> processes.RunPaths:
        return processes.RunPaths.named(self.folder / "runs", self.ranks.stem(number))
