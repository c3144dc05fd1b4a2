"""The names of NVIDIA's PyProf and of apex still work."""

import pyprof
from tests.instrument.conftest import Recorder


def test_the_old_spelling_works(recorder: Recorder) -> None:
    pyprof.nvtx.init(enable_function_stack=True)
    assert pyprof.enabled()
    assert recorder.depth == 0
