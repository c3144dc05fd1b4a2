"""The names of NVIDIA's PyProf and of apex still work."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyprof

if TYPE_CHECKING:
    from tests.instrument.conftest import Recorder


def test_the_old_spelling_works(recorder: Recorder) -> None:
    """pyprof.nvtx.init() accepts what the original did, and ignores it."""
    pyprof.nvtx.init(enable_function_stack=True)
    assert pyprof.enabled()
    assert recorder.depth == 0
