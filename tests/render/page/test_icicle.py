"""The icicle: children fit into their parents."""

from pathlib import Path

import pytest

from pyprof.analysis.summary.op_totals import sums
from pyprof.inputs import source
from pyprof.render.page import icicle
from pyprof.render.page.icicle import IcicleBox
from tests.analysis.answered import answered
from tests.analysis.captured import capture


def enclosed(boxes: list[IcicleBox]) -> bool:
    """Whether each box lies within one of the level above, and none overlaps its neighbour."""
    levels: dict[int, list[tuple[int, int]]] = {}
    for box in boxes:
        levels.setdefault(box.depth, []).append((box.start_ns, box.start_ns + box.total_ns))
    apart = all(
        before[1] <= after[0]
        for level in levels.values()
        for before, after in zip(sorted(level), sorted(level)[1:], strict=False)
    )
    return apart and all(
        any(low <= start and end <= high for low, high in levels[depth - 1])
        for depth, level in levels.items()
        if depth
        for start, end in level
    )


def test_modules_are_below_their_parents(tmp_path: Path) -> None:
    root = icicle.modules(answered(source.load(str(capture(tmp_path / "net.sqlite")))).layers)
    assert root is not None
    boxes = icicle.boxes(root, "all")
    assert enclosed(boxes)
    shown = {box.path: (box.depth, box.start_ns, box.total_ns) for box in boxes}
    assert shown["all"] == (0, 0, 750)
    assert shown["net"] == (1, 0, 500)
    assert shown["net.second"] == (2, 0, 300)
    assert shown["net.first"] == (2, 300, 200)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["nsys2024.2-a100-pyprof-markers", "nsys2026.2-h100x2-fsdp"])
def test_ops_stand_in_for_modules(captures: Path, name: str) -> None:
    """Without layers, the levels are direction, op and kernel; the root is all GPU time."""
    table = source.load(str(captures / name / "net.sqlite")).table
    boxes = icicle.boxes(icicle.ops(sums(table, icicle.OPS)), "all")
    assert enclosed(boxes)
    assert boxes[0].total_ns == table.duration_ns.sum()
    assert max(box.depth for box in boxes) == 3
