"""Tests of pyprof.commands, and a runner that returns a command's outputs and exit code."""

import csv
import io
import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from pyprof.__main__ import main
from pyprof.cli.command import DEBUG


@dataclass(frozen=True)
class Done:
    code: int
    stdout: str
    stderr: str

    @property
    def rows(self) -> list[dict[str, str]]:
        """The CSV that a command wrote, which must have succeeded."""
        assert self.code == 0, self.stderr
        return list(csv.DictReader(io.StringIO(self.stdout)))

    @property
    def json(self) -> Any:  # noqa: ANN401 - any answer
        """The JSON that a command wrote, which must have succeeded."""
        assert self.code == 0, self.stderr
        return json.loads(self.stdout)


def run(*arguments: str | Path, stdin: str | bytes | None = None) -> Done:
    """Run `pyprof ARGUMENTS`; what a command raises, other than its exit, is raised here."""
    result = CliRunner(env={DEBUG: "1"}).invoke(
        main, [str(argument) for argument in arguments], input=stdin, catch_exceptions=False
    )
    # Result.stdout would make "\n" of "\r\n".
    return Done(result.exit_code, result.stdout_bytes.decode(), result.stderr_bytes.decode())


def printed(*arguments: str | Path) -> str:
    """Run `pyprof ARGUMENTS`, which is to succeed without a warning; return what it prints."""
    done = run(*arguments)
    assert (done.code, done.stderr) == (0, "")
    return done.stdout


def refused(*arguments: str | Path) -> str:
    """Run `pyprof ARGUMENTS`, which is to fail, and return the one line that says why."""
    done = run(*arguments)
    assert (done.code, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert done.stderr.startswith("pyprof: ")
    return done.stderr


def misused(*arguments: str | Path) -> str:
    """Run `pyprof ARGUMENTS`, which is wrong usage, and return what it says in one line."""
    done = run(*arguments)
    assert (done.code, done.stdout) == (2, "")
    return " ".join(done.stderr.split())


def on_a_terminal(monkeypatch: pytest.MonkeyPatch, stream: str, *arguments: str) -> str:
    """Run a command whose stdout or stderr is a terminal; return what is written there."""
    pty = pytest.importorskip("pty", reason="terminals are others there")
    ours, theirs = pty.openpty()
    with os.fdopen(theirs, "w") as terminal, monkeypatch.context() as patch:
        patch.setattr(sys, stream, terminal)
        assert not main(arguments, standalone_mode=False)
        terminal.write("end")
        terminal.flush()
        shown = b""
        while not shown.endswith(b"end"):  # a terminal gives what it has
            shown += os.read(ours, 1 << 16)
    os.close(ours)
    return shown.decode().removesuffix("end")
