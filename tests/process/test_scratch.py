"""Temporary directories."""

import tempfile
from pathlib import Path

import pytest

from pyprof.errors import PyprofError
from pyprof.process import scratch


def test_a_directory_is_gone_afterwards() -> None:
    with scratch.directory() as folder:
        (folder / "file").touch()
    assert not folder.exists()


def test_a_read_only_folder_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "absent"))
    with pytest.raises(PyprofError, match="set TMPDIR to a writable folder"), scratch.directory():
        pass
