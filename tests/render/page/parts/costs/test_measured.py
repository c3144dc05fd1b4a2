"""Counters, on the page."""

from pathlib import Path

from tests.analysis import product
from tests.commands import run


def test_the_page_has_a_section_of_counters(tmp_path: Path) -> None:
    """Sortable; without counters there is none."""
    counters, capture = product.measured(tmp_path)
    page = tmp_path / "a.html"
    assert run("report", "-q", "--with", counters, capture, "-o", page).code == 0
    html = page.read_text()
    assert '<section id="measured"' in html
    assert "by ncu in another run" in html
    assert run("report", "-q", capture, "-o", page).code == 0
    assert '<section id="measured"' not in page.read_text()
