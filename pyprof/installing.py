"""How to add a package to where pyprof is installed."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

_DISTRIBUTION = "torch-pyprof"


def install_command(*packages: str) -> str:
    """Give the command that adds packages to the environment of this process.

    pipx and `uv tool` keep pyprof in an environment of its own, which `pip install` does not reach.
    """
    words = [f'"{package}"' if shlex.quote(package) != package else package for package in packages]
    if Path(sys.prefix, "pipx_metadata.json").is_file():
        return f"pipx inject {_DISTRIBUTION} {' '.join(words)}"
    if Path(sys.prefix, "uv-receipt.toml").is_file():
        return f"uv tool install {_DISTRIBUTION} --with {' --with '.join(words)}"
    return f"pip install {' '.join(words)}"
