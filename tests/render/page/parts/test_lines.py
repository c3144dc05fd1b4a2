"""Lines of the page."""

from pathlib import Path

from pyprof.inputs import source
from pyprof.render.page.content import summarise_page
from tests.analysis.captured import capture
from tests.render.page import shown_parts


def test_lines_are_sorted_by_self_time(tmp_path: Path) -> None:
    """A line that only calls, like that of main, is separate."""
    made = shown_parts.shown(
        summarise_page(source.load(str(capture(tmp_path / "net.sqlite", slower=4))))
    )
    rows = {name: [(row[0].text, row[1].text, row[3].text) for row in made["lines"][name].rows]
            for name in ("lines", "callers")}  # fmt: skip
    assert rows == {
        "lines": [("model.py:12", "800 ns", "800 ns"), ("model.py:30", "300 ns", "300 ns")],
        "callers": [("train.py:7", "0 ns", "1.10 us")],
    }
