"""Tests of pyprof.commands, and a runner that returns a command's outputs and exit code."""

from dataclasses import dataclass
from pathlib import Path

from click.testing import CliRunner

from pyprof.__main__ import main
from pyprof.cli import DEBUG


@dataclass(frozen=True)
class Done:
    code: int
    stdout: str
    stderr: str


def run(*arguments: str | Path, stdin: str | bytes | None = None) -> Done:
    """Run `pyprof ARGUMENTS`; what a command raises, other than its exit, is raised here."""
    result = CliRunner(env={DEBUG: "1"}).invoke(
        main, [str(argument) for argument in arguments], input=stdin, catch_exceptions=False
    )
    # Result.stdout would make "\n" of "\r\n".
    return Done(result.exit_code, result.stdout_bytes.decode(), result.stderr_bytes.decode())


def refused(*arguments: str | Path) -> str:
    """Run `pyprof ARGUMENTS`, which is to fail, and return the one line that says why."""
    done = run(*arguments)
    assert (done.code, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert done.stderr.startswith("pyprof: ")
    return done.stderr
