"""Runs of a trial as Python literals, and small scripts to try changes on."""

import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from pyprof.trial.change import Chosen, parse
from pyprof.trial.experiment import BASELINE, TrialRun, Variant
from pyprof.trial.run_files import Mode, RunRequest, RunResult
from tests import forks
from tests.programs import environment

CHANGE: Variant = (Chosen("threads", "1"),)


def runs(*lengths: tuple[Variant, Sequence[float]], **fields: object) -> list[TrialRun]:
    """Make runs in their order, each of a variant with the lengths of its steps in ms."""
    return [
        made(variant, number, RunResult(step_ns=[1e6 * each for each in steps], **fields))  # type: ignore[arg-type]
        for number, (variant, steps) in enumerate(lengths, 1)
    ]


def made(variant: Variant, number: int, result: RunResult, mode: Mode = "time") -> TrialRun:
    """Make a run; its steps are named, and none compiles."""
    filled = replace(
        result,
        steps_of=result.steps_of or ("optimizer 1 of SGD" if result.step_ns else ""),
        compiling=result.compiling or [False] * len(result.step_ns),
        device=result.device or "CPU, 2 threads",
    )
    return TrialRun(number=number, variant=variant, mode=mode, result=filled)


def in_turn(a: Sequence[Sequence[float]], b: Sequence[Sequence[float]]) -> list[TrialRun]:
    """Make runs A B B A B B A... of the lengths of steps of each run, in ms."""
    order = [(BASELINE, a[0])]
    for number in range(len(b) // 2):
        order += [(CHANGE, b[2 * number]), (CHANGE, b[2 * number + 1]), (BASELINE, a[number + 1])]
    return runs(*order)


TRAINING = """
import torch
from torch import nn
torch.manual_seed(0)
{setup}
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))
optimizer = torch.optim.{optimizer}
x, y = torch.randn(4, 8), torch.randint(3, (4,))
for step in range({steps}):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
print(loss.item())
"""


def training(
    path: Path, *, steps: int = 6, setup: str = "", optimizer: str = "SGD(model.parameters(), 0.1)"
) -> Path:
    """Write a script that trains a small network."""
    path.write_text(TRAINING.format(steps=steps, setup=setup, optimizer=optimizer))
    return path


def run_child(
    script: Path,
    *texts: str,
    steps: int = 0,
    args: Sequence[str] = (),
    torch_is_imported: bool = True,
    **fields: object,
) -> RunResult:
    """Run a script with changes in a process of its own, and return what it found.

    Importing torch takes ten times as long as the scripts here: forks have it imported.
    """
    result = script.with_suffix(".result.json")
    request = RunRequest(
        name=str(script),
        args=tuple(args),
        module=False,
        changes=tuple(map(parse, texts)),
        steps=steps,
        seed=True,
        mode="time",
        result=str(result),
    )
    path = script.with_suffix(".request.json")
    replace(request, **fields).write(path)  # type: ignore[arg-type]
    words = ["-m", "pyprof.trial.script.child", str(path)]
    if torch_is_imported:
        done = forks.python(*words)
    else:
        done = forks.start_cold([sys.executable, *words], None, environment())()
    assert result.exists(), done.stderr
    found = RunResult.read(result)
    last_line = done.stderr.strip().rpartition("\n")[2]
    return replace(found, error=found.error or last_line) if found.code else found


def printed(script: Path) -> str:
    """Run a script as Python does, and return what it prints."""
    done = forks.python(script)
    assert done.returncode == 0, done.stderr
    return done.stdout


def lines_of(path: Path) -> list[dict[str, object]]:
    """Read a file of JSON lines."""
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]
