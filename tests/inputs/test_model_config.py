"""A model's config.json is read whole, or ends in one line."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from pyprof.errors import PyprofError
from pyprof.inputs import model_config

if TYPE_CHECKING:
    from pathlib import Path


def test_a_file_or_the_folder_that_holds_it(tmp_path: Path) -> None:
    """A folder stands for its config.json, as models are stored."""
    path = tmp_path / "config.json"
    path.write_text(json.dumps({"hidden_size": 64}))
    assert model_config.read(str(path)) == model_config.read(str(tmp_path))
    assert model_config.read(str(path)).hidden == 64


@pytest.mark.parametrize(
    "written", [b"", b"{", b"[]", b"{}", b"\xff\xfe\x00", b"[" * 200_000, b'{"hidden_size": 1e9}']
)
def test_what_is_none_says_so(written: bytes, tmp_path: Path) -> None:
    """The error names the file."""
    path = tmp_path / "config.json"
    path.write_bytes(written)
    with pytest.raises(PyprofError, match="is not a model configuration: ") as raised:
        model_config.read(str(path))
    assert str(raised.value).startswith(str(path))


def test_a_missing_file_says_what_to_give(tmp_path: Path) -> None:
    """In a folder without one, too."""
    with pytest.raises(PyprofError, match="give a model's config"):
        model_config.read(str(tmp_path))
