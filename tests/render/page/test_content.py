"""What the page says about its capture."""

from dataclasses import replace
from pathlib import Path

from pyprof.analysis.report import report
from pyprof.render.page.content import html
from tests.analysis.captured import TWO_WINDOWS, capture
from tests.builders import nsys_db
from tests.render.page.shown_parts import page_of, sums_of


def test_a_note_is_called_one_once(tmp_path: Path) -> None:
    answer = report(sums_of(capture(tmp_path / "net.sqlite")))
    noted = replace(answer.summary, warnings=("note: all is well",))
    assert ">Note: all is well<" in html(replace(answer, summary=noted))


def test_recordings_are_counted_with_what_lies_between_them(tmp_path: Path) -> None:
    """Busy and idle time are without it, as the text says, too."""
    net = nsys_db(tmp_path / "net.sqlite", TWO_WINDOWS)
    page = page_of(net)
    assert "<dt>windows</dt><dd>2; 7.85 us between them left out</dd>" in page
