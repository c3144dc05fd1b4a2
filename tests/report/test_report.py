"""The page: whole, small, harmless, and alive in a real browser."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import TYPE_CHECKING

import pytest

from pyprof.marker import encode_layer
from tests.builders import SECRETS, Range, Work, nsys_db
from tests.commands import run
from tests.programs import generate
from tests.report.browser import browser, drawn, errors, requests
from tests.report.captured import HOSTILE, capture

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from selenium.webdriver.chrome.webdriver import WebDriver

pytest.importorskip("bokeh")

NAMES = [
    f"<img src=x onerror=document.title='harmed'>{HOSTILE}",
    "</script><script>alert(1)</script>",
    "volta_sgemm_128x64_nn",
]


def page(source: Path, target: Path, *options: str) -> str:
    """Write the page of a capture."""
    done = run("report", source, "-o", target, *options)
    assert done.code == 0, done.stderr
    return target.read_text()


class _Elements(HTMLParser):
    """Collects elements and what they ask for."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.asked: list[str] = []
        self.handlers: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note an element."""
        self.tags.append(tag)
        for name, value in attrs:
            if name in ("src", "href") and value and not value.startswith(("#", "data:")):
                self.asked.append(value)
            if name.startswith("on"):
                self.handlers.append(name)


@pytest.mark.parametrize("name", NAMES)
def test_names_stay_text(tmp_path: Path, name: str) -> None:
    """No name of a kernel makes an element, an attribute or a script."""
    plain, hostile = _Elements(), _Elements()
    plain.feed(page(capture(tmp_path / "a.sqlite", hostile="plain"), tmp_path / "a.html"))
    hostile.feed(page(capture(tmp_path / "b.sqlite", hostile=name), tmp_path / "b.html"))
    assert hostile.tags == plain.tags
    assert (hostile.asked, hostile.handlers) == ([], [])


def test_it_holds_no_folder_user_or_host(tmp_path: Path) -> None:
    """Lines are told by their file's name alone; nothing of the machine is in the page."""
    text = page(capture(tmp_path / "net.sqlite"), tmp_path / "net.html")
    assert "model.py" in text
    assert "/home/me" not in text
    assert not [secret for secret in SECRETS if secret in text]


def test_its_policy_forbids_requests(tmp_path: Path) -> None:
    """Even a mistake could not send anything: the content policy allows inline parts only."""
    text = page(capture(tmp_path / "net.sqlite"), tmp_path / "net.html")
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text)
    assert policy is not None
    assert policy[1].startswith("default-src 'none'")
    assert "http" not in policy[1]


@pytest.mark.parametrize(
    "name",
    [
        "nsys2024.2-a100-pyprof-markers/net.sqlite",
        "nsys2026.2-h100x2-fsdp/net.sqlite",
        "nsys2024.6-a100-cudagraph/net.sqlite",
        "nvprof-v100-apex/net.dict",
    ],
)
def test_any_capture_has_a_small_page(captures: Path, tmp_path: Path, name: str) -> None:
    """With layers or without, with times or without, with GPU names or without: below 5 MB."""
    page(captures / name, tmp_path / "net.html")
    assert (tmp_path / "net.html").stat().st_size < 5_000_000


@pytest.mark.slow
def test_the_largest_capture_has_a_small_page(tmp_path: Path) -> None:
    """Thousands of long names on eight devices in deep layers: below 5 MB all the same."""
    rows, levels = 4000, 12
    work = [
        Work(f"{'kernel_of_a_long_name_' * 13}{n:05}", (10 * n, 10 * n + 9), (10 * n, 10 * n + 3),
             device=n % 8)
        for n in range(rows)
    ]  # fmt: skip
    ranges = [
        Range(encode_layer(".".join(f"part{(n >> level) % 7}" for level in range(depth + 1))),
              (10 * n - 1, 10 * n + 5))
        for n in range(0, rows, 4) for depth in range(levels)
    ]  # fmt: skip
    ranges += [Range(f"step {n}", (500 * n, 500 * n + 499)) for n in range(rows // 50)]
    page(nsys_db(tmp_path / "net.sqlite", work, ranges), tmp_path / "net.html")
    assert (tmp_path / "net.html").stat().st_size < 5_000_000


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebDriver]:
    """Open the page of a capture with a hostile name in a browser."""
    folder = tmp_path_factory.mktemp("page")
    target = folder / "net.html"
    page(capture(folder / "net.sqlite", hostile=NAMES[0]), target)
    with browser(folder / "profile") as driver:
        drawn(driver, target)
        yield driver


def test_it_opens_without_error_or_request(opened: WebDriver) -> None:
    """The console stays silent, nothing is asked of any network, and no name has run."""
    assert errors(opened) == []
    assert [url.rpartition("/")[2] for url in requests(opened)] == ["net.html"]
    assert opened.title == "GPU profile"
    assert opened.find_elements("css selector", "img") == []


def test_its_figures_are_drawn(opened: WebDriver) -> None:
    """Each figure has a canvas of its own."""
    figures = "return [...document.querySelectorAll('.figure')].map(f => f.clientHeight > 50)"
    assert opened.execute_script(figures) == [True, True, True]


def _column(driver: WebDriver, place: int) -> list[str]:
    script = (
        "return [...document.querySelectorAll('#table-kernels tbody tr:not([hidden])')]"
        f".map(row => row.cells[{place}].textContent)"
    )
    found: list[str] = driver.execute_script(script)
    return found


def test_tables_sort_and_filter(opened: WebDriver) -> None:
    """A click sorts numbers by value, the next turns round; the box keeps rows with its words."""
    times = ["300 ns", "200 ns", "200 ns", "50 ns"]
    assert _column(opened, 2) == times
    header = opened.find_elements("css selector", "#table-kernels th button")[2]
    header.click()
    assert _column(opened, 2) == times
    header.click()
    assert _column(opened, 2) == times[::-1]
    box = opened.find_element("css selector", "input[data-for=table-kernels]")
    box.send_keys("RELU forward-no")
    assert _column(opened, 0) == []
    box.clear()
    box.send_keys("relu")
    assert _column(opened, 0) == ["relu_kernel"]
    count = opened.find_element("css selector", "output[data-for=table-kernels]")
    assert count.text == "1 of 4 rows"


FITTED = """
const named = (plot) => plot.renderers.find((drawn) => drawn.name === "fitted");
const plot = Bokeh.documents.flatMap((shown) => shown.roots()).find(named);
const {left, right, full, label, at} = named(plot).data_source.data;
const px = plot.inner_width / (plot.x_range.end - plot.x_range.start);
const pen = document.createElement("canvas").getContext("2d");
pen.font = "11px helvetica";
return Array.from(full, (name, i) => ({name, label: label[i], text: pen.measureText(label[i]).width,
    box: (Math.min(right[i], plot.x_range.end) - at[i]) * px}));
"""
ZOOM = FITTED.partition("const {left")[0] + (
    "const done = arguments[0]; plot.x_range.setv({start: 0.0002, end: 0.00021});"
    "requestAnimationFrame(() => requestAnimationFrame(done))"
)


@pytest.mark.slow
def test_names_fit_their_boxes_at_every_zoom(opened: WebDriver) -> None:
    """A name is as long as what is seen of its box; a box that fills the figure has it whole."""
    for wide in (False, True):
        if wide:
            opened.execute_async_script(ZOOM)
        boxes = opened.execute_script(FITTED)
        assert all(box["text"] <= max(box["box"], 0) for box in boxes)
        assert all(box["name"].startswith(box["label"].rstrip("\u2026")) for box in boxes)
        named = {box["name"] for box in boxes if box["label"] == box["name"]}
        assert named >= {"all GPU time", "net", "second"}


def test_the_button_changes_between_light_and_dark(opened: WebDriver) -> None:
    """Paper and the figures' ink change together."""
    script = (
        "return [getComputedStyle(document.body).backgroundColor, "
        "[...Bokeh.documents[0].all_models].find(m => m.type.endsWith('Axis'))"
        ".major_label_text_color]"
    )
    before = opened.execute_script(script)
    opened.find_element("css selector", "button.theme").click()
    after = opened.execute_script(script)
    assert before[0] != after[0]
    assert before[1] != after[1]


@pytest.mark.slow
def test_on_a_telephone_only_tables_and_figures_scroll_sideways(tmp_path: Path) -> None:
    """The page itself is as wide as the screen, whatever its tables hold."""
    generate(tmp_path / "net.sqlite", "--kernels", "30")
    page(tmp_path / "net.sqlite", tmp_path / "narrow.html")
    narrow = {"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": True}
    with browser(tmp_path / "profile") as driver:
        driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", narrow)
        drawn(driver, tmp_path / "narrow.html")
        named = (
            "const cells = document.querySelectorAll('details td.text:first-child');"
            "for (const cell of cells) cell.textContent = 'kernel_'.repeat(20); return cells.length"
        )
        assert driver.execute_script(named)
        assert (
            driver.execute_script("return document.documentElement.scrollWidth") == narrow["width"]
        )
