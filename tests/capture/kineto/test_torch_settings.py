"""Environment variables that torch reads once do not reach the script."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from tests.capture.kineto.captured import TRAIN


@pytest.mark.long
def test_kineto_is_silent(tmp_path: Path) -> None:
    """Nothing of it comes between the script's output, unless the user asks for it.

    In a process of its own: Kineto reads its log level once.
    """
    (tmp_path / "train.py").write_text(TRAIN)
    command = [sys.executable, "-m", "pyprof.capture", "--tool", "torch", "-o", "net", "train.py"]
    asked = {name: value for name, value in os.environ.items() if name != "KINETO_LOG_LEVEL"}
    done = subprocess.run(
        command, cwd=tmp_path, env=asked, capture_output=True, text=True, check=True
    )
    assert "profiler_start" not in done.stdout + done.stderr
    assert (tmp_path / "net.pt.trace.json.gz").is_file()
