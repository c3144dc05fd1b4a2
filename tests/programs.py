"""Runs the project's programs as a user's shell would, and makes captures for them."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

TOP = Path(__file__).resolve().parents[1]


def environment() -> dict[str, str]:
    search = os.pathsep.join(filter(None, [str(TOP), os.environ.get("PYTHONPATH", "")]))
    return {**os.environ, "PYTHONPATH": search}


OLD_DRIVER = "ignore:CUDA initialization:UserWarning"
"""What torch's CUDA build says where the driver is too old for it; it then has the CPU."""


def python(*arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run this interpreter; warnings are errors there too."""
    return subprocess.run(
        [sys.executable, "-W", "error", "-W", OLD_DRIVER, *arguments],
        cwd=cwd, env=environment(), stdin=subprocess.DEVNULL,
        capture_output=True, text=True, check=False,
    )  # fmt: skip


def generate(path: Path, *options: str, program: str = "generate.py") -> dict[str, Any]:
    """Write a capture, or ranks' captures; return what is in it."""
    done = python(str(TOP / "benchmarks" / program), str(path), *options)
    assert not done.returncode, done.stderr
    truth: dict[str, Any] = json.loads(done.stdout)
    return truth
