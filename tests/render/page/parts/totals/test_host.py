"""Ops on the host, on the page."""

from dataclasses import replace
from pathlib import Path

from pyprof.analysis.report import report
from pyprof.render.page import parts
from pyprof.render.page.cross_filter import FilterData
from tests.analysis.captured import capture
from tests.known import known
from tests.render.page.shown_parts import sums_of


def test_the_hosts_time_is_that_of_its_calls(tmp_path: Path) -> None:
    """Self times add up to the time in ops; records have no such section."""
    answer = report(sums_of(capture(tmp_path / "net.sqlite", steps=3)))
    page = parts.Page(answer, FilterData(answer.attributes), None)
    section = known(parts.parts()["host"].section(page))
    table, host = section["host"], page.answer.host_ops
    assert host is not None
    assert {row[0].text for row in table.rows} == {op.op for op in host}
    assert sum(row[1].number for row in table.rows) == sum(op.self_ns for op in host)
    without = replace(answer, summary=replace(page.answer, host_ops=None))
    assert parts.parts()["host"].section(replace(page, report=without)) is None
