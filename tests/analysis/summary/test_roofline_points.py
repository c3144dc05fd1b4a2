"""Points of a roofline, beside measured ones."""

from pathlib import Path

import pytest

from pyprof.analysis.summary import roofline_points
from pyprof.analysis.summary.roofline_points import achieved, points
from pyprof.answers.page.roofline_answer import Chart
from pyprof.inputs import source
from pyprof.inputs.source import load
from pyprof.prof.columns.standard import COLUMNS
from pyprof.prof.table import Override
from pyprof.render.page import figures
from pyprof.render.text.formatting import short_line
from tests.analysis import product
from tests.commands import run


@pytest.mark.slow
def test_the_measured_point_of_the_roofline(tmp_path: Path) -> None:
    """Twice the traffic is half the intensity; it is drawn beside the modelled point."""
    target = product.parsed(tmp_path)
    (point,) = points(achieved(load(str(target)).table, None), 9)
    assert point.intensity == pytest.approx(product.FLOPS / product.MIN_BYTES)
    assert point.measured == pytest.approx(product.FLOPS / product.MIN_BYTES / 2)
    (modelled,) = points(achieved(load(str(tmp_path / "a.sqlite")).table, None), 9)
    assert modelled.measured is None
    assert run("roofline", "-q", target, "-o", tmp_path / "a.svg").code == 0
    assert "measured" in (tmp_path / "a.svg").read_text()
    assert run("roofline", "-q", target, "-o", tmp_path / "a.html").code == 0
    assert "by measured DRAM traffic" in (tmp_path / "a.html").read_text()


def _chart(path: Path, override: Override | None = None, limit: int = 100) -> Chart:
    return roofline_points.summarise_roofline(source.load(str(path), override)).chart(limit)


def test_a_point_is_the_rate_of_the_rows_that_it_stands_for(net: Path) -> None:
    """Intensity and rate are ratios of sums; shares add up to the summary's."""
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
    """The roof at a point's intensity is the minimum time of its rows."""
    chart = _chart(net, Override(peak_flops=1e15, peak_bandwidth=1e13))
    (roof,) = chart.roofs
    assert (roof.flops_per_s, roof.bytes_per_s, roof.ridge) == (1e15, 1e13, 100)
    for point in chart.points:
        assert point.flops_per_s <= min(roof.flops_per_s, point.intensity * roof.bytes_per_s)


def test_a_point_has_its_line_and_efficiency(net: Path) -> None:
    """The line with most of its time; prof's efficiency of its rows, weighted by time."""
    table = source.load(str(net)).table
    names, kernels, lines = (
        COLUMNS[name].values(table).to_pylist() for name in ("op", "kernel", "line")
    )
    share = COLUMNS["eff"].values(table).to_pylist()
    for point in _chart(net).points:
        rows = [row for row, name in enumerate(zip(names, kernels, strict=True))
                if name == (point.op, point.kernel)]  # fmt: skip
        assert point.efficiency == pytest.approx(
            sum(share[row] * table.duration_ns[row] for row in rows)
            / sum(table.duration_ns[row] for row in rows) / 100
        )  # fmt: skip
        assert {lines[row] for row in rows} == {point.line}
        tip = dict(figures._tip(point))
        assert tip["line"] == short_line(point.line)
        assert tip["efficiency"].endswith(" %")


def test_the_longest_come_first_and_are_kept(net: Path) -> None:
    every = _chart(net).points
    assert [point.share for point in every] == sorted((p.share for p in every), reverse=True)
    assert _chart(net, limit=2).points == every[:2]
