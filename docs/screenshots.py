"""Take the pictures of reports again: python docs/screenshots.py (needs Chromium)."""

from __future__ import annotations

import io
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

TOP = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TOP), str(TOP / "docs")]

import gallery  # noqa: E402 - beside this file

from tests.analysis.browser import browser, drawn  # noqa: E402 - the tests' browser

if TYPE_CHECKING:
    from selenium.webdriver.chrome.webdriver import WebDriver

IMAGES = TOP / "docs" / "images"
_COLOURS = 64
"""Enough for figures and text, in a quarter of the bytes."""


def taken(driver: WebDriver, page: Path) -> bytes:
    """Return the top of a page as PNG."""
    from PIL import Image  # noqa: PLC0415 - comes with matplotlib

    if "dataset.figures" in page.read_text(encoding="utf-8"):
        drawn(driver, page)
    else:  # a page of text
        driver.get(page.as_uri())
    with Image.open(io.BytesIO(driver.get_screenshot_as_png())) as picture:
        small = picture.convert("RGB").quantize(_COLOURS)
        target = io.BytesIO()
        small.save(target, "PNG", optimize=True)
    return target.getvalue()


def main() -> None:
    """Make the reports, open each, and write its picture."""
    IMAGES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, browser(Path(folder) / "profile") as driver:
        for page in gallery.reports(Path(folder)):
            (IMAGES / f"{page.stem}.png").write_bytes(taken(driver, page))
            print(IMAGES / f"{page.stem}.png")


if __name__ == "__main__":
    main()
