"""The README is true: every command in it runs, its tables and samples are the code's."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests import commands, forks, programs
from tests.programs import TOP


def _console(page: str) -> list[str]:
    text = (TOP / page).read_text(encoding="utf-8")
    blocks = re.findall(r"^```console\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    return [line for block in blocks for line in block.splitlines()]


UNIX = [line.removeprefix("$ ") for line in _console("README.md") if line.startswith("$ ")]
WINDOWS = [line.removeprefix("> ") for line in _console("CONTRIBUTING.md") if line.startswith("> ")]

has_torch = find_spec("torch") is not None
needs_make = pytest.mark.skipif(not shutil.which("make"), reason="no make here")


def _dry_run(target: str, folder: Path) -> list[str]:
    outer = ("MAKEFLAGS", "MAKELEVEL", "MFLAGS", "MAKEOVERRIDES", "ARGS")
    done = subprocess.run(
        ["make", "--dry-run", target, f"VENV={folder}", f"PYTHON={sys.executable}"],
        cwd=TOP,
        env={name: value for name, value in os.environ.items() if name not in outer},
        capture_output=True,
        text=True,
        check=True,
    )
    return [line.strip() for line in done.stdout.splitlines()]


def _planned(target: str, folder: Path) -> list[str]:
    (folder / "bin").mkdir(parents=True)
    for stamp in ("package", "torch", "test-tools", "test", "trainers", "docs"):
        (folder / f"{stamp}.done").touch()
    return [line.replace(f"{folder}/bin/", "") for line in _dry_run(target, folder)]


def _run(line: str, cwd: Path) -> None:
    """Run one line as a shell of a machine where the project is installed would."""
    program, *arguments = shlex.split(line)
    arguments = [str(TOP / word) if word.startswith("examples/") else word for word in arguments]
    if program == "pyprof" and arguments[0] != "run":
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(cwd)
            done = commands.run(*arguments)
    else:
        python = forks.python if program == "pyprof" else programs.python
        first = ("-m", program) if program == "pyprof" else (str(TOP / arguments.pop(0)),)
        ended = python(*first, *arguments, cwd=cwd)
        done = commands.Done(ended.returncode, ended.stdout, ended.stderr)
    assert done.code == 0, f"{line}\n{done.stderr}"
    wrote = "-o" in arguments
    assert wrote or done.stdout.strip(), f"{line} printed nothing"


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if not shutil.which("make"):
        pytest.skip("no make here")
    folder = tmp_path_factory.mktemp("readme")
    planned = _planned("demo", tmp_path_factory.mktemp("venv"))
    assert [command.split()[0] for command in planned] == ["python", *["pyprof"] * 3]
    for command in planned if has_torch else planned[:-1]:
        _run(command, folder)
    return folder


def test_the_readme_has_its_two_commands() -> None:
    assert [line for line in UNIX if line.startswith("make ")] == ["make demo", "make test"]


@needs_make
def test_make_test_runs_pytest(tmp_path: Path) -> None:
    command = "python -m pytest -n auto --maxprocesses 8 --dist worksteal"
    assert _planned("test", tmp_path / "a") == [command]
    assert _planned("test-all", tmp_path / "b") == [f'{command} -m ""']


@needs_make
def test_a_fresh_machine_is_set_up_first(tmp_path: Path) -> None:
    for target in ("demo", "test"):
        plan = _dry_run(target, tmp_path / "none")
        assert "-m venv" in plan[0]
        assert any("--editable ." in line for line in plan)


@pytest.mark.slow
@pytest.mark.parametrize("line", [line for line in UNIX if not line.startswith("make ")])
def test_every_command_runs(line: str, demo: Path) -> None:
    if line.startswith("pyprof run") and not has_torch:
        pytest.skip("no torch here")
    for earlier in UNIX[: UNIX.index(line)]:
        _, _, made = earlier.partition(" -o ")
        if made and made.split()[0] in line.split() and not (demo / made.split()[0]).exists():
            _run(earlier, demo)
    _run(line, demo)


def test_the_commands_for_windows_are_those_of_make(tmp_path: Path) -> None:
    shown = [line.replace(".venv\\Scripts\\", "").replace("\\", "/") for line in WINDOWS]
    if shutil.which("make"):
        (tmp_path / "a").mkdir()
        (tmp_path / "b").mkdir()
        planned = _planned("demo", tmp_path / "a") + _planned("test", tmp_path / "b")
        assert set(shown[-5:]) <= set(planned)
    assert shown[:2] == ["py -m venv .venv", 'python -m pip install --upgrade "pip>=25.1"']
    assert shown[2] == "python -m pip install --editable . --group torch --group test"


@pytest.mark.slow
def test_the_documents_are_up_to_date(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def sample(line: str, folder: Path) -> str:
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(folder)
            done = commands.run(*shlex.split(line)[2:])
        assert done.code == 0, done.stderr
        return "".join(f"{text.rstrip()}\n" for text in done.stdout.splitlines())

    monkeypatch.syspath_prepend(TOP / "docs")
    readme = import_module("readme")
    monkeypatch.setattr(readme, "sample", sample)
    monkeypatch.setattr(sys, "argv", ["readme.py", "--check"])
    assert (readme.main(), capsys.readouterr().err) == (0, "")
