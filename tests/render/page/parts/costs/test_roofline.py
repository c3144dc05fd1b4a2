"""Rates of ops: on the page, and on a page of their own in a browser."""

from pathlib import Path

import pytest

from tests.analysis.browser import browser, drawn, errors, requests
from tests.analysis.captured import capture
from tests.commands import run
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


@pytest.mark.slow
def test_the_page_opens_without_network_and_draws(tmp_path: Path) -> None:
    """No error, no request except for its own file, and a figure of some height."""
    net, target = capture(tmp_path / "net.sqlite", steps=4), tmp_path / "net.html"
    assert run("roofline", net, "-o", target).code == 0
    with browser(tmp_path / "profile") as driver:
        drawn(driver, target)
        assert errors(driver) == []
        assert [url.rpartition("/")[2] for url in requests(driver)] == ["net.html"]
        height = "return document.querySelector('.figure').clientHeight"
        assert int(driver.execute_script(height)) > 300
