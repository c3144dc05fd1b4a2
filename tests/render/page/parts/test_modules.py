"""Nested modules on the page; without any, ops and their kernels."""

from pathlib import Path

from pyprof.inputs import source
from pyprof.render.page.content import summarise_page
from tests.builders import Work, nsys_db
from tests.render.page.parts.conftest import Made
from tests.render.page.shown_parts import shown


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


def test_a_capture_without_layers_shows_its_ops(tmp_path: Path) -> None:
    found = summarise_page(source.load(str(nsys_db(tmp_path / "a.sqlite", [Work(), Work("b")]))))
    part = shown(found)["modules"]
    assert part["title_text"].startswith("Ops and their kernels")
    assert {*part["icicle"]["name"]} >= {"gemm", "b"}
