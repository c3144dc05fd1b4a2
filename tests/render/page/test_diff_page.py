"""The page of a comparison."""

import re
from pathlib import Path

import pytest

from pyprof.answers.diff_answer import Stage
from pyprof.render.page.diff_page import Bar, bars
from tests.analysis.browser import browser
from tests.analysis.captured import capture
from tests.commands import run


def test_the_page_draws_every_stage(tmp_path: Path) -> None:
    """A bar for A, B and every op; hidden from screen readers, which have the table."""
    a, b = capture(tmp_path / "a.sqlite"), capture(tmp_path / "b.sqlite", slower=4)
    assert run("diff", "-q", a, b, "-o", tmp_path / "diff.html").code == 0
    page = (tmp_path / "diff.html").read_text("utf-8")
    assert ". Totals of both captures (" in page
    shown = page[page.index("From A to B") : page.index("Op by op")]
    assert shown.count("<svg aria-hidden") == shown.count("<rect") == shown.count("</tr>") - 1
    assert re.findall('<rect class="(\\w+)"', shown) == ["total", "slower", "total"]
    assert '<td data-value="3.0">' in page, "relu takes four times as long"
    assert "status" in re.findall("<th[^>]*><button[^>]*>([^<]+)", page)
    same = run("diff", "-q", a, a, "-o", tmp_path / "same.html")
    assert same.code == 0
    assert "<svg" not in (tmp_path / "same.html").read_text("utf-8")


def test_each_bar_begins_where_the_one_before_ends() -> None:
    """From A's time, 800, through increases and decreases, to B's, 500, relative to 800."""
    begin_ns, drawn = bars([Stage("mm", 1, -400, 800, 400), Stage("add", 1, 100, 400, 500)])
    assert begin_ns == 0
    first, last = Bar(0, 1000, "total", 1000), Bar(0, 625, "total", 625)
    changes = Bar(500, 500, "faster", 500), Bar(500, 125, "slower", 625)
    assert drawn == [first, *changes, last]


def test_small_changes_are_visible() -> None:
    """The axis begins half their range below the shortest time, and says so."""
    begin_ns, drawn = bars([Stage("mm", 1, -10, 1000, 990), Stage("add", 1, 2, 990, 992)])
    assert begin_ns == 985
    lengths = [bar.length for bar in drawn]
    assert lengths == pytest.approx([1000, 10 / 15 * 1000, 2 / 15 * 1000, 7 / 15 * 1000], abs=0.01)


def test_a_time_of_0_has_no_bar() -> None:
    _, drawn = bars([Stage("mm", 1, 5, 0, 5)])
    assert [bar.length for bar in drawn] == [0, 1000, 1000]


@pytest.mark.slow
def test_on_a_narrow_screen_names_of_ops_break_between_words(tmp_path: Path) -> None:
    a, b = capture(tmp_path / "a.sqlite"), capture(tmp_path / "b.sqlite", slower=4)
    assert run("diff", "-q", a, b, "-o", tmp_path / "diff.html").code == 0
    with browser(tmp_path / "profile") as driver:
        narrow = {"width": 400, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", narrow)
        driver.get((tmp_path / "diff.html").as_uri())
        lines = """
        const text = document.querySelector('.waterfall tbody tr:nth-child(2) td').firstChild;
        text.data = 'layer_norm (backward)';
        const range = document.createRange();
        range.selectNode(text);
        return range.getClientRects().length"""
        assert driver.execute_script(lines) == 2
