"""Rates of ops, on the page."""

import pytest

from tests.render.page.parts.conftest import Made


@pytest.mark.slow
def test_each_op_with_a_cost_is_a_point(made: Made) -> None:
    """20 FLOPs of exp an element on 128 of them in 300 ns; a copy has no point."""
    part = made["roofline"]
    figure = part["roofline"]
    assert figure["name"] == ["exp", "relu"]
    assert figure["y"][0] == pytest.approx(20 * 128 / 300 / 1000)  # TFLOP/s
    assert figure["x"] == [20 * 128 / (2 * 128 * 4), 128 / (2 * 128 * 4)]
    assert part["shown_percent"] == "66.7"
    assert part["roofs"]
