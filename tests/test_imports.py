"""What is cheap stays cheap: neither `import pyprof` nor a help text loads a heavy package."""

from __future__ import annotations

import pytest

from pyprof.__main__ import names
from tests.programs import python

HEAVY = ("torch", "pandas", "pyarrow", "numpy", "adbc_driver_sqlite", "nvtx")
"""Packages that take long to import."""

LOADED = f"import sys; print(*sorted(set({HEAVY!r}) & set(sys.modules)))"
HELP = """
import sys
from pyprof.__main__ import main
try:
    main(sys.argv[1:] + ["--help"])
except SystemExit as end:
    assert end.code == 0, end.code
"""


def test_importing_pyprof_loads_nothing_heavy() -> None:
    """`import pyprof` in a training script costs nothing."""
    done = python("-c", f"import pyprof; {LOADED}")
    assert (done.stdout.split(), done.stderr) == ([], "")


@pytest.mark.parametrize("command", [[], *([name] for name in names())], ids=" ".join)
def test_help_loads_nothing_heavy(command: list[str]) -> None:
    """The help of the group and of each command appears before anything heavy is loaded."""
    done = python("-c", HELP + LOADED, *command)
    lines = done.stdout.splitlines()
    assert (lines[0].split()[0], lines[-1], done.stderr) == ("Usage:", "", "")
