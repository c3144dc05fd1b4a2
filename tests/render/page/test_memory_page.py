"""Pictures of memory: areas add up, the treemap divides the peak, nothing escapes."""

import re
from itertools import combinations, pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyprof.allocations import read
from pyprof.analysis.memory.peaks import highest_first
from pyprof.answers.memory_answer import DeviceMemory, Memory
from pyprof.answers.page.report_answer import Clock
from pyprof.render.page import memory_page
from tests.allocations import built
from tests.commands import run
from tests.known import known

_FRAME = memory_page._Frame(0, 0, 1000, 300)


@given(st.lists(st.integers(1, 10**12), min_size=1, max_size=40))
def test_a_treemap_divides_its_frame(sizes: list[int]) -> None:
    """Areas are proportional to sizes, inside of the frame, without overlap."""
    sizes.sort(reverse=True)
    parts = memory_page.divided(sizes, _FRAME)
    assert len(parts) == len(sizes)
    for size, part in zip(sizes, parts, strict=True):
        expected = 300_000 * size / sum(sizes)
        assert part.width * part.height == pytest.approx(expected, rel=1e-6, abs=1e-6)
        assert part.x >= 0
        assert part.x + part.width <= 1000 + 1e-6
        assert part.y + part.height <= 300 + 1e-6
    assert sum(part.width * part.height for part in parts) == pytest.approx(300_000)
    for a, b in combinations(parts, 2):
        apart = (a.x + a.width <= b.x + 1e-6, b.x + b.width <= a.x + 1e-6,
                 a.y + a.height <= b.y + 1e-6, b.y + b.height <= a.y + 1e-6)  # fmt: skip
        assert any(apart)


def highest(path: Path, *devices: built.Device) -> DeviceMemory:
    return highest_first([read.read(built.write(path / "x.pickle", *devices))])[0]


def test_the_peak_is_marked_at_its_height(tmp_path: Path) -> None:
    """There categories add up to it; the treemap holds all of it."""
    device = highest(tmp_path, built.training(5, leak=1 << 20))
    drawn = memory_page.picture(device)
    course, tree = known(drawn.course), known(drawn.treemap)
    assert [sum(held) for held in zip(*course["bytes"], strict=True)] == course["total"]
    assert course["total"][course["x"].index(course["peak"])] == course["peak_bytes"]
    assert max(course["total"]) == course["peak_bytes"] == device.peak_bytes
    areas = [w * h for w, h in zip(tree["width"], tree["height"], strict=True)]
    assert sum(areas) == pytest.approx(1)
    ends = [[a + b for a, b in zip(tree[at], tree[by], strict=True)]
            for at, by in (("x", "width"), ("y", "height"))]  # fmt: skip
    assert [max(each) for each in ends] == pytest.approx([1, 1])
    of_category = sum(
        area
        for area, colour in zip(areas, tree["colour"], strict=True)
        if colour == memory_page._COLOURS["gradients"]
    )
    held = {group.name: group.bytes for group in device.by["category"]}
    assert of_category == pytest.approx(held["gradients"] / device.peak_bytes)
    assert "train.py:10" in {dict(tip).get("line") for tip in tree["tip"]}


def test_times_are_the_timeline_s_if_the_peak_is_in_it(tmp_path: Path) -> None:
    """Otherwise the recording has an axis of its own."""
    device = highest(tmp_path, built.training())
    start_ns, peak_ns = known(device.began_ns) + 5000, known(device.peak_time_ns)
    shared, apart = (
        known(memory_page.picture(device, Clock(start_ns, length)).course)
        for length in (peak_ns, 1)
    )
    assert (shared["shares"], apart["shares"]) == ("first kernel", None)
    assert (shared["peak"], apart["peak"]) == (peak_ns - 5000, peak_ns)
    assert shared["domain"] == [0, peak_ns]


@pytest.mark.slow
def test_a_window_has_points_of_its_own(tmp_path: Path) -> None:
    """As many as for a recording a hundred times as long; the level before it comes first."""
    device = built.Device()
    for number in range(3000):
        device.free(device.alloc(1000 + number % 7))
    high = device.alloc(10**6)
    for number in range(200):
        device.free(device.alloc(1000 + number % 7))
    device.free(high)
    for number in range(30000):
        device.free(device.alloc(1000 + number % 7))
    recorded = [read.read(built.write(tmp_path / "x.pickle", device))]
    (whole,) = highest_first(recorded)
    began = known(whole.began_ns) + known(whole.peak_time_ns)
    window = (began, began + 200 * 20_000)
    (part,) = highest_first(recorded, window=window)
    assert part.peak_bytes == whole.peak_bytes == max(point.bytes for point in part.timeline)
    inside = [
        point.event_id
        for point in part.timeline
        if window[0] <= known(whole.began_ns) + (point.time_ns or 0) <= window[1]
    ]
    assert inside == [point.event_id for point in part.timeline][1:]
    assert len(inside) > 150
    assert len(highest_first(recorded, window=(0, 1))[0].timeline) == len(whole.timeline)


def test_a_page_needs_nothing_else_and_escapes_names(tmp_path: Path) -> None:
    """One file, with all devices; a name that looks like a script is shown as text."""
    one, other = built.training(), built.Device(number=1)
    other.range("</title><script>alert(1)</script>", begins=True)
    other.alloc(1000, built.user(1))
    target = tmp_path / "x.html"
    path = built.write(tmp_path / "x.pickle", one, other)
    assert run("memory", path, "-o", target).code == 0
    page = target.read_text()
    assert "<h2>cuda:0</h2>" in page
    assert "<h2>cuda:1</h2>" in page
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert(1)" in page
    assert not re.search(r"(?:src|href)=\"(?!data:,)", page)
    assert "/home/user" not in page


def test_what_a_change_assumes_is_prose_and_wraps(tmp_path: Path) -> None:
    """On a telephone, its column was as narrow as one word, so each word took a line."""
    target = tmp_path / "x.html"
    run("memory", built.write(tmp_path / "x.pickle", built.training()), "-o", target)
    assert '<td class="prose">activations and temporaries scale with' in target.read_text()


def test_a_device_without_events_is_drawn(tmp_path: Path) -> None:
    """Only its end is known: a treemap without a curve."""
    device = built.training()
    device.events.clear()
    drawn = memory_page.picture(highest(tmp_path, device))
    assert drawn.course is None
    assert drawn.treemap is not None
    assert any("no events were recorded" in sentence for sentence in drawn.sentences)


def test_sentences_say_what_grows_and_what_failed(tmp_path: Path) -> None:
    device = built.training(5, leak=64 * 1024)
    device.oom(1 << 30, 5 << 20, built.CALL, built.user(10))
    said = " ".join(memory_page.picture(highest(tmp_path, device)).sentences)
    assert "Peak: 26.5 MB allocated" in said
    assert "train.py:11 holds more and more: 65.5 kB per step after the first of 5" in said
    assert "1.07 GB was asked for by train.py:10; the device had 5.24 MB free" in said
    assert "/home" not in said


def test_a_page_names_no_folder(tmp_path: Path) -> None:
    """It is made to be sent; it has names of files and lines."""
    device = built.training()
    device.alloc(1 << 38, ("f", "/home/alice/secret/train.py", 31))
    device.alloc(1 << 38, ("f", "C:\\Users\\alice\\model.py", 32))
    page = memory_page.page_of(Memory((highest(tmp_path, device),)))
    assert "train.py:31" in page
    assert "model.py:32" in page
    assert not re.search("alice|secret|/home|user", page)


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
    assert figure["times"][0].endswith(", 6 blocks")
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
