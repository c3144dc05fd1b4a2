"""Temporary files: those of a killed process are removed, all others stay."""

import os
import signal
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path

import pytest

from pyprof.process import atomic_files, output_file

_MAKE = """
import os, signal, sys
from pathlib import Path
from pyprof.process import atomic_files
handle, name = atomic_files.create_temp(Path(sys.argv[1]))
os.write(handle, b"half")
with atomic_files.temp_directory(Path(sys.argv[1])):
    os.kill(os.getpid(), signal.SIGKILL)
"""
_OLD = 1_000_000_000
"""A time long ago, in s since 1970."""


def _written(path: Path) -> None:
    with output_file.open_output(str(path)) as file:
        file.write(b"whole")


def _aged(folder: Path) -> list[Path]:
    """Make every file old; return them."""
    files = sorted(folder.iterdir())
    for file in files:
        os.utime(file, (_OLD, _OLD))
    return files


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="Windows has no SIGKILL")
def test_leftovers_of_a_killed_process_are_removed(tmp_path: Path) -> None:
    for name in ("net.csv", "other.csv"):
        done = subprocess.run([sys.executable, "-c", _MAKE, tmp_path / name], check=False)
        assert done.returncode == -signal.SIGKILL
    left = _aged(tmp_path)
    assert len(left) == 4
    _written(tmp_path / "net.csv")
    others = [path for path in left if "other" in path.name]
    assert sorted(tmp_path.iterdir()) == sorted([*others, tmp_path / "net.csv"])


def test_temporary_files_of_a_running_process_stay(tmp_path: Path) -> None:
    """Two processes may write one output, the later one wins. However long it takes."""
    target = tmp_path / "net.csv"
    with (
        atomic_files.temp_directory(target) as folder,
        output_file.open_output(str(target)) as file,
    ):
        file.write(b"first")
        file.flush()
        _aged(tmp_path)
        _written(target)
        assert os.listdir(folder) == []  # noqa: PTH208 - a name
    assert target.read_bytes() == b"first"
    assert [*tmp_path.iterdir()] == [target]


@pytest.mark.parametrize(
    "name", [".net.csv.original", ".net.csv.swp", "net.csv.pyprof-abcdefgh", ".net.pyprof-abcdefgh"]
)
def test_files_of_others_stay(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text("mine")
    _aged(tmp_path)
    _written(tmp_path / "net.csv")
    assert (tmp_path / name).read_text() == "mine"


def test_a_temporary_file_just_made_stays(tmp_path: Path) -> None:
    """It may not be locked yet."""
    handle, name = atomic_files.create_temp(tmp_path / "net.csv")
    os.close(handle)
    atomic_files.remove_stale(tmp_path / "net.csv")
    assert os.path.exists(name)  # noqa: PTH110 - a name


@pytest.mark.parametrize("age_s", [3600, 48 * 3600])
def test_without_locks_age_decides(
    age_s: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file in use is written to at least once a day."""
    handle, name = atomic_files.create_temp(tmp_path / "net.csv")
    os.close(handle)
    made = os.stat(name).st_mtime  # noqa: PTH116 - a name
    monkeypatch.setattr(atomic_files, "fcntl", None)
    monkeypatch.setattr("time.time", lambda: made + age_s)
    atomic_files.remove_stale(tmp_path / "net.csv")
    assert [*tmp_path.iterdir()] == ([] if age_s > 24 * 3600 else [tmp_path / name])


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    target = tmp_path / "mine"
    target.write_text("mine")
    link = tmp_path / ".net.csv.pyprof-abcdefgh"
    link.symlink_to(target)
    os.utime(link, (_OLD, _OLD), follow_symlinks=False)
    _written(tmp_path / "net.csv")
    assert target.read_text() == "mine"


def test_folders_that_cannot_be_opened_are_removed_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As those of Windows."""
    monkeypatch.setattr(atomic_files, "_locked", lambda _: nullcontext())
    target = tmp_path / "net.csv"
    (tmp_path / f"{atomic_files.prefix(target)}left").mkdir()
    _aged(tmp_path)
    with atomic_files.temp_directory(target) as folder:
        assert [*tmp_path.iterdir()] == [Path(folder)]
    assert not [*tmp_path.iterdir()]


def test_names_stay_short(tmp_path: Path) -> None:
    """Some systems allow 143 bytes only."""
    handle, name = atomic_files.create_temp(tmp_path / ("ü" * 100))
    os.close(handle)
    assert len(os.path.basename(name)) <= 50  # noqa: PTH119 - a name


def test_names_can_be_encoded_in_an_ascii_locale(monkeypatch: pytest.MonkeyPatch) -> None:
    """As with LC_ALL=C, without Python's UTF-8 mode."""
    monkeypatch.setattr(sys, "getfilesystemencoding", lambda: "ascii")
    assert atomic_files.prefix(Path("net-ü")) == ".net-.pyprof-"
