"""The timeline of the page: every kernel is in one box, and every gap is drawn or counted."""

from functools import reduce
from pathlib import Path

import numpy as np
import pytest

from pyprof.analysis.report import stream_lanes
from pyprof.analysis.report.attributes import row_attributes
from pyprof.analysis.summary.overview import Overview, overview
from pyprof.answers.page.report_answer import PAUSED, Lanes, Mark
from pyprof.inputs import source
from pyprof.prof.table import Table
from pyprof.records.merging import merge_sums
from tests.analysis.captured import STEP_NS, TWO_WINDOWS, capture
from tests.builders import Work, nsys_db
from tests.known import known


def _gathered(file: Path, chosen: str | None) -> tuple[Table, Overview, Lanes]:
    loaded = source.load(str(file))
    view, table = overview(loaded, chosen), loaded.table
    attributes = row_attributes(table, view.rows)
    return table, view, known(stream_lanes.lanes(table.records, view, attributes))


def draw(file: Path, chosen: str | None = None) -> Lanes:
    return _gathered(file, chosen)[2]


def check(file: Path, picked: str | None = None) -> Lanes:
    """Compare boxes and gaps with the rows, one by one."""
    table, view, drawn = _gathered(file, picked)
    records, rows = table.records, view.rows
    chosen = np.flatnonzero(np.ones(records.rows, bool) if rows is None else rows)
    boxes = [lane for device in drawn.devices for lane in device.lanes]
    assert sum(int(box.rows.sum()) for box in boxes) == len(chosen)
    start, end = (records.numpy(name)[chosen] for name in ("start", "end"))
    assert sum(int(box.summed.sum()) for box in boxes) == int((end - start).sum())
    for box in boxes:
        assert (np.diff(box.start) >= 0).all()
        assert (box.summed[box.rows == 1] == box.length[box.rows == 1]).all()
        parts = np.bincount(box.parts.box, box.parts.ns, len(box.rows))
        assert (parts[box.rows == 1] == 0).all()
        rest = np.bincount(box.rest.box, box.rest.ns, len(box.rows))
        assert (parts + rest == np.where(box.rows == 1, 0, box.summed)).all()
    found = known(view.timeline)
    for device, shown in zip(found.devices, drawn.devices, strict=True):
        idle = sum(gap.length for gap in shown.gaps if gap.cause != PAUSED)
        assert idle + shown.left_out_ns == device.idle_ns
    return drawn


@pytest.mark.parametrize("most", [0, 2, 5000])
def test_every_kernel_is_in_one_box(
    most: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However few have a box of their own, time and number add up on every stream."""
    monkeypatch.setattr(stream_lanes, "_MAX_SINGLE", most)
    monkeypatch.setattr(stream_lanes, "_BINS", 3)
    monkeypatch.setattr(stream_lanes, "_MAX_GAPS", 3)
    drawn = check(capture(tmp_path / "net.sqlite", steps=4))
    assert [lane.name for lane in drawn.devices[0].lanes] == ["stream 7", "stream 8"]
    assert (drawn.devices[0].gaps_left_out > 0) == (len(drawn.devices[0].gaps) == 3)


def test_a_merged_box_lists_its_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Four kernels in one box: 300 ns of exp, twice 100 of relu, 50 of another."""
    monkeypatch.setattr(stream_lanes, "_MAX_SINGLE", 0)
    monkeypatch.setattr(stream_lanes, "_BINS", 1)
    drawn = draw(capture(tmp_path / "net.sqlite"))
    boxes = drawn.devices[0].lanes[0]
    texts = boxes.texts.to_pylist()[int(boxes.longest[0])]
    kernels = boxes.texts.column("kernel").take(boxes.parts.kind).to_pylist()
    parts = dict(zip(kernels, boxes.parts.ns.tolist(), strict=True))
    assert list(parts.items())[:2] == [("exp_kernel", 300), ("relu_kernel", 200)]
    assert sum(parts.values()) == boxes.summed[0]
    assert (*boxes.rows, *boxes.summed, *boxes.length) == (4, 550, 2450)
    assert (texts["op"], texts["kernel"], texts["layer"]) == ("exp", "exp_kernel", "net.second")
    assert texts["line"] == "/home/me/model.py:30"
    assert texts["stack"] == "/home/me/train.py:7\n/home/me/model.py:30"


def test_a_merged_box_keeps_its_largest_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of two captures keep their names."""
    for name, most in (("_MAX_SINGLE", 0), ("_BINS", 1), ("_MAX_PARTS", 2)):
        monkeypatch.setattr(stream_lanes, name, most)
    one = check(capture(tmp_path / "a.sqlite", steps=3))
    other = draw(capture(tmp_path / "b.sqlite", steps=3, slower=4))
    both = merge_sums(one, other)
    named = []
    for device in both.devices:
        lane = device.lanes[0]
        ops = lane.texts.column("op").take(lane.parts.kind).to_pylist()
        named.append([*zip(ops, lane.parts.ns, strict=True)])
    assert named == [[("exp", 900), ("relu", 600)], [("relu", 2400), ("exp", 900)]]


def test_the_typical_and_the_slowest_step_are_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of their kernels has a box of its own."""
    work = []
    for step, extra in enumerate((0, 0, 0, 900, 0, 0)):
        at = step * 2000
        work += [Work("a", (at + 100, at + 200), (at + 10, at + 20)),
                 Work("b", (at + 300, at + 400 + extra), (at + 30, at + 40))]  # fmt: skip
    file = nsys_db(tmp_path / "net.sqlite", work)
    monkeypatch.setattr(stream_lanes, "_MAX_SINGLE", 4)
    monkeypatch.setattr(stream_lanes, "_BINS", 1)
    drawn = check(file)
    typical, slowest = known(drawn.typical), known(drawn.slowest)
    assert (slowest.step, typical.step != slowest.step) == (3, True)
    (lane,) = drawn.devices[0].lanes
    for mark in (typical, slowest):
        inside = (lane.start >= mark.start) & (lane.start < mark.start + mark.length)
        assert lane.rows[inside].tolist() == [1, 1]


def test_gaps_of_the_typical_step_come_before_longer_ones() -> None:
    """Half of those drawn are the longest anywhere."""
    gaps = [(0, 50), (100, 140), (200, 230), (300, 320), (400, 410)]
    start, end = (np.array(part) for part in zip(*gaps, strict=True))
    order = stream_lanes._drawn_first(start, end, [Mark(1, 250, 200)])
    assert [gaps[place] for place in order] == sorted(gaps, key=lambda gap: gap[0] - gap[1])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stream_lanes, "_MAX_GAPS", 4)
        order = stream_lanes._drawn_first(start, end, [Mark(1, 250, 200)])
    assert order.tolist() == [0, 1, 3, 4, 2]


def test_steps_beyond_the_first_are_not_marked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are counted; the slowest one can still be shown."""
    monkeypatch.setattr(stream_lanes, "_MAX_MARKS", 2)
    drawn = draw(capture(tmp_path / "net.sqlite", steps=5))
    assert (len(drawn.marks), drawn.marks_left_out) == (2, 3)
    assert drawn.slowest is not None


def test_only_chosen_steps_are_drawn(tmp_path: Path) -> None:
    """From the end of the work before them."""
    drawn = check(capture(tmp_path / "net.sqlite", steps=4), "2:")
    assert drawn.length_ns == 2 * STEP_NS
    assert [mark.step for mark in drawn.marks] == [2, 3]


def test_a_process_with_a_negative_number_is_drawn(tmp_path: Path) -> None:
    """Unsigned 64-bit ids are written as negative ones; only -1 is missing."""
    path = tmp_path / "net.dict"
    path.write_text(
        '{"kShortName": "k", "kLongName": "k", "kDuration": 5, "start": 10, "end": 15, '
        '"pid": -7, "device": 0}\n'
    )
    (device,) = check(path).devices
    assert [box for lane in device.lanes for box in lane.length.tolist()] == [5]


def test_captures_are_drawn_below_each_other(tmp_path: Path) -> None:
    """Each from its own first kernel; devices beyond eight are counted."""
    one = draw(capture(tmp_path / "a.sqlite"))
    other = draw(capture(tmp_path / "b.sqlite", hostile="other", clock_ns=10**12))
    both = merge_sums(one, other)
    assert (len(both.devices), both.captures, both.length_ns) == (2, 2, one.length_ns)
    kernels = [
        lane.texts.column("kernel").take(lane.longest).to_pylist()
        for lane in (device.lanes[0] for device in both.devices)
    ]
    assert kernels[0][:3] == kernels[1][:3] == ["relu_kernel", "relu_kernel", "exp_kernel"]
    assert kernels[1][3] == "other"
    many = reduce(merge_sums, [one] * 10)
    assert (len(many.devices), many.devices_left_out) == (8, 2)


def test_a_pause_of_the_profiler_is_not_idle_time(tmp_path: Path) -> None:
    drawn = check(nsys_db(tmp_path / "net.sqlite", TWO_WINDOWS))
    assert [tuple(gap) for gap in drawn.devices[0].gaps] == [(250, 7850, "paused")]
