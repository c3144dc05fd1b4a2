"""Completion of commands in shells."""

import os
import re
import subprocess
import sys

import pytest

from tests.commands import run
from tests.programs import TOP

INSTALL = (TOP / "docs" / "README.md").read_text("utf-8")


@pytest.mark.parametrize("shell", re.findall(r"pyprof completion (\w+)", INSTALL))
def test_completion_is_written_for_each_shell(shell: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", "from pyprof.__main__ import main; main(prog_name='pyprof')"],
        env={**os.environ, "PYTHONPATH": str(TOP), "_PYPROF_COMPLETE": f"{shell}_source"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert "_COMPLETE" in done.stdout or "completion" in done.stdout, done.stderr
    ours = run("completion", shell)
    assert (ours.code, ours.stderr, ours.stdout.strip()) == (0, "", done.stdout.strip())
