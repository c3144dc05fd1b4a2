"""What torch is told by variables that it reads once, without leaving them to the script."""

from __future__ import annotations

import os
import warnings
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from collections.abc import Iterator

_QUIET_KINETO = {"KINETO_LOG_LEVEL": "6"}
"""Keeps Kineto's own messages, `USDT:` too, from stderr; read by the first profiler."""
_COMPILED_KERNELS = {"TORCHINDUCTOR_CPP_ENABLE_KERNEL_PROFILE": "1"}
"""Has kernels that torch.compile makes for the CPU appear as ops; read as Inductor is loaded."""


@contextmanager
def quiet_kineto() -> Iterator[None]:
    """Prepare a profiler in here: Kineto stays silent, and the script's surroundings as they are.

    Some versions of torch load Inductor then, which sets a variable and filters of warnings.
    """
    with _variables_set(_QUIET_KINETO):
        yield


def show_compiled_kernels() -> None:
    """Have the kernels that torch.compile makes for the CPU from now on appear in profiles."""
    with _variables_set(_COMPILED_KERNELS):
        if hasattr(torch, "_inductor"):  # which loads it, as torch's own profiler does
            import_module("torch._inductor.config")
            return
    os.environ.update({**_COMPILED_KERNELS, **os.environ})  # torch 2.0 reads it later


@contextmanager
def _variables_set(variables: dict[str, str]) -> Iterator[None]:
    """Set variables that the user has not; undo all that happens to environment and filters."""
    before = dict(os.environ)
    os.environ.update({**variables, **before})
    try:
        with warnings.catch_warnings():
            yield
    finally:
        for name in os.environ.keys() - before.keys():
            del os.environ[name]
