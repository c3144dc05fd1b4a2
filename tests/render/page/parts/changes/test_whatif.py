"""Predictions on the page: bars with their intervals."""

import re
from pathlib import Path

from tests.analysis.captured import capture
from tests.analysis.captures import write_dict
from tests.analysis.test_attention_calls import attention, story
from tests.commands import run


def test_each_change_has_a_bar_or_the_reason_of_its_refusal(tmp_path: Path) -> None:
    """The interval contains the expected time, in % of the time now."""
    records = story(*attention(64, 1024, 1024, 64)).table.records
    net = write_dict(tmp_path / "net.dict", records)
    page = tmp_path / "net.html"
    assert run("report", "-q", net, "-o", page).code == 0
    section = page.read_text().partition('<section id="whatif"')[2].partition("</section>")[0]
    assert "--fuse attention" in section
    assert "--dtype tf32</code> is not predicted: " in section
    bar = r'class="expected".*?width="([\d.]+)".*?x1="([\d.]+)" x2="([\d.]+)"'
    expected, low, high = map(float, re.findall(bar, section)[0])
    assert 0 < low < expected < high <= 100


def test_chosen_steps_are_not_predicted(tmp_path: Path) -> None:
    """The rules look at all rows."""
    net = capture(tmp_path / "net.sqlite", steps=4)
    page = tmp_path / "net.html"
    assert run("report", "-q", "--steps", "1:", net, "-o", page).code == 0
    assert '<section id="whatif"' not in page.read_text()
