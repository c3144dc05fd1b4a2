"""Where a roofline lies, and that the names of its roofs cover nothing."""

from collections.abc import Sequence
from itertools import combinations
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyprof.analysis.summary import roofline_points
from pyprof.analysis.summary.roofline_points import Point, Roof
from pyprof.inputs import source
from pyprof.prof.table import Override
from pyprof.render.roofline_frame import Box, Label, LogAxes, frame, height_of, labels

LETTER, LINE = 6.0, 14.0
SIZES = [(1220.0, 370.0), (720.0, 520.0)]
REAL = {
    "kineto-h100-vit-inference/trace.json.gz": None,
    "nsys2024.2-a100-pyprof-markers/net.sqlite": None,
    "kineto-v100-resnet50-2021/trace.json.gz": "Tesla V100-SXM2-16GB",
}


def point(intensity: float, flops_per_s: float, share: float = 0.1) -> Point:
    return Point(
        op="op",
        dir="fprop",
        kernel="kernel",
        bound=None,
        line=None,
        lines=1,
        efficiency=None,
        intensity=intensity,
        flops_per_s=flops_per_s,
        share=share,
        time="",
        rate="",
    )


def box(on: LogAxes, label: Label) -> Box:
    x, y = map(float, on.place(label.x, label.y))
    left = x if label.align == "left" else x - LETTER * len(label.text)
    bottom = y if label.above else y - LINE
    return Box(left, bottom, left + LETTER * len(label.text), bottom + LINE)


def check(on: LogAxes, points: Sequence[Point], radii: Sequence[float], roofs: list[Roof]) -> None:
    """Every name is inside, and on no point, roof or other name."""
    found = labels(on, points, radii, roofs, LETTER, LINE)
    assert {label.text for label in found} >= {roof.label for roof in roofs}
    boxes = [box(on, label) for label in found]
    for left, bottom, right, top in boxes:
        assert -0.1 <= left < right <= on.width + 0.1
        assert -0.1 <= bottom < top <= on.height + 0.1
        for one, radius in zip(points, radii, strict=True):
            x, y = map(float, on.place(one.intensity, one.flops_per_s / 1e12))
            assert ((x - max(left, min(x, right))) ** 2 + (y - max(bottom, min(y, top))) ** 2) >= (
                radius - 0.1
            ) ** 2
        for roof in roofs:
            flat = float(on.place(1.0, roof.flops_per_s / 1e12)[1])
            ridge = float(on.place(roof.ridge, 1.0)[0])
            assert right <= ridge or not bottom < flat < top
    for a, b in combinations(boxes, 2):
        assert a.right <= b.left or b.right <= a.left or a.top <= b.bottom or b.top <= a.bottom


@pytest.mark.slow
@pytest.mark.parametrize("size", SIZES, ids=["page", "picture"])
@pytest.mark.parametrize("name", REAL)
def test_names_of_real_roofs_cover_no_point(
    name: str, size: tuple[float, float], captures: Path
) -> None:
    """At the sizes of the page and the picture."""
    chart = roofline_points.summarise_roofline(
        source.load(str(captures / name), Override(REAL[name]))
    ).chart(100)
    assert chart.roofs
    radii = [4 + 18 * one.share**0.5 for one in chart.points]
    check(frame(chart.points, chart.roofs, *size), chart.points, radii, chart.roofs)


def test_a_point_where_a_name_would_be_moves_it() -> None:
    """The name stands at the right end unless a large point is there."""
    roof = Roof(1e14, 1e12, "a roof with a name of some length")
    for rate, end in ((1e12, True), (1e14, False)):
        points = [point(2000, rate), point(1, 1e11)]
        on = frame(points, [roof], *SIZES[0])
        name = labels(on, points, [40, 4], [roof], LETTER, LINE)[0]
        assert (float(on.place(name.x, 1)[0]) > on.width - 10) == end
        check(on, points, [40, 4], [roof])


RATES = st.floats(1e6, 1e16)


@given(
    st.lists(st.tuples(st.floats(1e-4, 1e4), RATES), min_size=1), st.lists(st.tuples(RATES, RATES))
)
def test_all_points_and_ridges_are_inside(
    places: list[tuple[float, float]], peaks: list[tuple[float, float]]
) -> None:
    """The axes hold them all, and a place on the picture is its values and back."""
    points, roofs = [point(*place) for place in places], [Roof(*peak, "roof") for peak in peaks]
    on = frame(points, roofs, *SIZES[1])
    inside = [(one.intensity, one.flops_per_s / 1e12) for one in points]
    inside += [(roof.ridge, float(height_of(roof, roof.ridge))) for roof in roofs]
    for value in inside:
        x, y = map(float, on.place(*value))
        assert 0 < x < on.width
        assert 0 < y < on.height
        assert on.value(x, y) == pytest.approx(value)
