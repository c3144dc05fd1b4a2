"""A run as changes see it: hooks to patch the script's libraries, and to report what happened."""

from __future__ import annotations

import os
import random
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from pyprof.capture.kineto import memory_guard
from pyprof.quantities import counted
from pyprof.trial.change import RefusedError, changes
from pyprof.trial.run_files import RunRequest, RunResult
from pyprof.trial.script.after_import import AfterImport
from pyprof.trial.script.losses import Losses
from pyprof.trial.script.outermost import OutermostCalls
from pyprof.trial.script.steps import Steps

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyprof.trial.change import Chosen, Stage, WhyNoEffect


class Observation:
    """What is kept of the run while the script runs, and how it ends."""

    def __init__(self, request: RunRequest) -> None:
        self.request = request
        self.result = RunResult()
        self.imports = AfterImport()
        self.calls = OutermostCalls()
        self.steps = Steps(request.steps, self.finish)
        self.losses = Losses(self._backward_started)
        self._no_effect: dict[str, WhyNoEffect] = {}
        self._concluded = False
        self._start_ns = 0

    def install(self) -> None:
        """Apply the changes now, or as soon as the script has imported what they patch."""
        sys.meta_path.insert(0, self.imports)
        if self.request.seed:
            random.seed(0)
            self.imports.call("numpy.random", lambda: sys.modules["numpy.random"].seed(0))
        self.imports.call("torch", self._torch_imported)
        name = "pyprof.instrument.ranges.capture_range"
        self.imports.call(name, self._count_marked_steps)
        self._apply_changes("start")
        self._start_ns = time.perf_counter_ns()

    def _torch_imported(self) -> None:
        import torch  # noqa: PLC0415 - just imported

        if self.request.seed:
            torch.manual_seed(0)
        self.calls.install()
        self.losses.install()
        self.steps.install()
        self._apply_changes("torch")
        self.calls.after.append(self.steps.module_called)

    def _count_marked_steps(self) -> None:
        from pyprof.instrument.ranges.capture_range import step_end  # noqa: PLC0415 - just imported

        step_end.add(self.steps.step_called)

    def _backward_started(self) -> None:
        self.steps.backward_called = True

    def _apply_changes(self, stage: Stage) -> None:
        for chosen in self.request.changes:
            entry = changes()[chosen.name]
            if entry.stage != stage:
                continue
            try:
                no_effect = entry.apply(Run(self, chosen))
            except RefusedError as refused:
                self.refuse(chosen, str(refused))
            if no_effect is not None:
                self._no_effect[str(chosen)] = no_effect

    def refuse(self, chosen: Chosen, why: str) -> NoReturn:
        """End the run: the change cannot be applied."""
        self.result.refused[str(chosen)] = why
        self.finish()

    def finish(self) -> NoReturn:
        """End the process at once by `os._exit`, which is patched to call `conclude` first."""
        os._exit(0)

    def conclude(self, code: int) -> None:
        """Write the result, once."""
        if self._concluded:
            return
        self._concluded = True
        result = self.result
        result.code = code
        result.wall_ns = time.perf_counter_ns() - self._start_ns
        if "torch" in sys.modules:
            self._read_torch(result)
        else:
            for each in self.request.changes:
                if changes()[each.name].stage == "torch":
                    result.no_effect[str(each)] = "the script does not import torch"
        for text, no_effect in self._no_effect.items():
            why = no_effect()
            if why is not None:
                result.no_effect[text] = why
        result.write(Path(self.request.result))

    def _read_torch(self, result: RunResult) -> None:
        torch: Any = sys.modules["torch"]
        on_gpu = torch.cuda.is_initialized()
        if on_gpu:
            torch.cuda.synchronize()
            result.wall_ns = time.perf_counter_ns() - self._start_ns
        result.steps_of, result.step_ns, result.compiling = self.steps.lengths()
        result.losses = self.losses.values()
        if on_gpu:
            result.device = torch.cuda.get_device_name()
            result.peak_memory_bytes = torch.cuda.max_memory_allocated()
        else:
            result.device = f"CPU, {counted(torch.get_num_threads(), 'thread')}"
            result.peak_memory_bytes = memory_guard.peak_bytes()


class Run:
    """The run of the script with one change, as that change sees it."""

    def __init__(self, observation: Observation, chosen: Chosen) -> None:
        self._observation = observation
        self._chosen = chosen
        self.value = chosen.value
        """The change's value; "" if it takes none."""
        self.checks_losses = observation.request.mode == "losses"
        """Whether losses are compared in this run, and times are not."""
        self.calls = observation.calls
        """What is done before, around and after calls of outermost modules."""

    def note(self, text: str) -> None:
        """Add a note to the result; once."""
        notes = self._observation.result.notes
        if text not in notes:
            notes.append(text)

    def fail(self, why: str) -> None:
        """Mark the run as failed because of the change; called at its end."""
        result = self._observation.result
        result.code, result.error = result.code or 1, result.error or why

    def refuse(self, why: str) -> NoReturn:
        """End the run, while the script runs: the change cannot be applied."""
        self._observation.refuse(self._chosen, why)

    def after_import(self, module: str, function: Callable[[], object]) -> None:
        """Call a function when the script has imported a module."""
        self._observation.imports.call(module, function)
