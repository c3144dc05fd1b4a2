"""The names that the original and apex use: `pyprof.nvtx.init()`, `pyprof.nvtx.wrap()`."""

from __future__ import annotations

import sys

from pyprof.instrument import init as _init
from pyprof.instrument import wrap

__all__ = ["init", "nvtx", "wrap"]

nvtx = sys.modules[__name__]
"""This module itself, so that `pyprof.nvtx` is found like the other public names."""


def init(*_args: object, **_kwargs: object) -> None:
    """As `pyprof.init()`; flags of the original are accepted and ignored."""
    _init()
