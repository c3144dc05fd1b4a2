"""The release: the wheel holds what the package needs at run time, and nothing else."""

import email
import os
import re
import runpy
import subprocess
import sys
import tarfile
import zipfile
from email.message import Message
from pathlib import Path

import pytest

from pyprof import __main__ as program
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
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)],
        cwd=TOP, check=True, capture_output=True, env={**os.environ, "PROJECT_URL": ""},
    )  # fmt: skip
    (path,) = folder.glob("*.whl")
    assert path.name.startswith("torch_pyprof-")
    return zipfile.ZipFile(path)


def test_the_wheel_holds_the_package_and_its_data(wheel: zipfile.ZipFile) -> None:
    assert {"pyprof/py.typed", "pyprof/readers/cupti_calls.txt"} <= DATA
    names = {name for name in wheel.namelist() if ".dist-info/" not in name}
    pages = {name for name in names if "/share/man/man1/" in name}
    assert names - pages == SOURCES | DATA
    commands = ["pyprof", *(f"pyprof-{name}" for name in program.names())]
    assert sorted(Path(name).name for name in pages) == sorted(f"{name}.1" for name in commands)


@pytest.mark.slow
def test_the_wheel_has_its_command_and_licence(wheel: zipfile.ZipFile) -> None:
    about = {name.partition(".dist-info/")[2]: name for name in wheel.namelist()}
    entry_points = wheel.read(about["entry_points.txt"]).decode()
    assert "pyprof = pyprof.program:main" in entry_points
    assert wheel.read(about["licenses/LICENSE"]) == (TOP / "LICENSE").read_bytes()


def test_the_metadata_is_complete(wheel: zipfile.ZipFile) -> None:
    about = _metadata(wheel)
    for field in ("Summary", "Keywords", "Classifier", "License-Expression", "Requires-Python"):
        assert about[field]
    required = {re.split("[>;]", text)[0] for text in about.get_all("Requires-Dist", [])
                if "extra ==" not in text}  # fmt: skip
    assert "jinja2" in required  # which a page needs
    assert about["Description-Content-Type"] == "text/markdown"
    text = str(about.get_payload())
    assert "Which line of my model is slow" in text
    assert re.findall(r"\]\((?!https?:)[^)]*\)", text) == []


def test_links_of_the_description_lead_to_the_source() -> None:
    described = runpy.run_path(str(TOP / "hatch_build.py"))["described"]
    text = "[a](docs/a.md#x), [b](https://b), [c](#c), `x[0](1)`"
    assert described("[a](docs/a.md)", "https://h/p") == "[a](https://h/p/blob/main/docs/a.md)"
    assert described("![a](b.png)", "https://h/p") == "![a](https://h/p/raw/main/b.png)"
    assert described("![a](b.png)", "") == "a"
    assert described("[`a`](#b)", "https://h/p") == "[`a`](https://h/p/blob/main/README.md#b)"
    assert described(text, "") == "a, [b](https://b), c, `x[0](1)`"


def test_links_of_a_project_lead_to_files_of_it() -> None:
    links = runpy.run_path(str(TOP / "hatch_build.py"))["project_urls"]("https://h/p")
    assert {"Homepage", "Documentation", "Source", "Changelog", "Issues"} == set(links)
    for link in links.values():
        in_repository = link.removeprefix("https://h/p").removeprefix("/blob/main/")
        assert in_repository in ("", "/issues") or (TOP / in_repository).is_file()


@pytest.mark.long
def test_a_release_names_its_home(tmp_path: Path) -> None:
    home = "https://example.com/us/pyprof"
    _, path = _rebuilt(tmp_path, home=f"{home}/")
    with zipfile.ZipFile(path) as released:
        about = _metadata(released)
    links = dict(text.split(", ") for text in about.get_all("Project-URL", []))
    assert links["Source"] == home
    assert links["Changelog"] == f"{home}/blob/main/CHANGELOG.md"
    assert f"]({home}/blob/main/docs/" in str(about.get_payload())


def test_a_build_of_a_clone_names_no_home(wheel: zipfile.ZipFile) -> None:
    """Its users would be sent to another project."""
    assert "Project-URL" not in _metadata(wheel)


def _rebuilt(folder: Path, home: str = "") -> tuple[Path, Path]:
    """Build an sdist of this tree, and a wheel from that alone."""
    build = [sys.executable, "-m", "hatchling", "build", "-d", str(folder / "dist"), "-t"]
    released, elsewhere = ({**os.environ, "PROJECT_URL": url} for url in (home, ""))
    subprocess.run([*build, "sdist"], cwd=TOP, check=True, capture_output=True, env=released)
    (sdist,) = (folder / "dist").glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        archive.extractall(folder, filter="data")
    (tree,) = folder.glob("torch_pyprof-*")
    subprocess.run([*build, "wheel"], cwd=tree, check=True, capture_output=True, env=elsewhere)
    (wheel,) = (folder / "dist").glob("*.whl")
    return sdist, wheel


def _metadata(wheel: zipfile.ZipFile) -> Message:
    (name,) = (name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
    return email.message_from_bytes(wheel.read(name))


@pytest.mark.long
def test_the_sdist_makes_the_same_wheel(wheel: zipfile.ZipFile, tmp_path: Path) -> None:
    check = pytest.importorskip("twine.commands.check")
    sdist, again = _rebuilt(tmp_path)
    with zipfile.ZipFile(again) as other:
        assert {i.filename: i.CRC for i in other.infolist()} == {
            i.filename: i.CRC for i in wheel.infolist()
        }
    assert not check.check([str(sdist), str(again)], strict=True)


@pytest.mark.slow
def test_the_wheel_runs_by_itself(wheel: zipfile.ZipFile, tmp_path: Path) -> None:
    wheel.extractall(tmp_path / "site")  # noqa: S202 - ours
    code = "import pyprof, sys; from pyprof.__main__ import main; print(pyprof.__file__); main()"
    done = subprocess.run(
        [sys.executable, "-c", code, "prof", "--help"],
        cwd=tmp_path, env={"PYTHONPATH": str(tmp_path / "site")},
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    place, usage = done.stdout.splitlines()[:2]
    assert Path(place).is_relative_to(tmp_path)
    assert usage.startswith("Usage: ")
