"""Every bound has a colour."""

from pyprof.gpu.roofline import LIMITS
from pyprof.render.roofline_legend import BOUNDS, UNKNOWN_BOUND


def test_each_bound_has_a_colour_of_its_own() -> None:
    assert set(BOUNDS) == {*LIMITS, UNKNOWN_BOUND}
    assert len(set(BOUNDS.values())) == len(BOUNDS)
