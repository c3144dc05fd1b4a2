"""Commands end with Python's own clean-up, without waiting for that of C libraries."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import pyprof
from tests.builders import Work, nsys_db

_ABORTS = """
import ctypes
libc = ctypes.CDLL(None)
libc.__cxa_atexit(libc.abort, None, None)
"""
"""Loaded as Python starts: a library whose clean-up ends the process, as at a lingering thread."""
_LINGERS = """
#include <thread>
#include <unistd.h>
static std::thread lingering([] { for (;;) pause(); });
"""
SCRIPT = Path(sys.executable).with_name("pyprof")
STARTS = [
    [sys.executable, "-m", "pyprof", "summary"],
    [sys.executable, "-m", "pyprof.summary"],
    [sys.executable, "-m", "pyprof.prof", "--summary", "nvprof"],
    [str(SCRIPT), "summary"],
]
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs glibc")


def _run(customize: str, folder: Path, command: list[str]) -> subprocess.CompletedProcess[str]:
    (folder / "sitecustomize.py").write_text(customize)
    paths = [str(folder), str(Path(pyprof.__file__).parents[1])]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths)}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.long
@pytest.mark.parametrize(
    "start", STARTS, ids=["-m pyprof", "-m pyprof.summary", "-m pyprof.prof", "pyprof"]
)
def test_the_clean_up_of_c_libraries_is_not_waited_for(start: list[str], tmp_path: Path) -> None:
    if not Path(start[0]).exists():
        pytest.skip("not installed")
    path = nsys_db(tmp_path / "net.sqlite", [Work(call=(100, 200), at=(300, 400))], [])
    done = _run(_ABORTS, tmp_path, [*start, str(path)])
    assert done.returncode == 0, done.stderr
    assert "GPU" in done.stdout
    assert _run(_ABORTS, tmp_path, [*start, str(tmp_path / "none")]).returncode == 1
    assert _run(_ABORTS, tmp_path, [sys.executable, "-c", ""]).returncode < 0


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("g++") is None, reason="needs a compiler")
def test_a_lingering_thread_of_a_library_does_not_abort(tmp_path: Path) -> None:
    """C++ aborts if a thread was not joined: "without an active exception"."""
    (tmp_path / "lingers.cpp").write_text(_LINGERS)
    library = tmp_path / "lingers.so"
    compiler = ["g++", "-shared", "-fPIC", "-pthread", "-o", str(library)]
    subprocess.run([*compiler, str(tmp_path / "lingers.cpp")], check=True)
    load = f"import ctypes\nctypes.CDLL({str(library)!r})\n"
    assert "without an active exception" in _run(load, tmp_path, [sys.executable, "-c", ""]).stderr
    path = nsys_db(tmp_path / "net.sqlite", [Work(call=(100, 200), at=(300, 400))], [])
    done = _run(load, tmp_path, [sys.executable, "-m", "pyprof", "summary", str(path)])
    assert done.returncode == 0, done.stderr


def test_a_profiler_around_a_command_writes_its_result(tmp_path: Path) -> None:
    done = _run("", tmp_path, [sys.executable, "-m", "cProfile", "-m", "pyprof", "--version"])
    assert "function calls" in done.stdout


def test_functions_of_atexit_are_called(tmp_path: Path) -> None:
    """Such as coverage's, registered by a start-up file."""
    registers = "import atexit\natexit.register(print, 'registered')\n"
    done = _run(registers, tmp_path, [sys.executable, "-m", "pyprof", "--version"])
    assert done.stdout.splitlines()[-1] == "registered"
