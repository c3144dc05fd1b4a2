"""Closed streams and readers that went away: output files are still written."""

import io
import os
import subprocess
import sys
from pathlib import Path

import pytest

from pyprof.process import progress, stdio
from pyprof.process.messages import say
from tests.analysis.captured import capture
from tests.commands import refused, run
from tests.process.test_overwrite_guard import READING, SUFFIX, given
from tests.programs import environment

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="a shell's redirections")

PYPROF = f'"{sys.executable}" -m pyprof'


def gone(*arguments: str | Path) -> int:
    """Run a command whose stderr is a pipe that nobody reads; return its exit code."""
    reader, writer = os.pipe()
    os.close(reader)
    try:
        return subprocess.run(
            [sys.executable, "-m", "pyprof", *map(str, arguments)], stderr=writer,
            stdout=subprocess.DEVNULL, env=environment(), check=False,
        ).returncode  # fmt: skip
    finally:
        os.close(writer)


@pytest.mark.slow
def test_a_reader_of_stderr_that_goes_away_ends_nothing(net: Path, tmp_path: Path) -> None:
    """`2> >(true)`: the notes are lost, but the file is written."""
    target = tmp_path / "out.csv"
    assert gone("prof", net, "--csv", "-o", target) == 0
    assert len(target.read_text().splitlines()) == 21


@pytest.mark.slow
def test_exit_codes_need_no_stderr(tmp_path: Path) -> None:
    assert gone("prof", tmp_path / "none.sqlite") == 1
    assert gone("prof", "--sideways") == 2


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("closed", "more"),
    [
        ("2>&-", ""),
        ("2>&- >&- <&-", ""),
        pytest.param("2>&- >&- <&-", "--workers 2", marks=pytest.mark.slow),
    ],
)
def test_streams_that_the_shell_closed(closed: str, more: str, net: Path, tmp_path: Path) -> None:
    capture(tmp_path / "net2.sqlite")
    files = f'"{net}"' if not more else f'"{net}" "{tmp_path}/net2.sqlite"'
    line = f'{PYPROF} prof --csv -o "{tmp_path}/out.csv" {more} {files} {closed}'
    done = subprocess.run(["sh", "-c", line], env=environment(), check=False)
    assert done.returncode == 0
    assert (tmp_path / "out.csv").read_text().startswith('"Idx",')


@pytest.mark.slow
def test_a_closed_stdin_is_an_error() -> None:
    done = subprocess.run(
        ["sh", "-c", f"{PYPROF} prof - <&-"], env=environment(), capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1


LONGEST = SUFFIX | {"export": ".pt.trace.json.gz"}


@pytest.mark.few(6)
@pytest.mark.slow
@pytest.mark.parametrize("name", READING)
def test_a_name_of_the_maximum_length_is_an_output(name: str, net: Path, tmp_path: Path) -> None:
    suffix = LONGEST.get(name, ".txt")
    target = tmp_path / ("\u00e9" * ((255 - len(suffix)) // 2) + suffix)
    arguments = given(name, net) if name != "peaks" else []
    assert run(name, *arguments, "-o", target).code == 0
    assert {path.name for path in tmp_path.iterdir()} == {"net.sqlite", target.name}


@pytest.mark.parametrize("name", READING)
def test_a_name_that_is_too_long_is_an_error(name: str, net: Path, tmp_path: Path) -> None:
    long = "n" * 300
    suffix = SUFFIX.get(name, ".txt")
    beside = [] if name in ("peaks", "memory") else ["--with"]
    commands: list[list[str | Path]] = [[*given(name, net), "-o", tmp_path / f"{long}{suffix}"]]
    commands += [[*given(name, net), option, long, "-o", "o" + suffix] for option in beside]
    commands += [[*given(name, Path(long)), "-o", "o" + suffix]] if name != "peaks" else []
    for arguments in commands:
        done = run(name, *arguments)
        assert (done.code, done.stdout, len(done.stderr.splitlines())) == (1, "", 1), arguments
        assert "File name too long; c" in done.stderr


@pytest.mark.parametrize("name", [name for name in READING if name != "peaks"])
def test_a_pipe_is_not_a_capture(name: str, tmp_path: Path) -> None:
    """It cannot be read twice, and might never be written to."""
    pipe = tmp_path / "net.sqlite"
    os.mkfifo(pipe)
    for place in (pipe, Path("/dev/zero")):
        said = refused(name, *given(name, place), "-o", tmp_path / f"out{SUFFIX.get(name, '.txt')}")
        assert "is a pipe or a device; save it to a file" in said


@pytest.mark.slow
def test_a_set_is_exported_to_a_name_of_the_maximum_length(net: Path, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    target = tmp_path / "out" / ("n" * 251 + ".csv")
    other = capture(tmp_path / "other.sqlite")
    assert run("export", net, other, "-o", target).code == 0
    assert [*target.parent.iterdir()] == [target]


def test_a_failing_stderr_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    class Gone:
        closed = False

        def write(self, *_: str) -> int:
            raise OSError(5, "Input/output error")

        flush = fileno = write

        def isatty(self) -> bool:
            return True

    monkeypatch.setattr(sys, "stderr", Gone())
    say("nobody hears")
    with progress.progress_bar(2, "counting", 0) as advance:
        advance(1)
    assert stdio.terminal(sys.stderr)


def test_text_for_a_terminal_has_no_control_characters(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = io.TextIOWrapper(io.BytesIO())
    monkeypatch.setattr(terminal, "isatty", lambda: True)
    monkeypatch.setattr(sys, "stdout", terminal)
    print("a\x1b[2J\u00fcb", file=io.TextIOWrapper(stdio.stdout(), "utf-8"), flush=True)
    assert terminal.buffer.getvalue().decode() == "a [2J\u00fcb\n"
