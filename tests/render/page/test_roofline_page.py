"""The page of a roofline, in a browser."""

from pathlib import Path

import pytest

from tests.analysis.browser import browser, drawn, errors, requests
from tests.analysis.captured import capture
from tests.commands import run


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
