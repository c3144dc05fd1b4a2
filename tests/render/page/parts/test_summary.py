"""Phases of the page."""

from pathlib import Path

import pytest

from pyprof.inputs import source
from pyprof.render.page.content import summarise_page
from tests.commands import run
from tests.render.page import shown_parts


@pytest.mark.long
def test_phases_of_serving_are_those_of_the_summary(captures: Path) -> None:
    """With tokens and rate, formatted alike."""
    trace = captures / "kineto-mi300x-vllm-piecewise-graph" / "replay.pt.trace.json.gz"
    part = shown_parts.shown(summarise_page(source.load(str(trace))))["summary"]
    (row,) = part["serving"]
    lines = [line.split() for line in run("summary", "-q", trace).stdout.splitlines()]
    assert [*part["serving_header"]] in lines
    assert row in lines
