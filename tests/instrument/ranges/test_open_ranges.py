"""Open ranges are closed with the one around them."""

import pytest

import pyprof
from tests.instrument.conftest import Recorder


def test_an_exception_passes_and_closes_its_range(listening: Recorder) -> None:
    with pytest.raises(KeyError), pyprof.annotate("fails"):
        raise KeyError
    assert listening.depth == 0


@pytest.mark.slow
def test_init_and_stop_inside_a_block(recorder: Recorder) -> None:
    with pyprof.annotate("before"):
        pyprof.init(force=True)
        with pyprof.annotate("inside"):
            pyprof.stop()
    assert recorder.depth == 0
    assert recorder.layers == ["inside"]
