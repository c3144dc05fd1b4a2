"""The page of several captures is the same from their sums as from all their rows."""

from collections.abc import Mapping
from dataclasses import replace
from functools import reduce
from pathlib import Path
from typing import Any

import pytest

from pyprof.analysis.report import ReportSums, _began_ns, _merge_names, report, summarise_report
from pyprof.analysis.summary.composition import summary
from pyprof.inputs import source
from pyprof.records.merging import merge_sums
from pyprof.render.page import figures
from pyprof.render.page.content import html
from pyprof.render.page.cross_filter import FilterData
from pyprof.render.page.parts.totals.summary import cards
from pyprof.render.page.tables import Sortable
from tests.analysis.captured import STEP_NS, capture
from tests.analysis.together import together
from tests.known import known
from tests.render.page import shown_parts

ALIKE = ("families", "kernels", "lines", "modules", "roofline", "unknown")
"""Parts that show of several captures what they show of all their rows as one."""


def check(files: list[str]) -> ReportSums:
    """Compare what was merged with what was found of all rows at once."""
    sources = [source.load(file) for file in files]
    merged = reduce(merge_sums, map(summarise_report, sources))
    whole = summarise_report(together(sources))
    found = [list(cards(summary(each.summary))) for each in (merged, whole)]
    assert found[0] == found[1]
    a, b = (FilterData(each.attributes) for each in (merged, whole))
    assert a.data() == b.data()
    assert merged.full_names.keys() == whole.full_names.keys()
    # a short name may have several full names
    parts_of_both = [shown_parts.shown(replace(each, full_names={})) for each in (merged, whole)]
    for name in ALIKE:
        assert parts_of_both[0].get(name) == parts_of_both[1].get(name)
    return merged


def test_full_names_of_captures_merge_the_same_in_any_order() -> None:
    a, b = {"gemm": "gemm<2>", "add": "add<1>"}, {"gemm": "gemm<1>", "relu": "relu<1>"}
    merged = {"gemm": "gemm<1>", "add": "add<1>", "relu": "relu<1>"}
    assert _merge_names(a, b) == _merge_names(b, a) == merged


def strip(sums: ReportSums) -> Mapping[str, Any]:
    return figures.strip(known(report(sums).strips))


@pytest.mark.slow
def test_each_rank_has_its_strips_on_its_own_clock(tmp_path: Path) -> None:
    """The same rows as alone, with its GPU's name, not shifted by its host's clock."""
    files = [
        str(capture(tmp_path / f"{rank}.sqlite", steps=3, slower=rank + 1, clock_ns=rank * 10**12))
        for rank in range(2)
    ]
    found, alone = (
        strip(check(files)),
        [strip(summarise_report(source.load(file))) for file in files],
    )
    names = [f"step {step}" for step in range(3)]
    assert [label.rpartition(" (")[0] for label in found["names"]] == [
        f"GPU 0, process {pid}: {name}" for pid in ("1", "1 (2)") for name in names
    ]
    assert found["lengths"] == [*alone[0]["lengths"], *alone[1]["lengths"]]
    assert found["left"].tolist() == [*alone[0]["left"], *alone[1]["left"]]
    assert max(found["lengths"]) <= STEP_NS


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
    sums = reduce(merge_sums, [summarise_report(source.load(file))] * 10)
    drawn = strip(sums)
    assert [label.split("step ")[1][0] for label in drawn["names"]] == ["0", "1", "2"] * 8
    assert known(report(sums).strips).steps_left_out == 17
    text = html(report(sums))
    assert "Left out: 2 further GPUs" in text
    assert "Left out: 17 further steps" in text


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
    found = summarise_report(source.load(file))
    answer = summary(found.summary)
    total_ns = answer.known_cost.total_ns
    made, lines = shown_parts.shown(found), found.lines
    sums = {
        "ops": _total_ns(made["ops"]["ops"], "time"),
        "kernels": _total_ns(made["kernels"]["kernels"], "time"),
        "families": sum(answer.families_ns.values()),
        "phases": sum(part.time_ns for part in answer.parts),
        "modules": made["modules"]["icicle"]["length"][0],
        "lines": lines.total_ns,
        "facts": FilterData(found.attributes).data()["total_ns"],
    }
    assert sums == dict.fromkeys(sums, total_ns)
    if "lines" in made:
        assert _total_ns(made["lines"]["lines"], "time") + lines.unknown_ns == total_ns
        assert not _total_ns(made["lines"]["callers"], "time")
