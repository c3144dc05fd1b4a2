"""The examples in a command's help run as they stand."""

from __future__ import annotations

import shlex
from shutil import copy
from typing import TYPE_CHECKING

import click
import pytest

from pyprof.__main__ import main
from tests.commands import run
from tests.report.captured import capture

if TYPE_CHECKING:
    from pathlib import Path

NAMES = ("export", "diff", "report", "roofline", "ranks")


def examples(name: str) -> list[str]:
    """Give the command lines of a help text."""
    command = main.get_command(click.Context(main), name)
    assert command is not None
    lines = (line.strip() for line in (command.help or "").splitlines())
    return [line for line in lines if line.startswith(f"pyprof {name} ")]


@pytest.mark.parametrize("line", [line for name in NAMES for line in examples(name)])
def test_an_example_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str) -> None:
    """With the files that it names it succeeds, and writes the file that it is told to."""
    if "html" in line:
        pytest.importorskip("bokeh")
    if "png" in line or "svg" in line:
        pytest.importorskip("matplotlib")
    monkeypatch.chdir(tmp_path)
    for name in ("net", "before", "after"):
        capture(tmp_path / f"{name}.sqlite", steps=4)
    (tmp_path / "traces").mkdir()
    for rank in range(2):
        copy(tmp_path / "net.sqlite", tmp_path / f"net.rank{rank}.sqlite")
        copy(tmp_path / "net.sqlite", tmp_path / "traces" / f"rank{rank}.sqlite")
    assert run("parse", "net.sqlite", "-o", "net.dict").code == 0
    _, *arguments = shlex.split(line)
    done = run(*arguments)
    assert done.code == 0, done.stderr
    if "-o" in arguments:
        assert (tmp_path / arguments[arguments.index("-o") + 1]).stat().st_size


@pytest.mark.parametrize("name", NAMES)
def test_every_help_has_examples(name: str) -> None:
    """One at least."""
    assert examples(name)
