"""What the page says about its capture."""

from dataclasses import replace
from pathlib import Path

from pyprof.analysis.report import report, summarise_report
from pyprof.inputs import source
from pyprof.render.page.content import html
from tests.analysis.captured import TWO_WINDOWS, capture
from tests.builders import nsys_db


def test_a_note_is_called_one_once(tmp_path: Path) -> None:
    answer = report(summarise_report(source.load(str(capture(tmp_path / "net.sqlite")))))
    noted = replace(answer.summary, warnings=("note: all is well",))
    assert ">Note: all is well<" in html(replace(answer, summary=noted))


def test_recordings_are_counted_with_what_lies_between_them(tmp_path: Path) -> None:
    """Busy and idle time are without it, as the text says, too."""
    net = nsys_db(tmp_path / "net.sqlite", TWO_WINDOWS)
    page = html(report(summarise_report(source.load(str(net)))))
    assert "<dt>windows</dt><dd>2; 7.85 us between them left out</dd>" in page
