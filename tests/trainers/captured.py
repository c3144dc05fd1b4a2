"""Trainings by real libraries, captured by torch.profiler through a callback."""

from pathlib import Path

import pyprof
from tests import forks
from tests.commands import run


def check(folder: Path, script: str, batches: int) -> None:
    """Train: four steps in two windows around a validation are captured, and nothing of that."""
    (folder / "train.py").write_text(script)
    done = forks.python("-m", "pyprof.capture", "--tool", "torch", "train.py", cwd=folder)
    assert done.returncode == 0, done.stderr
    frame = pyprof.load(folder / "train.pt.trace.json.gz")
    assert "erf" not in set(frame["op"])
    linear = frame[(frame["op"] == "linear") & (frame["dir"] == "fprop")]
    assert linear["step"].tolist() == [step for step in range(4) for _ in range(batches)]
    assert set(frame["dir"]) == {"fprop", "bprop", "optim"}
    assert linear["window"].tolist() == [0] * 2 * batches + [1] * 2 * batches
    summary = run("summary", "-q", folder / "train.pt.trace.json.gz").stdout
    assert "4 by pyprof.step" in summary
