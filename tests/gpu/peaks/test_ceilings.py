"""Tests of the user's file of measured ceilings."""

from pathlib import Path

import pytest

from pyprof.errors import PyprofError
from pyprof.gpu.peaks.ceilings import Ceilings, default_path, load, save

CPU = Ceilings("cpu", {"float32": 1e11}, 1e10)
GPU = Ceilings("NVIDIA H200", {"bfloat16 tensor": 7e14}, 4e12)


def test_nothing_measured(tmp_path: Path) -> None:
    """Without a file there are no ceilings, and that is no error."""
    assert load(tmp_path / "none.json") == {}


def test_round_trip(tmp_path: Path) -> None:
    """Devices are kept beside each other, and measuring again replaces."""
    path = tmp_path / "new" / "ceilings.json"
    save(CPU, path)
    save(GPU, path)
    better = Ceilings("cpu", {"float32": 2e11}, 1e10)
    assert save(better, path) == path
    assert load(path) == {"cpu": better, "NVIDIA H200": GPU}
    assert [child.name for child in path.parent.iterdir()] == ["ceilings.json"]


@pytest.mark.parametrize(
    "text", ["", "[]", "{", '{"cpu": 3}', '{"cpu": {"device": "cpu", "flops": {}}}', "\x00"]
)
def test_foreign_file(tmp_path: Path, text: str) -> None:
    """A file that is something else is named in the error, and is not overwritten."""
    path = tmp_path / "ceilings.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(PyprofError, match=r"ceilings\.json: not a file of pyprof peaks"):
        load(path)
    with pytest.raises(PyprofError):
        save(CPU, path)
    assert path.read_text(encoding="utf-8") == text


def test_place_of_the_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The user's configuration folder is honoured."""
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert default_path() == tmp_path / "pyprof" / "ceilings.json"
    monkeypatch.setattr("sys.platform", "win32")
    monkeypatch.setenv("APPDATA", str(tmp_path / "roaming"))
    assert default_path() == tmp_path / "roaming" / "pyprof" / "ceilings.json"


def test_a_place_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    """A home that is read-only, or full; nothing is left there."""
    (tmp_path / "home").touch()
    with pytest.raises(PyprofError, match="home"):
        save(CPU, tmp_path / "home" / "pyprof" / "ceilings.json")
    save(CPU, tmp_path / "pyprof" / "ceilings.json")
    assert [path.name for path in (tmp_path / "pyprof").iterdir()] == ["ceilings.json"]
