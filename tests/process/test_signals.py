"""Signals: partial files are removed, and necessary clean-up is done."""

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pyprof.process import output_file, signals
from tests.analysis.captured import capture
from tests.commands import run
from tests.process.test_overwrite_guard import READING, SUFFIX, given
from tests.programs import environment

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals of Unix")

CODES = {"SIGINT": 130, "SIGTERM": 143, "SIGHUP": 129}


def send(name: str = "SIGTERM") -> None:
    """Send this process a signal; Python handles it before this returns."""
    os.kill(os.getpid(), getattr(signal, name))


def _then(call: Callable[..., Any], name: str) -> Callable[..., Any]:
    def both(*given: Any, **more: Any) -> Any:  # noqa: ANN401 - whatever it is
        found = call(*given, **more)
        send(name)
        return found

    return both


@pytest.mark.parametrize(
    "place", [(tempfile, "mkstemp"), (output_file, "_permissions"), (os, "replace")]
)
@pytest.mark.parametrize(("name", "code"), CODES.items())
def test_a_partial_file_is_removed(
    name: str, code: int, place: tuple[Any, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    net = capture(tmp_path / "net.sqlite")
    before = signal.getsignal(signal.SIGTERM)
    monkeypatch.setattr(*place, _then(getattr(*place), name))
    done = run("prof", net, "--csv", "-o", tmp_path / "out.csv")
    monkeypatch.undo()
    assert done.code == code
    assert "Traceback" not in done.stderr
    there = {path.name for path in tmp_path.iterdir()} - {"net.sqlite"}
    assert there == ({"out.csv"} if place[1] == "replace" else set())
    assert signal.getsignal(signal.SIGTERM) == before


@pytest.mark.few(6)
@pytest.mark.parametrize("command", READING)
def test_every_command_ends_at_once_and_leaves_nothing(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    net = capture(tmp_path / "net.sqlite")
    monkeypatch.setattr(output_file, "_permissions", _then(output_file._permissions, "SIGTERM"))
    arguments = given(command, net) if command != "peaks" else []
    done = run(command, *arguments, "-o", tmp_path / f"out{SUFFIX.get(command, '.txt')}")
    monkeypatch.undo()
    assert (done.code, done.stderr.splitlines()[-1]) == (143, "pyprof: ended by SIGTERM")
    assert [path.name for path in tmp_path.iterdir()] == ["net.sqlite"]


def _postponed(steps: list[str], *sent: str, fails: bool = False) -> None:
    with signals.postponed():
        for name in sent:
            send(name)
            steps.append(name)
        if fails:
            raise ValueError


@pytest.mark.parametrize("fails", [False, True])
def test_clean_up_finishes_before_the_signal_takes_effect(fails: bool) -> None:  # noqa: FBT001
    steps: list[str] = []
    with signals.ending(), pytest.raises(signals.Ended) as ended:
        _postponed(steps, "SIGHUP", "SIGTERM", fails=fails)
    assert (steps, ended.value.code) == (["SIGHUP", "SIGTERM"], CODES["SIGHUP"])


def test_a_second_ctrl_c_ends_at_once() -> None:
    """In a process of its own: Ctrl-C would end the tests, too."""
    child = os.fork()
    if not child:
        signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's job may ignore it
        steps: list[str] = []
        try:
            _postponed(steps, "SIGINT", "SIGINT")
        except KeyboardInterrupt:
            os._exit(0 if steps == ["SIGINT"] else 1)
        os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_ignored_signals_stay_ignored() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with signals.ending(), signals.postponed():
            send("SIGHUP")
            assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


def test_a_forked_process_ends_as_before() -> None:
    """Its parent may rely on it."""
    with signals.ending():
        child = os.fork()
        if not child:
            send()
            os._exit(0)
    assert os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGTERM


@pytest.mark.parametrize("module", ["pyprof", "pyprof.prof"])
def test_ctrl_c_while_loading_is_silent(module: str, tmp_path: Path) -> None:
    """A stand-in for click sends the signal."""
    (tmp_path / "click.py").write_text("import os; os.kill(os.getpid(), 2)")
    done = subprocess.run(
        [sys.executable, "-m", module, "--version"], capture_output=True, check=False,
        env={**environment(), "PYTHONPATH": f"{tmp_path}:{environment()['PYTHONPATH']}"},
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (-signal.SIGINT, b"")
