import sys
from pathlib import Path

import pytest

from pyprof.process.extras import install_command


@pytest.mark.parametrize(
    ("mark", "command"),
    [
        ("", 'pip install matplotlib "dask[distributed]"'),
        ("pipx_metadata.json", 'pipx inject torch-pyprof matplotlib "dask[distributed]"'),
        (
            "uv-receipt.toml",
            'uv tool install torch-pyprof --with matplotlib --with "dask[distributed]"',
        ),
    ],
)
def test_the_command_is_for_this_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mark: str, command: str
) -> None:
    if mark:
        (tmp_path / mark).touch()
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    assert install_command("matplotlib", "dask[distributed]") == command
