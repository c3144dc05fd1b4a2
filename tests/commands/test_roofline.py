"""`pyprof roofline`: ops as points under the roofs of their device, in every format."""

import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from pyprof.analysis.summary import roofline_points
from pyprof.analysis.summary.roofline_points import Chart
from pyprof.inputs import source
from pyprof.prof.columns.standard import COLUMNS
from pyprof.prof.table import Override
from pyprof.render.page import figures
from pyprof.render.text.formatting import short_line
from tests.analysis.browser import browser, drawn, errors, requests
from tests.analysis.captured import capture
from tests.commands import run

HOSTILE = "<script>alert(1)</script>$x_2$ \N{GREEK SMALL LETTER MU}"


@pytest.fixture
def net(tmp_path: Path) -> Path:
    """Return a capture of an A100 with products and elementwise ops."""
    return capture(tmp_path / "net.sqlite", steps=4)


def _chart(path: Path, override: Override | None = None, limit: int = 100) -> Chart:
    return roofline_points.summarise_roofline(source.load(str(path), override)).chart(limit)


def test_a_point_is_the_rate_of_the_rows_that_it_stands_for(net: Path) -> None:
    """Its intensity and rate are sums over sums; shares add up to what the summary says."""
    chart = _chart(net)
    table = source.load(str(net)).table
    drawn_rows = (table.costs.flops > 0) & (table.costs.bytes > 0)
    share = table.duration_ns[drawn_rows].sum() / table.duration_ns.sum()
    assert sum(point.share for point in chart.points) == pytest.approx(share)
    assert f"{len(chart.points)} ops, {100 * share:.1f} % of GPU time" == chart.summary
    by_hand = table.costs.flops[drawn_rows].sum()
    assert sum(
        point.flops_per_s * point.share for point in chart.points
    ) * table.duration_ns.sum() / 1e9 == pytest.approx(by_hand)  # fmt: skip


def test_a_point_under_its_roof_is_no_more_than_the_eff_of_its_rows(net: Path) -> None:
    """The roof at a point's intensity is the least time that its rows need."""
    chart = _chart(net, Override(peak_flops=1e15, peak_bandwidth=1e13))
    (roof,) = chart.roofs
    assert (roof.flops_per_s, roof.bytes_per_s, roof.ridge) == (1e15, 1e13, 100)
    for point in chart.points:
        assert point.flops_per_s <= min(roof.flops_per_s, point.intensity * roof.bytes_per_s)


def test_a_point_tells_its_line_and_efficiency(net: Path) -> None:
    """The line of most of its time; the efficiency that prof gives its rows, weighed by time."""
    table = source.load(str(net)).table
    names, kernels, lines = (
        COLUMNS[name].values(table).to_pylist() for name in ("op", "kernel", "line")
    )
    share = COLUMNS["eff"].values(table).to_pylist()
    for point in _chart(net).points:
        rows = [
            row
            for row in range(len(names))
            if (names[row], kernels[row]) == (point.op, point.kernel)
        ]
        assert point.efficiency == pytest.approx(
            sum(share[row] * table.duration_ns[row] for row in rows)
            / sum(table.duration_ns[row] for row in rows) / 100
        )  # fmt: skip
        assert {lines[row] for row in rows} == {point.line}
        tip = dict(figures._tip(point))
        assert tip["line"] == short_line(point.line)
        assert tip["efficiency"].endswith(" %")


def test_the_longest_come_first_and_are_kept(net: Path) -> None:
    """--top N leaves the N of most time."""
    every = _chart(net).points
    assert [point.share for point in every] == sorted((p.share for p in every), reverse=True)
    assert _chart(net, limit=2).points == every[:2]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("suffix", "magic"), [("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF")]
)
def test_pictures_are_what_their_suffix_says_and_always_the_same(
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


def test_the_svg_names_device_roofs_and_ops(net: Path, tmp_path: Path) -> None:
    """Text stays text, also text that looks like markup or a formula."""
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


def test_the_page_opens_without_network_and_draws(net: Path, tmp_path: Path) -> None:
    """In a real browser: no error, no request but its own file, a figure of some height."""
    target = tmp_path / "net.html"
    assert run("roofline", net, "-o", target).code == 0
    with browser(tmp_path / "profile") as driver:
        drawn(driver, target)
        assert errors(driver) == []
        assert [url.rpartition("/")[2] for url in requests(driver)] == ["net.html"]
        height = "return document.querySelector('.figure').clientHeight"
        assert int(driver.execute_script(height)) > 300


def test_without_any_peak_there_are_points_and_no_roof(net: Path, tmp_path: Path) -> None:
    """A card that nobody knows has no roof; the summary says how to give one."""
    pytest.importorskip("matplotlib")
    text = tmp_path / "net.dict"
    assert run("parse", net, "-o", text).code == 0
    text.write_text(text.read_text().replace("NVIDIA A100-SXM4-80GB", "NVIDIA B9000"))
    done = run("roofline", text, "-o", tmp_path / "net.html")
    assert done.code == 0
    assert "--peak-flops" in done.stderr


def test_what_a_picture_lacks_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One line that names what to install, before anything is read, and no file."""
    for name in [*sys.modules, "matplotlib"]:
        if name.partition(".")[0] == "matplotlib":
            monkeypatch.setitem(sys.modules, name, None)
    done = run("roofline", tmp_path / "not.there", "-o", tmp_path / "net.png")
    assert done.code == 1
    assert done.stderr == "pyprof: pictures need matplotlib: pip install matplotlib\n"
    assert not (tmp_path / "net.png").exists()


@pytest.mark.parametrize("target", ["net", "net.jpg", "-"])
def test_a_format_that_it_cannot_write_is_wrong_usage(net: Path, target: str) -> None:
    """Exit code 2; the formats are named."""
    done = run("roofline", net, "-o", target)
    assert done.code == 2
    assert ".png, .svg, .pdf, .html" in " ".join(done.stderr.split())


def test_a_capture_without_costs_says_so(captures: Path, tmp_path: Path) -> None:
    """Exit code 1, one line, and no file."""
    target = tmp_path / "net.png"
    done = run("roofline", captures / "nsys2026.2-h100x2-fsdp" / "net.sqlite", "-o", target)
    assert (done.code, done.stdout, target.exists()) == (1, "", False)
    assert "no op in this file has known FLOPs and bytes" in done.stderr
