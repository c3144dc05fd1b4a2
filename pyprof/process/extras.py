"""Packages that are not always there: whether they are, and how to add one to where pyprof is."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

from pyprof.errors import PyprofError

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


def require(what: str, *packages: str) -> None:
    """Raise PyprofError where packages are not installed that `what` (`pages`) needs.

    They are named themselves: that installs them for a clone as for a wheel.
    """
    if not all(map(_installed, packages)):
        raise PyprofError(
            f"{what} {'need' if what.endswith('s') else 'needs'} {' and '.join(packages)}: "
            f"{install_command(*(package.lower() for package in packages))}"
        )


def _installed(package: str) -> bool:
    from importlib.util import find_spec  # noqa: PLC0415 - only optional packages need it

    try:
        return find_spec(package.lower()) is not None
    except ValueError:  # imports of it are switched off
        return False
