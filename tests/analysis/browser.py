"""Opens a page in a real headless browser, if there is one, and returns what went wrong."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from selenium.webdriver.chrome.webdriver import WebDriver

_FLAGS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--window-size=1366,768",
)  # fmt: skip
_PATIENCE_S = 30


@contextmanager
def browser(profile: Path) -> Iterator[WebDriver]:
    """Start Chromium with an empty profile; skip where it or selenium is not installed."""
    webdriver = pytest.importorskip("selenium.webdriver")
    binary = shutil.which("chromium") or shutil.which("chromium-browser")
    driver = shutil.which("chromedriver")
    if not binary or not driver:
        pytest.skip("no chromium and chromedriver")
    options = webdriver.ChromeOptions()
    options.binary_location = binary
    for flag in (*_FLAGS, f"--user-data-dir={profile}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    service = webdriver.chrome.service.Service(driver)
    started: WebDriver = webdriver.Chrome(options=options, service=service)
    try:
        yield started
    finally:
        started.quit()


def drawn(driver: WebDriver, page: Path) -> None:
    """Open a page of figures and wait until they are drawn."""
    from selenium.webdriver.support.ui import WebDriverWait  # noqa: PLC0415 - may not be there

    driver.get(page.as_uri())
    WebDriverWait(driver, _PATIENCE_S).until(
        lambda shown: (
            shown.execute_script("return document.documentElement.dataset.figures") == "drawn"
        )
    )


def errors(driver: WebDriver) -> list[str]:
    """Return the warnings and errors on the page's console."""
    return [
        entry["message"]
        for entry in driver.get_log("browser")  # type: ignore[no-untyped-call]
        if entry["level"] not in ("INFO", "DEBUG")
    ]


def requests(driver: WebDriver) -> set[str]:
    """Return the addresses that pages requested, except the browser's own and inline data."""
    asked = set()
    for entry in driver.get_log("performance"):  # type: ignore[no-untyped-call]
        message: dict[str, Any] = json.loads(entry["message"])["message"]
        if message["method"] == "Network.requestWillBeSent":
            asked.add(message["params"]["request"]["url"])
    return {address for address in asked if not address.startswith(("chrome", "data:"))}
