"""The page of several captures is the same from their sums as from all their rows."""

from dataclasses import replace
from functools import reduce
from pathlib import Path
from typing import Any

import pytest

from pyprof.analysis.summary.overview import summary
from pyprof.inputs import source
from pyprof.records.merging import merge_sums
from pyprof.render.page import parts
from pyprof.render.page.content import Content, _began_ns, html, summarise_page
from pyprof.render.page.cross_filter import FilterData
from pyprof.render.page.parts.summary import cards
from pyprof.render.page.strips import Strip
from pyprof.render.page.tables import Sortable
from tests.analysis.captured import STEP_NS, capture
from tests.analysis.together import together
from tests.known import known
from tests.render.page import shown_parts

ALIKE = ("families", "kernels", "lines", "modules", "roofline", "unknown")
"""Parts that show of several captures what they show of all their rows as one."""


def check(files: list[str]) -> Content:
    """Compare what was merged with what was found of all rows at once."""
    sources = [source.load(file) for file in files]
    merged = reduce(merge_sums, map(summarise_page, sources))
    whole = summarise_page(together(sources))
    found = [list(cards(summary(each.summary))) for each in (merged, whole)]
    assert found[0] == found[1]
    a, b = (FilterData(content.facts) for content in (merged, whole))
    assert a.data() == b.data()
    names = [content.parts["kernels"].full_names for content in (merged, whole)]
    assert names[0].keys() == names[1].keys()
    for name in ALIKE:
        assert _shown(name, merged, a) == _shown(name, whole, b)
    return merged


def _shown(name: str, content: Content, selectable: FilterData) -> object:
    """Return what a part shows, with the same full name for all kernels of a short one."""
    data: Any = content.parts.get(name)
    if name == "kernels":
        data = replace(data, full_names={})
    return parts.parts()[name].section(parts.Page(summary(content.summary), selectable, data, None))


def strip(found: Content) -> Strip:
    strips = known(found.parts["steps"].strips)
    drawn: Strip = strips.strip(summary(found.summary).steps)
    return drawn


@pytest.mark.slow
def test_each_rank_has_its_strips_on_its_own_clock(tmp_path: Path) -> None:
    """The same rows as alone, with its GPU's name, not shifted by its host's clock."""
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


def test_a_note_is_called_one_once(tmp_path: Path) -> None:
    content = summarise_page(source.load(str(capture(tmp_path / "net.sqlite"))))
    assert ">Note: all is well<" in html(replace(content, warnings=("note: all is well",)))


@pytest.mark.parametrize(("start", "began_ns"), [(10**15, ()), (17 * 10**17, (17 * 10**17,))])
def test_a_page_is_dated_only_by_a_clock_that_counts_from_1970(
    tmp_path: Path, start: int, began_ns: tuple[int, ...]
) -> None:
    path = tmp_path / "net.dict"
    times = f'"kDuration": 5, "start": {start}, "end": {start + 5}'
    path.write_text(f'{{"kShortName": "k", "kLongName": "k", {times}}}')
    assert _began_ns(source.load(str(path))) == began_ns


def test_of_many_ranks_the_first_are_drawn(tmp_path: Path) -> None:
    """The first of eight GPUs with three steps each, and the two slowest; all are counted."""
    file = str(capture(tmp_path / "net.sqlite", steps=20))
    found = reduce(merge_sums, [summarise_page(source.load(file))] * 10)
    drawn = strip(found)
    assert [label.split("step ")[1][0] for label in drawn.labels] == ["0", "1", "2"] * 8
    assert drawn.steps_left_out == 17
    text = html(found)
    assert "2 further GPUs are left out" in text
    assert "17 further steps are left out" in text


def _total_ns(table: Sortable, column: str) -> int:
    place = [heading.name or heading.title for heading in table.columns].index(column)
    return table.left_out_ns + sum(int(row[place].number or 0) for row in table.rows)


@pytest.mark.few(2)
@pytest.mark.parametrize(
    "name",
    [
        "nsys2024.2-a100-pyprof-markers/net.sqlite",
        "nsys2026.2-h100x2-fsdp/net.sqlite",
        pytest.param("kineto-v100-resnet50-2021/trace.json.gz", marks=pytest.mark.long),
        "nvprof-v100-apex/net.dict",
        "generated",
    ],
)
def test_all_parts_add_up_to_the_gpu_time(
    request: pytest.FixtureRequest, tmp_path: Path, name: str
) -> None:
    file = (
        str(capture(tmp_path / "net.sqlite", steps=2))
        if name == "generated"
        else str(request.getfixturevalue("captures") / name)
    )
    found = summarise_page(source.load(file))
    answer = summary(found.summary)
    total_ns = answer.known_cost.total_ns
    made, lines = shown_parts.shown(found), found.parts["lines"]
    sums = {
        "ops": _total_ns(made["ops"]["ops"], "time"),
        "kernels": _total_ns(made["kernels"]["kernels"], "time"),
        "families": sum(answer.families_ns.values()),
        "phases": sum(part.time_ns for part in answer.parts),
        "modules": made["modules"]["icicle"]["length"][0],
        "lines": lines.total_ns,
        "facts": FilterData(found.facts).data()["total_ns"],
    }
    assert sums == dict.fromkeys(sums, total_ns)
    if "lines" in made:
        assert _total_ns(made["lines"]["lines"], "time") + lines.unknown_ns == total_ns
        assert not _total_ns(made["lines"]["callers"], "time")
