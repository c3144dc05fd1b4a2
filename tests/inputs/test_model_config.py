"""A model's config.json is valid, or the error is one line."""

import json
import os
import sys
from pathlib import Path

import pytest

from pyprof.errors import PyprofError
from pyprof.inputs import model_config


def test_a_file_or_the_folder_that_holds_it(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps({"hidden_size": 64}))
    assert model_config.read(str(path)) == model_config.read(str(tmp_path))
    assert model_config.read(str(path)).hidden == 64


@pytest.mark.parametrize(
    ("written", "why"),
    [
        *((text, "") for text in (b"", b"{", b"[]", b"{}", b"\xff\xfe\x00", b"[" * 200_000)),
        (b'{"hidden_size": 1e9}', ""),
        (b'{"hidden_size": %s}' % (b"1" * 5000), "it is not JSON"),
        (b'{"hidden_size": 4, "a": %s}' % (b" " * (4 << 20)), "it has more than 4 MiB"),
        (b'{"hidden_size": "%s"}' % (b"A" * 100_000), "hidden_size is not a size: 'AAA"),
    ],
    ids=lambda value: repr(value)[:30],
)
def test_an_error_names_the_file_and_is_short(written: bytes, why: str, tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_bytes(written)
    with pytest.raises(PyprofError, match="is not a model configuration: ") as raised:
        model_config.read(str(path))
    assert str(raised.value).startswith(str(path))
    assert why in str(raised.value)
    assert len(str(raised.value)) < len(str(path)) + 200


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no named pipes in folders")
def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    """Nobody may ever write to it."""
    os.mkfifo(tmp_path / "config.json")
    with pytest.raises(PyprofError, match="it is not a regular file"):
        model_config.read(str(tmp_path))


def test_more_heads_than_the_width_have_no_size(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text('{"hidden_size": 4, "num_attention_heads": 64}')
    assert model_config.read(str(path)).head_size is None


def test_a_missing_file_says_what_to_give(tmp_path: Path) -> None:
    with pytest.raises(PyprofError, match="give a model's config"):
        model_config.read(str(tmp_path))
