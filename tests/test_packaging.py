"""The wheel holds what the package needs at run time, and nothing else."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.programs import TOP

pytest.importorskip("hatchling")

SOURCES = {path.relative_to(TOP).as_posix() for path in (TOP / "pyprof").rglob("*.py")}
DATA = {
    path.relative_to(TOP).as_posix()
    for path in (TOP / "pyprof").rglob("*")
    if path.is_file() and path.suffix not in (".py", ".pyc")
}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    """Give the wheel of this tree."""
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)],
        cwd=TOP, check=True, capture_output=True,
    )  # fmt: skip
    (path,) = folder.glob("*.whl")
    assert path.name.startswith("torch_pyprof-")
    return zipfile.ZipFile(path)


def test_the_wheel_holds_the_package_and_its_data(wheel: zipfile.ZipFile) -> None:
    """Every module, the table of CUPTI calls and the mark of a typed package; no tests."""
    assert {"pyprof/py.typed", "pyprof/readers/cupti_calls.txt"} <= DATA
    names = {name for name in wheel.namelist() if ".dist-info/" not in name}
    assert names == SOURCES | DATA


def test_the_wheel_has_its_command_and_licence(wheel: zipfile.ZipFile) -> None:
    """`pyprof` is installed as a command; the licence text comes along."""
    about = {name.partition(".dist-info/")[2]: name for name in wheel.namelist()}
    entry_points = wheel.read(about["entry_points.txt"]).decode()
    assert "pyprof = pyprof.program:main" in entry_points
    assert wheel.read(about["licenses/LICENSE"]) == (TOP / "LICENSE").read_bytes()


def test_the_wheel_runs_by_itself(wheel: zipfile.ZipFile, tmp_path: Path) -> None:
    """Unpacked anywhere, without this tree, it parses and reports."""
    wheel.extractall(tmp_path / "site")
    code = "import pyprof, sys; from pyprof.__main__ import main; print(pyprof.__file__); main()"
    done = subprocess.run(
        [sys.executable, "-c", code, "prof", "--help"],
        cwd=tmp_path, env={"PYTHONPATH": str(tmp_path / "site")},
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    place, usage = done.stdout.splitlines()[:2]
    assert Path(place).is_relative_to(tmp_path)
    assert usage.startswith("Usage: ")
