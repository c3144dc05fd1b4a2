"""Lines of the page."""

from pathlib import Path

from pyprof.answers.lines_answer import LineTime
from pyprof.inputs.user_source import Sources
from pyprof.render.page.parts.totals.lines import _excerpts
from tests.analysis.captured import capture
from tests.render.page.shown_parts import shown, sums_of


def test_lines_are_sorted_by_self_time(tmp_path: Path) -> None:
    """A line that only calls, like that of main, is separate."""
    made = shown(sums_of(capture(tmp_path / "net.sqlite", slower=4)))
    rows = {name: [(row[0].text, row[1].text, row[3].text) for row in made["lines"][name].rows]
            for name in ("lines", "callers")}  # fmt: skip
    assert rows == {
        "lines": [("model.py:12", "800 ns", "800 ns"), ("model.py:30", "300 ns", "300 ns")],
        "callers": [("train.py:7", "0 ns", "1.10 us")],
    }


def test_source_around_slow_lines_is_joined_and_ends_with_the_file(tmp_path: Path) -> None:
    """A line that the file does not have, such as 0 of a frame without one, shows nothing."""
    (tmp_path / "net.py").write_text("".join(f"line {number}\n" for number in range(1, 31)))
    slowest = [
        LineTime(line=f"net.py:{number}", file="/src/net.py", number=number, calls=1,
                 time_ns=9, own_ns=9, share=0.2, source=None)
        for number in (0, 3, 9, 29, 31)
    ]  # fmt: skip
    excerpts = _excerpts(slowest, Sources(tmp_path))
    assert [[number for number, _, _ in excerpt.lines] for excerpt in excerpts] == [
        [*range(1, 13)], [*range(26, 31)]
    ]  # fmt: skip
    assert (9, "9 ns", "line 9") in excerpts[0].lines
