"""Tests of the benchmarks' inputs, and their modules."""

import importlib
from typing import Any

import pytest

from tests.programs import TOP


def benchmark(name: str) -> Any:  # noqa: ANN401 - a module
    """Import a module of benchmarks/, which finds those beside it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(TOP / "benchmarks"))
        return importlib.import_module(name)
