"""Environment variables that torch reads once, set without leaving them to the script."""

from __future__ import annotations

import os
import warnings
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager

_QUIET_KINETO = {"KINETO_LOG_LEVEL": "6"}
"""Silences Kineto's messages on stderr; read by the first profiler."""
_COMPILED_KERNELS = {"TORCHINDUCTOR_CPP_ENABLE_KERNEL_PROFILE": "1"}
"""Makes torch.compile's CPU kernels appear as ops; read when Inductor is imported."""


def quiet_kineto() -> AbstractContextManager[None]:
    """Keep Kineto silent and the environment unchanged while a profiler is prepared.

    Some versions of torch import Inductor then, which sets a variable and warning filters.
    """
    return _set_variables(_QUIET_KINETO)


def show_compiled_kernels() -> None:
    """Make torch.compile's CPU kernels appear in profiles from now on."""
    with _set_variables(_COMPILED_KERNELS):
        if hasattr(torch, "_inductor"):  # which loads it, as torch's own profiler does
            import_module("torch._inductor.config")
            return
    os.environ.update({**_COMPILED_KERNELS, **os.environ})  # torch 2.0 reads it later


@contextmanager
def _set_variables(variables: dict[str, str]) -> Iterator[None]:
    """Set variables that the user has not set; then remove all new ones, and restore filters."""
    before = dict(os.environ)
    os.environ.update({**variables, **before})
    try:
        with warnings.catch_warnings():
            yield
    finally:
        for name in os.environ.keys() - before.keys():
            del os.environ[name]
