"""The page of several captures: made of their sums, or of all their rows, it shows the same."""

import itertools
from collections.abc import Mapping
from dataclasses import replace
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pyprof.analysis.summary.overview import summary
from pyprof.answers.parts import KnownCost, UnknownCost
from pyprof.answers.summary_answer import StepTimes as Steps
from pyprof.inputs import source
from pyprof.records.merging import merge_sums
from pyprof.render.page import figures, parts, sections
from pyprof.render.page.content import Content, html, summarise_page
from pyprof.render.page.cross_filter import Selectable
from pyprof.render.page.sections import Sortable
from pyprof.render.page.step_times import StepTimes
from pyprof.render.page.strips import Strip
from pyprof.render.text.formatting import duration
from tests.analysis.captured import STEP_NS, capture
from tests.analysis.together import together
from tests.answers.checked import ask
from tests.builders import Work, nsys_db
from tests.commands import run

REAL = (
    "kineto-v100-resnet-ddp/trace.json.gz",
    "nsys2024.2-a100-pyprof-markers/net.sqlite",
    "nsys2026.2-h100x2-fsdp/net.sqlite",
    "nvprof-v100-apex/net.sql",
)


ALIKE = ("families", "kernels", "lines", "modules", "roofline", "unknown")
"""Parts that show of several captures what they show of all their rows as one."""


def check(files: list[str]) -> Content:
    """Compare what was merged with what was found of all rows at once."""
    sources = [source.load(file) for file in files]
    merged, whole = (
        reduce(merge_sums, map(summarise_page, sources)),
        summarise_page(together(sources)),
    )
    assert list(sections.cards(summary(merged.summary))) == list(
        sections.cards(summary(whole.summary))
    )
    a, b = (Selectable(content.facts) for content in (merged, whole))
    assert a.data() == b.data()
    names = [content.parts["kernels"].full_names for content in (merged, whole)]
    assert names[0].keys() == names[1].keys()
    for name in ALIKE:
        assert _shown(name, merged, a) == _shown(name, whole, b)
    return merged


def _shown(name: str, content: Content, selectable: Selectable) -> object:
    """Give what a part shows, with the same full name for all kernels of a short one."""
    data: Any = content.parts.get(name)
    if name == "kernels":
        data = replace(data, full_names={})
    return parts.parts()[name].section(parts.Page(summary(content.summary), selectable, data, None))


@pytest.mark.slow
@pytest.mark.parametrize("pair", [*itertools.pairwise(REAL)], ids=str)
def test_pages_of_real_captures_add_up(pair: tuple[str, str], captures: Path) -> None:
    """Captures of different tools and machines."""
    check([str(captures / file) for file in pair])


def strip(found: Content) -> Strip:
    strips = found.parts["steps"].strips
    assert strips is not None
    drawn: Strip = strips.strip(summary(found.summary).steps)
    return drawn


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
    found = reduce(merge_sums, [summarise_page(source.load(file))] * 10)
    drawn = strip(found)
    assert [label.split("step ")[1][0] for label in drawn.labels] == ["0", "1", "2"] * 8
    assert drawn.steps_left_out == 17
    text = html(found)
    assert "2 further GPUs are left out" in text
    assert "17 further steps are left out" in text


def shown(found: Content, sources: Path | None = None) -> dict[str, Mapping[str, Any]]:
    selectable = Selectable(found.facts)
    made = {
        name: part.section(
            parts.Page(summary(found.summary), selectable, found.parts.get(name), sources)
        )
        for name, part in parts.parts().items()
    }
    return {name: section for name, section in made.items() if section is not None}


def _total_ns(table: Sortable, column: str) -> int:
    place = [heading.name or heading.title for heading in table.columns].index(column)
    return table.left_out_ns + sum(int(row[place].number or 0) for row in table.rows)


@pytest.mark.parametrize(
    "name",
    [
        "nsys2024.2-a100-pyprof-markers/net.sqlite",
        "nsys2026.2-h100x2-fsdp/net.sqlite",
        pytest.param("kineto-v100-resnet50-2021/trace.json.gz", marks=pytest.mark.slow),
        "nvprof-v100-apex/net.dict",
        "generated",
    ],
)
def test_all_parts_say_the_same_of_one_time(
    request: pytest.FixtureRequest, tmp_path: Path, name: str
) -> None:
    """Ops, kernels, families, modules, lines and facts: each adds up to the GPU time."""
    file = (
        str(capture(tmp_path / "net.sqlite", steps=2))
        if name == "generated"
        else str(request.getfixturevalue("captures") / name)
    )
    found = summarise_page(source.load(file))
    answer = summary(found.summary)
    total_ns = answer.known_cost.total_ns
    made, lines = shown(found), found.parts["lines"]
    sums = {
        "ops": _total_ns(made["ops"]["ops"], "time"),
        "kernels": _total_ns(made["kernels"]["kernels"], "time"),
        "families": sum(answer.families_ns.values()),
        "phases": sum(part.time_ns for part in answer.parts),
        "modules": made["modules"]["icicle"]["length"][0],
        "lines": lines.total_ns,
        "facts": Selectable(found.facts).data()["total_ns"],
    }
    assert sums == dict.fromkeys(sums, total_ns)
    if "lines" in made:
        assert _total_ns(made["lines"]["lines"], "time") + lines.unknown_ns == total_ns
        assert not _total_ns(made["lines"]["callers"], "time")


def test_each_gpu_adds_up_to_the_headline(captures: Path) -> None:
    """Busy and idle time of the cards are the sums of the GPUs' table, and of the causes."""
    found = summarise_page(source.load(str(captures / "nsys2026.2-h100x2-fsdp/net.sqlite")))
    answer = summary(found.summary)
    assert answer.devices is not None
    cards = {title: value for title, value, _ in sections.cards(answer)}
    idle_ns = sum(device.idle_ns for device in answer.devices)
    assert cards["GPU idle"] == duration(idle_ns)
    assert idle_ns == sum(sum(device.idle_by_cause_ns.values()) for device in answer.devices)
    table = sections.devices(answer)
    assert [name for name, _ in table] == ["GPU 0, process 144", "GPU 1, process 145"]
    assert table[0][1][:4] == ["300 ms", "91.3 %", "274 ms", "26.0 ms"]


def test_lines_are_ranked_by_their_own_time(tmp_path: Path) -> None:
    """A line that only calls, as main's is, stands apart, whatever its callees take."""
    made = shown(summarise_page(source.load(str(capture(tmp_path / "net.sqlite", slower=4)))))
    rows = {name: [(row[0].text, row[1].text, row[3].text) for row in made["lines"][name].rows]
            for name in ("lines", "callers")}  # fmt: skip
    assert rows == {
        "lines": [("model.py:12", "800 ns", "800 ns"), ("model.py:30", "300 ns", "300 ns")],
        "callers": [("train.py:7", "0 ns", "1.10 us")],
    }


def test_steps_by_rank_are_those_of_each_alone(tmp_path: Path) -> None:
    """A slower rank's row is its own; the trend is that of the slower one in each step."""
    files = [
        str(capture(tmp_path / f"rank{rank}.sqlite", steps=3, slower=slower))
        for rank, slower in enumerate((1, 4))
    ]
    alone = [summarise_page(source.load(file)) for file in files]
    steps = shown(reduce(merge_sums, alone))["steps"]
    times = steps["heat"]["measures"]
    assert times["step"] == [[*summary(found.summary).steps.duration_ns] for found in alone]
    assert times["computing"] == [[200 + 300 + 50] * 3, [4 * 200 + 300 + 50] * 3]
    assert steps["trend"]["longest"].tolist() == np.max(times["step"], axis=0).tolist()
    assert shown(alone[0])["steps"]["heat"] is None


_NOTHING: tuple[float | None, ...] = (None,) * 15
_STEPS = Steps(
    count=15, origin="ranges", guessed=False, warm_up_count=11, covered_share=1.0, first=10,
    last=14, mean_ns=4.0, median_ns=3.0, duration_ns=(0,) * 10 + (5, 1, 2, 9, 3), mfu=_NOTHING,
    hfu=_NOTHING, mbu=_NOTHING, are_chosen=True,
)  # fmt: skip
"""The last five of fifteen steps are chosen, and the first of them is slow."""


def test_very_many_steps_are_grouped(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each bar is the longest of its steps; a rank without a step leaves a hole."""
    monkeypatch.setattr(figures, "_MOST_COLUMNS", 3)
    trend = figures.trend(_STEPS)
    assert (trend["longest"].tolist(), trend["group"], trend["first"]) == ([5, 9, 3], 2, 10)
    assert trend["step"] == [10, 13, 14]
    durations = (np.array([5.0, 1, 2, 9, 3]), np.array([np.nan, np.nan, 4]))
    times = StepTimes("step", ("a", "b"), durations, durations)
    assert figures.heat_map(times, 0, 5)["measures"]["step"] == [[5, 9, 3], [None, 4, None]]


def test_shares_of_the_peak_are_those_of_the_steps_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a group its longest step's; a line for what any step tells, HFU only where it differs."""
    monkeypatch.setattr(figures, "_MOST_COLUMNS", 3)
    mfu, hfu = (0.1, 0.2, 0.3, 0.4, None), (0.1, 0.2, 0.3, 0.5, None)
    none = (None,) * 10
    steps = replace(_STEPS, mfu=none + mfu, hfu=none + hfu)
    trend = figures.trend(steps)
    assert trend["shares"] == {"MFU": [10, 40, None], "HFU": [10, 50, None]}
    drawn = figures.shares_of_peak(trend)
    assert drawn is not None
    assert (drawn["label"], drawn["step"], [*drawn["colours"]]) == (
        "MFU and HFU of each step, percent of the peak", [10, 13, 14], ["MFU", "HFU"]
    )  # fmt: skip
    assert figures.shares_of_peak(figures.trend(_STEPS)) is None
    alike = figures.trend(replace(steps, hfu=steps.mfu, mbu=none + mfu))
    assert alike["shares"] == {"MFU": [10, 40, None], "MBU": [10, 40, None]}


@pytest.mark.slow
def test_steps_come_as_near_the_peak_as_the_json_says(captures: Path) -> None:
    """And as the summary says of the slowest ones."""
    trace = captures / "kineto-v100-resnet50-2021" / "trace.json.gz"
    found = summarise_page(source.load(str(trace)))
    drawn = shown(found)["steps"]["shares"]["series"]
    steps = ask("summary", trace)["steps"]
    assert drawn == {"MFU": [round(100 * mfu, 3) for mfu in steps["mfu"]]}
    assert steps["hfu"] == steps["mfu"]
    assert steps["mbu"] == [None] * steps["count"]
    slowest = int(np.argmax(steps["duration_ns"]))
    said = run("summary", "-qv", trace).stdout
    assert f"steps {slowest} (182 ms, MFU {100 * steps['mfu'][slowest]:.1f} %)" in said


def test_phases_of_serving_are_those_of_the_summary(captures: Path) -> None:
    """With tokens and rate, as it spells them."""
    trace = captures / "kineto-mi300x-vllm-piecewise-graph" / "replay.pt.trace.json.gz"
    part = shown(summarise_page(source.load(str(trace))))["summary"]
    (row,) = part["serving"]
    lines = [line.split() for line in run("summary", "-q", trace).stdout.splitlines()]
    assert [*part["serving_header"]] in lines
    assert row in lines


def test_an_unknown_cost_is_explained_with_its_remedy() -> None:
    """Reasons of most time first; the rest together."""
    reasons = [UnknownCost("shapes not recorded", 500, 3)]
    reasons += [UnknownCost(f"unknown op f{n}", n, 1) for n in range(19, -1, -1)]
    table = sections.unknown(KnownCost("GPU", 1000, 0.5, None, tuple(reasons)))
    assert table[0] == (
        "shapes not recorded", "500 ns", "50.0", "3",
        "capture with pyprof capture, or with record_shapes=True",
    )  # fmt: skip
    assert table[1][0] == "unknown op f19"
    assert "docs/own-ops.md" in table[1][4]
    assert len(table) == 13
    assert table[-1][:4] == ("9 other reasons", "36 ns", "3.6", "9")


def test_steps_that_are_guessed_are_said_to_be(tmp_path: Path) -> None:
    """In the head, on the card and beside the figure: repetition may be of layers."""
    net = nsys_db(
        tmp_path / "net.sqlite",
        [
            Work(name, (10_000 * n + 1000 * k, 10_000 * n + 1000 * k + 500), None)
            for n in range(12)
            for k, name in enumerate(("a", "b", "c", "d"))
        ],
    )
    page = html(summarise_page(source.load(str(net))))
    assert page.count("(guessed: may be layers of a step)") >= 2


def test_the_hosts_time_is_that_of_its_calls(tmp_path: Path) -> None:
    """Own times add up to the time in ops; of records without a capture there is no section."""
    content = summarise_page(source.load(str(capture(tmp_path / "net.sqlite", steps=3))))
    page = parts.Page(summary(content.summary), Selectable(content.facts), None, None)
    section = parts.parts()["host"].section(page)
    assert section is not None
    table, host = section["host"], page.answer.host_ops
    assert host is not None
    assert {row[0].text for row in table.rows} == {op.op for op in host}
    assert sum(row[1].number for row in table.rows) == sum(op.self_ns for op in host)
    without = replace(page.answer, host_ops=None)
    assert parts.parts()["host"].section(replace(page, answer=without)) is None


def test_the_page_says_what_advice_looked_at(tmp_path: Path) -> None:
    """As the summary does: a kernel without an op cannot be classified by one."""
    file = nsys_db(tmp_path / "net.sqlite", [Work("my_kernel", (1000, 9000), call=(100, 900))])
    page = html(summarise_page(source.load(str(file))))
    assert "Not looked at: recomputation, distance from the peaks" in page
    assert "the op is unknown for 100 % of kernel time" in page
