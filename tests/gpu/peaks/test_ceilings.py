"""The user's file of measured ceilings."""

from pathlib import Path

import pytest

from pyprof.errors import PyprofError
from pyprof.gpu.peaks.ceilings import Ceilings, default_path, load, save

CPU = Ceilings("cpu", {"float32": 1e11}, 1e10)
GPU = Ceilings("NVIDIA H200", {"bfloat16 tensor": 7e14}, 4e12)


def test_without_a_file_there_are_no_ceilings(tmp_path: Path) -> None:
    assert load(tmp_path / "none.json") == {}


def test_saved_ceilings_are_read_back(tmp_path: Path) -> None:
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
def test_another_file_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "ceilings.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(PyprofError, match=r"ceilings\.json: not a file of pyprof peaks"):
        load(path)
    with pytest.raises(PyprofError):
        save(CPU, path)
    assert path.read_text(encoding="utf-8") == text


def test_the_file_is_in_the_users_configuration_folder(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert default_path() == tmp_path / "pyprof" / "ceilings.json"
    monkeypatch.setattr("sys.platform", "win32")
    monkeypatch.setenv("APPDATA", str(tmp_path / "roaming"))
    assert default_path() == tmp_path / "roaming" / "pyprof" / "ceilings.json"


def test_a_folder_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "home").touch()
    with pytest.raises(PyprofError, match="home"):
        save(CPU, tmp_path / "home" / "pyprof" / "ceilings.json")
    save(CPU, tmp_path / "pyprof" / "ceilings.json")
    assert [path.name for path in (tmp_path / "pyprof").iterdir()] == ["ceilings.json"]
