"""The tree of modules; without any, of ops and their kernels: children fit into their parents."""

from pathlib import Path

import pytest

from pyprof.analysis.report.attributes import row_attributes
from pyprof.inputs import source
from pyprof.render.page.parts.totals import modules
from pyprof.render.page.parts.totals.modules import IcicleBox
from tests.analysis.answered import answered
from tests.analysis.captured import capture
from tests.builders import Work, nsys_db
from tests.render.page.parts.conftest import Made
from tests.render.page.shown_parts import shown, sums_of


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
    root = modules.modules(answered(source.load(str(capture(tmp_path / "net.sqlite")))).layers)
    assert root is not None
    boxes = modules.boxes(root, "all")
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
    boxes = modules.boxes(modules.ops(row_attributes(table).chosen), "all")
    assert enclosed(boxes)
    assert boxes[0].total_ns == table.duration_ns.sum()
    assert max(box.depth for box in boxes) == 3


def test_boxes_are_as_long_as_all_that_is_in_them(made: Made) -> None:
    """Layers of a step are not part of the range around it."""
    figure = made["modules"]["icicle"]
    boxes = zip(figure["depth"], figure["name"], figure["start"], figure["length"], strict=True)
    assert [*boxes] == [
        (0, "all GPU time", 0, 1500),
        (1, "net", 0, 1000),
        (2, "second", 0, 600),
        (1, "step", 1000, 500),
        (2, "first", 600, 400),
    ]
    keys = zip(figure["name"], figure["key"], strict=True)
    layers = {name: {*(key or "").removeprefix("layer=").split(",")} for name, key in keys}
    assert layers["net"] >= layers["first"] | layers["second"], "a box selects what is in it"


def test_a_capture_without_layers_shows_its_ops(tmp_path: Path) -> None:
    found = sums_of(nsys_db(tmp_path / "a.sqlite", [Work(), Work("b")]))
    part = shown(found)["modules"]
    assert part["title_text"].startswith("Ops and their kernels")
    assert {*part["icicle"]["name"]} >= {"gemm", "b"}


@pytest.mark.slow
def test_a_capture_with_little_in_layers_shows_its_ops(captures: Path) -> None:
    """FSDP's ranges around its own copies would leave one box of all else."""
    file = captures / "nsys2026.2-h100x2-fsdp/net.sqlite"
    part = shown(sums_of(file))["modules"]
    assert part["title_text"] == "Ops and their kernels (little time is in layers)"
    assert "FlashAttnFunc" in part["icicle"]["name"]
