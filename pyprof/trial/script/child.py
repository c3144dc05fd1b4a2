"""The process of one run: `python -m pyprof.trial.script.child REQUEST`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from pyprof.capture import script
from pyprof.capture.exit_hooks import on_exit
from pyprof.errors import PyprofError
from pyprof.trial.run_files import RunRequest
from pyprof.trial.script.run import Observation

if TYPE_CHECKING:
    from pyprof.capture.request import Outcome


def main(path: Path) -> int:
    """Run the script as requested, and return its exit code."""
    request = RunRequest.read(path)
    observation = Observation(request)

    def left(status: int) -> int:
        observation.conclude(status & 0xFF)
        return status

    with on_exit(left):
        observation.install()
        target = script.Target(request.name, request.args, module=request.module)
        try:
            if request.mode == "profile":
                return _record(observation, target)
            code = script.run(target)
        except PyprofError as error:  # without it, the message would be a traceback's last line
            observation.result.error = str(error)
            code = 1
        observation.conclude(code)
        return code


def _record(observation: Observation, target: script.Target) -> int:
    """Run under torch.profiler; it records the requested steps, or the whole run."""
    from pyprof.capture.kineto import torch_profiler  # noqa: PLC0415 - it imports torch
    from pyprof.capture.request import Request, StepsToRecord  # noqa: PLC0415 - as above

    request = observation.request
    steps = StepsToRecord.parse(request.recorded_steps) if request.recorded_steps else None

    def conclude(outcome: Outcome) -> int:
        observation.result.capture = str(outcome.captures[0]) if outcome.captures else ""
        observation.conclude(int(outcome.code))
        return outcome.code

    asked = Request(target, request.capture, whole=steps is None, steps=steps)
    return conclude(torch_profiler.run(asked, conclude))


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
