"""Flame graphs of memory."""

from itertools import pairwise
from pathlib import Path

from pyprof.render.page import memory_page
from tests.allocations import built
from tests.known import known
from tests.render.page.test_memory_page import highest


def test_each_frame_is_below_its_caller(tmp_path: Path) -> None:
    """Inside of its box, siblings side by side; the root is the whole peak."""
    device = built.Device()
    for number in range(6):
        stack = [built.user(line, f"f{line}") for line in range(number % 3, 4)]
        device.alloc(1000 + number, *stack)
    found = highest(tmp_path, device)
    figure = known(memory_page.picture(found).flame)
    boxes = [*zip(figure["depth"], figure["start"], figure["length"], strict=True)]
    assert boxes[0] == (0, 0, found.peak_bytes)
    for depth, start, length in boxes[1:]:
        assert any(
            above == depth - 1 and first <= start and start + length <= first + size
            for above, first, size in boxes
        )
    for depth in range(max(figure["depth"]) + 1):
        row = sorted((start, start + length) for level, start, length in boxes if level == depth)
        assert all(a[1] <= b[0] for a, b in pairwise(row))
    assert not any("/home" in name for name in figure["name"])


def test_no_flame_graph_without_stacks(tmp_path: Path) -> None:
    device = built.Device()
    device.alloc(1000)
    assert memory_page.picture(highest(tmp_path, device)).flame is None
