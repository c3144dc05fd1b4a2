"""The page of several captures: made of their sums, or of all their rows, it shows the same."""

from __future__ import annotations

import itertools
from functools import reduce
from typing import TYPE_CHECKING

import pytest

from pyprof.inputs import source
from pyprof.report.analysis import roofline
from pyprof.report.render.page import icicle, sections
from pyprof.report.render.page.content import html, merge_pages, summarise_page
from tests.report.captured import STEP_NS, capture
from tests.report.together import together

if TYPE_CHECKING:
    from pathlib import Path

    from pyprof.report.render.page.content import Content
    from pyprof.report.render.page.timeline import Strip

REAL = (
    "kineto-v100-resnet-ddp/trace.json.gz",
    "nsys2024.2-a100-pyprof-markers/net.sqlite",
    "nsys2026.2-h100x2-fsdp/net.sqlite",
    "nvprof-v100-apex/net.sql",
)


def check(files: list[str]) -> Content:
    """Compare what was merged with what was found of all rows at once."""
    sources = [source.load(file) for file in files]
    merged, whole = (
        reduce(merge_pages, map(summarise_page, sources)),
        summarise_page(together(sources)),
    )
    assert list(sections.cards(merged.brief)) == list(sections.cards(whole.brief))
    assert sections.kernels(merged.kernels, {}) == sections.kernels(whole.kernels, {})
    assert merged.full_names.keys() == whole.full_names.keys()
    assert sections.line_table(merged.lines) == sections.line_table(whole.lines)
    assert icicle.boxes(icicle.ops(merged.ops), "") == icicle.boxes(icicle.ops(whole.ops), "")
    assert roofline.points(merged.achieved, 400) == roofline.points(whole.achieved, 400)
    assert roofline.roofs(merged.achieved, 4) == roofline.roofs(whole.achieved, 4)
    return merged


@pytest.mark.slow
@pytest.mark.parametrize("pair", [*itertools.combinations(REAL, 2)], ids=str)
def test_pages_of_real_captures_add_up(pair: tuple[str, str], captures: Path) -> None:
    """Captures of different tools and machines."""
    check([str(captures / file) for file in pair])


def strip(found: Content) -> Strip:
    """Give what is drawn."""
    assert found.strips is not None
    return found.strips.strip(found.brief.steps)


def test_each_rank_has_its_strips_on_its_own_clock(tmp_path: Path) -> None:
    """The same rows as alone, under its GPU's name; not moved by what its host's clock shows."""
    files = [
        str(capture(tmp_path / f"{rank}.sqlite", steps=3, slower=rank + 1, clock_ns=rank * 10**12))
        for rank in range(2)
    ]
    found, alone = strip(check(files)), [strip(summarise_page(source.load(file))) for file in files]
    names = [f"step {step}" for step in range(3)]
    assert [label.rpartition(" (")[0] for label in found.labels] == [
        f"GPU 0, process {pid}: {name}" for pid in ("1", "1 (2)") for name in names
    ]
    assert found.length_ns == [*alone[0].length_ns, *alone[1].length_ns]
    assert found.left_ns.tolist() == [*alone[0].left_ns, *alone[1].left_ns]
    assert max(found.length_ns) <= STEP_NS


def test_of_many_ranks_the_first_are_drawn(tmp_path: Path) -> None:
    """Eight GPUs, three steps each: the first, and the two that were slowest; all are counted."""
    file = str(capture(tmp_path / "net.sqlite", steps=20))
    found = reduce(merge_pages, [summarise_page(source.load(file))] * 10)
    drawn = strip(found)
    assert [label.split("step ")[1][0] for label in drawn.labels] == ["0", "1", "2"] * 8
    assert drawn.steps_left_out == 17
    text = html(found)
    assert "2 further GPUs are left out" in text
    assert "17 further steps are left out" in text
