"""Pictures of rooflines: in the format of their suffix, reproducible."""

import sys
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from math import dist
from pathlib import Path
from unittest.mock import MagicMock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyprof.analysis.summary import roofline_points
from pyprof.answers.page.roofline_answer import Chart, Point, Roof
from pyprof.inputs import source
from pyprof.prof.table import Override
from pyprof.render import roofline_picture
from pyprof.render.roofline_picture import Box, Label, LogAxes, frame, height_of, labels
from tests.analysis.captured import capture
from tests.commands import run

HOSTILE = "<script>alert(1)</script>$x_2$ \N{GREEK SMALL LETTER MU}"


def _chart(path: Path, gpu: str | None = None) -> Chart:
    loaded = source.load(str(path), Override(gpu))
    return roofline_points.summarise_roofline(loaded).chart(100)


@pytest.mark.long
@pytest.mark.parametrize(
    ("suffix", "magic"), [("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF")]
)
def test_pictures_have_the_format_of_their_suffix_and_are_reproducible(
    net: Path, tmp_path: Path, suffix: str, magic: bytes
) -> None:
    """Two runs write the same bytes: no date, no random id."""
    pytest.importorskip("matplotlib")
    written = []
    for name in ("one", "two"):
        done = run("roofline", net, "-o", tmp_path / f"{name}.{suffix}")
        assert (done.code, done.stdout) == (0, "")
        written.append((tmp_path / f"{name}.{suffix}").read_bytes())
    assert written[0].startswith(magic)
    assert written[0] == written[1]


@pytest.mark.long
def test_the_svg_names_device_roofs_and_ops(net: Path, tmp_path: Path) -> None:
    """Text stays text, even if it looks like markup or a formula."""
    pytest.importorskip("matplotlib")
    hostile = capture(tmp_path / "hostile.sqlite", steps=4, hostile=HOSTILE)
    for path in (net, hostile):
        run("roofline", path, "-o", tmp_path / "net.svg")
        parts = [*ET.parse(tmp_path / "net.svg").getroot().itertext()]  # noqa: S314 - ours
        assert not any("  " in part for part in parts if part.strip())  # SVG would make one of them
        text = "".join(parts).replace("\N{NO-BREAK SPACE}", " ")
        chart = _chart(path)
        assert chart.title in text
        assert all(roof.label in text for roof in chart.roofs)
        assert all(point.name[:30] in text for point in chart.points[:14])


def test_a_letter_that_the_font_lacks_is_not_a_warning(net: Path) -> None:
    pytest.importorskip("matplotlib")
    chart = _chart(net)
    first = replace(chart.points[0], op="kernel_\N{GRINNING FACE}")
    assert roofline_picture.picture(replace(chart, points=[first]), "png")


def test_a_missing_package_for_pictures_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One line says what to install, before anything is read; no file is written."""
    for name in [*sys.modules, "matplotlib"]:
        if name.partition(".")[0] == "matplotlib":
            monkeypatch.setitem(sys.modules, name, None)
    done = run("roofline", tmp_path / "not.there", "-o", tmp_path / "net.png")
    assert done.code == 1
    assert done.stderr == "pyprof: pictures need matplotlib: pip install matplotlib\n"
    assert not (tmp_path / "net.png").exists()


LETTER, LINE = 6.0, 14.0
SIZES = [(1220.0, 370.0), (720.0, 520.0)]
REAL = {
    "kineto-h100-vit-inference/trace.json.gz": None,
    "nsys2024.2-a100-pyprof-markers/net.sqlite": None,
    "kineto-v100-resnet50-2021/trace.json.gz": "Tesla V100-SXM2-16GB",
}


def point(intensity: float, flops_per_s: float) -> Point:
    return Point(
        op="op", dir="fprop", kernel="kernel", bound=None, line=None, lines=1, efficiency=None,
        intensity=intensity, flops_per_s=flops_per_s, bytes_per_s=1, time_ns=1, share=0.1,
    )  # fmt: skip


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
            nearest = max(left, min(x, right)), max(bottom, min(y, top))
            assert dist((x, y), nearest) >= radius - 0.1
        for roof in roofs:
            flat = float(on.place(1.0, roof.flops_per_s / 1e12)[1])
            ridge = float(on.place(roof.ridge, 1.0)[0])
            assert right <= ridge or not bottom < flat < top
    for a, b in combinations(boxes, 2):
        assert a.right <= b.left or b.right <= a.left or a.top <= b.bottom or b.top <= a.bottom


@pytest.mark.few(2)
@pytest.mark.slow
@pytest.mark.parametrize("size", SIZES, ids=["page", "picture"])
@pytest.mark.parametrize("name", REAL)
def test_names_of_real_roofs_cover_no_point(
    name: str, size: tuple[float, float], captures: Path
) -> None:
    """In the sizes of the page and the picture."""
    chart = _chart(captures / name, REAL[name])
    assert chart.roofs
    radii = [4 + 18 * one.share**0.5 for one in chart.points]
    check(frame(chart.points, chart.roofs, *size), chart.points, radii, chart.roofs)


def test_a_point_where_a_name_would_be_moves_it() -> None:
    """The name is at the right end unless a large point is there."""
    roof = Roof(1e14, 1e12, "a roof with a name of some length")
    for rate, end in ((1e12, True), (1e14, False)):
        points = [point(2000, rate), point(1, 1e11)]
        on = frame(points, [roof], *SIZES[0])
        name = labels(on, points, [40, 4], [roof], LETTER, LINE)[0]
        assert (float(on.place(name.x, 1)[0]) > on.width - 10) == end
        check(on, points, [40, 4], [roof])


def test_points_are_drawn_in_tflop_per_second(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(roofline_picture, "_number", lambda _axes, _points: None)
    axes = MagicMock()
    roofline_picture._points(axes, [point(2.0, 3e12)])
    assert axes.scatter.call_args.args[:2] == ([2.0], [3.0])


RATES = st.floats(1e6, 1e16)


@given(
    st.lists(st.tuples(st.floats(1e-4, 1e4), RATES), min_size=1), st.lists(st.tuples(RATES, RATES))
)
def test_all_points_and_ridges_are_inside(
    places: list[tuple[float, float]], peaks: list[tuple[float, float]]
) -> None:
    """The axes contain all of them, and positions convert to values and back."""
    points, roofs = [point(*place) for place in places], [Roof(*peak, "roof") for peak in peaks]
    on = frame(points, roofs, *SIZES[1])
    inside = [(one.intensity, one.flops_per_s / 1e12) for one in points]
    inside += [(roof.ridge, float(height_of(roof, roof.ridge))) for roof in roofs]
    for value in inside:
        x, y = map(float, on.place(*value))
        assert 0 < x < on.width
        assert 0 < y < on.height
        assert on.value(x, y) == pytest.approx(value)
