"""Pictures of memory: areas add up, the treemap divides the peak, nothing escapes."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyprof.memory import read
from pyprof.report.analysis.memory import highest_first
from pyprof.report.render.page import memory
from tests.commands import run
from tests.memory import built

if TYPE_CHECKING:
    from pathlib import Path

_FRAME = memory._Frame(0, 0, 1000, 300)


@given(st.lists(st.integers(1, 10**12), min_size=1, max_size=40))
def test_a_treemap_divides_its_frame(sizes: list[int]) -> None:
    """Areas are as sizes are, inside of the frame, and overlap nowhere."""
    sizes.sort(reverse=True)
    parts = memory.divided(sizes, _FRAME)
    assert len(parts) == len(sizes)
    for size, part in zip(sizes, parts, strict=True):
        expected = 300_000 * size / sum(sizes)
        assert part.width * part.height == pytest.approx(expected, rel=1e-6, abs=1e-6)
        assert part.x >= 0
        assert part.x + part.width <= 1000 + 1e-6
        assert part.y + part.height <= 300 + 1e-6
    covered = sum(part.width * part.height for part in parts)
    assert covered == pytest.approx(300_000)


def test_parts_of_a_treemap_do_not_overlap() -> None:
    """Of a case with several rows."""
    parts = memory.divided([6, 6, 4, 3, 2, 2, 1], memory._Frame(0, 0, 6, 4))
    for place, a in enumerate(parts):
        for b in parts[place + 1 :]:
            apart = (
                a.x + a.width <= b.x + 1e-9 or b.x + b.width <= a.x + 1e-9
                or a.y + a.height <= b.y + 1e-9 or b.y + b.height <= a.y + 1e-9
            )  # fmt: skip
            assert apart


def test_the_peak_is_marked_at_its_height(tmp_path: Path) -> None:
    """The areas at the peak reach as high as its mark; the treemap holds all of it."""
    path = built.write(tmp_path / "x.pickle", built.training(5, leak=1 << 20))
    (device,) = highest_first([read.read(path)])
    drawn = memory.picture(device)
    x, y = drawn.peak
    tops = [re.findall(rf"{x:.1f},([\d.]+)", area.path) for area in drawn.areas]
    assert min(float(top) for heights in tops for top in heights) == pytest.approx(y, abs=0.1)
    area = sum(part.width * part.height for part in drawn.rectangles)
    assert area == pytest.approx(memory.WIDTH * memory.TREE_HEIGHT)


def test_a_page_needs_nothing_else_and_escapes_names(tmp_path: Path) -> None:
    """One file, of all devices; a name that would be a script is shown."""
    one, other = built.training(), built.Device(number=1)
    other.range("</title><script>alert(1)</script>", begins=True)
    other.alloc(1000, built.user(1))
    target = tmp_path / "x.html"
    path = built.write(tmp_path / "x.pickle", one, other)
    assert run("memory", path, "-o", target).code == 0
    page = target.read_text()
    assert "<h2>cuda:0</h2>" in page
    assert "<h2>cuda:1</h2>" in page
    assert "<script" not in page
    assert "&lt;script&gt;alert(1)" in page
    assert not re.search(r"(?:src|href)=", page)


def test_a_device_without_events_is_drawn(tmp_path: Path) -> None:
    """Only its end is known: a treemap without a course."""
    device = built.training()
    device.events.clear()
    target = tmp_path / "x.html"
    assert run("memory", built.write(tmp_path / "x.pickle", device), "-o", target).code == 0
    assert 'aria-label="What the peak holds"' in target.read_text()
    assert 'aria-label="Memory over time' not in target.read_text()
