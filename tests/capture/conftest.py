"""Fixtures of all tests of captures."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from pyprof.capture.request import Outcome, Request
from pyprof.capture.script import Target

Capture: TypeAlias = Callable[..., Outcome]


@pytest.fixture
def capture(tmp_path: Path) -> Capture:
    """Return what captures a script's text by torch.profiler, as train.py, into `net`."""
    pytest.importorskip("torch")
    from pyprof.capture.kineto import torch_profiler  # noqa: PLC0415 - needs torch

    def capture_it(text: str, **options: Any) -> Outcome:  # noqa: ANN401 - those of Request
        script = tmp_path / "train.py"
        script.write_text(text)
        return torch_profiler.run(Request(Target(str(script)), str(tmp_path / "net"), **options))

    return capture_it


@pytest.fixture(autouse=True)
def main_is_put_back() -> Iterator[None]:
    """A script that was run stays __main__, as in Python; here the tests' own comes back."""
    main = sys.modules["__main__"]
    yield
    sys.modules["__main__"] = main
