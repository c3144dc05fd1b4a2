"""A stand-in for a profiler: on PATH under its name, it records its arguments."""

import json
import os
import stat
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from pyprof.commands.capture import command as capture

RANGE = """
import sys
if len(sys.argv) > 99:
    import torch.cuda.profiler
    torch.cuda.profiler.start()
"""
"""A script that may start a range, and does not."""


class StandIn:
    """The program in a folder, and captures by it of a script beside it, into `net`."""

    def __init__(self, folder: Path, name: str, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
        """Install a program; it finds in SEEN where to write its arguments, as JSON."""
        self._folder = folder
        tool = folder / "bin" / name
        tool.parent.mkdir()
        tool.write_text(text.format(python=sys.executable))
        tool.chmod(tool.stat().st_mode | stat.S_IXUSR)
        monkeypatch.setenv("PATH", f"{tool.parent}{os.pathsep}{os.environ['PATH']}")
        monkeypatch.setenv("PYTHONPATH", os.getcwd())  # noqa: PTH109 - where pyprof is
        monkeypatch.setenv("SEEN", str(folder / "seen.json"))

    def capture(self, *args: str, text: str, code: int | None = None) -> Result:
        """Run `pyprof capture` of a script with arguments of its own; it may have to end so."""
        script = self._folder / "train.py"
        script.write_text(text)
        name = str(self._folder / "net")
        options = ["-o", name, "--no-init", *args, str(script), "--lr", "-o", "--"]
        result = CliRunner().invoke(capture, options)
        assert code in (None, result.exit_code), result.output
        return result


def seen(folder: Path) -> list[str]:
    """Return the arguments that the program got."""
    with (folder / "seen.json").open() as file:
        arguments: list[str] = json.load(file)
    return arguments
