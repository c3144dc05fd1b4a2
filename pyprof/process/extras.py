"""Optional packages: whether they are installed, and how to install them."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

from pyprof.errors import PyprofError

_DISTRIBUTION = "torch-pyprof"


def install_command(*packages: str) -> str:
    """Return the command that adds packages to the environment of this process.

    pipx and `uv tool` keep pyprof in an environment of its own, out of reach of `pip install`.
    """
    words = [f'"{package}"' if shlex.quote(package) != package else package for package in packages]
    if Path(sys.prefix, "pipx_metadata.json").is_file():
        return f"pipx inject {_DISTRIBUTION} {' '.join(words)}"
    if Path(sys.prefix, "uv-receipt.toml").is_file():
        return f"uv tool install {_DISTRIBUTION} --with {' --with '.join(words)}"
    return f"pip install {' '.join(words)}"


def require(what: str, *packages: str) -> None:
    """Raise PyprofError if packages are missing that `what` (`pages`) needs.

    The message names the packages, not an extra: that works for a clone as well as for a wheel.
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
    except ValueError:  # its import is disabled
        return False
