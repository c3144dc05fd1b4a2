"""Hooks before a process ends without unwinding."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pyprof.capture.exit_hooks import on_exit


class _End(BaseException):
    pass


@pytest.fixture
def ends(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Write down how the process would end, and go on."""
    found: list[object] = []

    def end(*how: object) -> None:
        found.append(how)
        raise _End

    for name in ("_exit", "execv", "execve"):
        monkeypatch.setattr(os, name, end)
    return found


def test_the_exit_code_is_what_the_hook_returns(ends: list[object]) -> None:
    before = os._exit
    asked: list[int] = []

    def left(code: int) -> int:
        asked.append(code)
        return 7

    with on_exit(left):
        for _ in range(2):
            with pytest.raises(_End):
                os._exit(3)
    assert (asked, ends) == ([3], [(7,), (3,)])
    assert os._exit is before


def test_hooks_run_before_exec(ends: list[object], tmp_path: Path) -> None:
    told: list[object] = []
    with on_exit(lambda code: code, lambda: told.append(len(ends))):
        with pytest.raises(_End):
            os.execv(tmp_path / "none", ["none"])  # noqa: S606 - it ends in `ends`
        assert told == []
        with pytest.raises(_End):
            os.execvpe(sys.executable, ["python"], {"PATH": ""})  # noqa: S606 - as above
    assert told == [1]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_child_runs_no_hook() -> None:
    def left(_: int) -> int:
        return 9

    with on_exit(left):
        child = os.fork()
        if not child:
            os._exit(4)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 4


SCRIPT = """
import os, threading, torch
torch.ones(30, 30) @ torch.ones(30, 30)
print("said")
def leave():
    os._exit(5)
threading.Thread(target=leave).start()
threading.Event().wait()
"""


@pytest.mark.long
def test_a_capture_is_kept(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    (tmp_path / "train.py").write_text(SCRIPT)
    line = [sys.executable, "-m", "pyprof.capture", "--tool", "torch", "train.py"]
    environment = {**os.environ, "PYTHONPATH": os.getcwd()}  # noqa: PTH109 - where pyprof is
    done = subprocess.run(
        line, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False, timeout=99
    )
    assert (done.returncode, done.stdout) == (5, "said\n"), done.stderr
    assert (tmp_path / "train.pt.trace.json.gz").exists()
    assert "next: pyprof summary train.pt.trace.json.gz" in done.stderr
