"""Frames in a notebook."""

from html.parser import HTMLParser
from pathlib import Path

import pyprof
from tests.analysis.captured import HOSTILE, capture


class _Cells(HTMLParser):
    """Collects the elements and texts of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.texts: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        del attrs
        self.tags.add(tag)

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def test_a_frame_is_shown_as_a_table(tmp_path: Path) -> None:
    """Names are escaped, unknown is <NA>, numbers have no units."""
    shown = _Cells()
    frame = pyprof.load(capture(tmp_path / "net.sqlite"))[
        ["op", "layer", "long_name", "sil", "sizes"]
    ]
    shown.feed(frame.to_html(notebook=True))
    assert shown.tags == {"div", "style", "table", "thead", "tbody", "tr", "th", "td"}
    assert {"relu", "net:net.first", HOSTILE, "300", "<NA>", "[[16, 8]]"} <= {*shown.texts}
