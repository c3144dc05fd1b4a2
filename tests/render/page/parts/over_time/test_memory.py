"""Memory on the page: the figures agree with `pyprof memory` and the summary."""

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from pyprof.answers.memory_answer import RankMemory
from pyprof.quantities import DASH
from pyprof.render.page.parts.over_time.memory import _rank
from pyprof.render.page.tables import Cell
from tests.allocations import built, traces
from tests.analysis.browser import browser, drawn, errors
from tests.analysis.captured import capture
from tests.answers.checked import ask
from tests.commands import refused, run
from tests.render.text.test_memory_brief import trace_of_memory

pytest.importorskip("jinja2")


def _page(target: Path, *arguments: str | Path) -> str:
    done = run("report", *arguments, "-o", target)
    assert done.code == 0, done.stderr
    return target.read_text()


def _figure(page: str, name: str) -> dict[str, Any]:
    found = re.search(rf'data-figure="figure-{name}">(.*?)</script>', page)
    assert found
    figure: dict[str, Any] = json.loads(found[1])
    return figure


@pytest.mark.slow
def test_a_trace_with_memory_events(tmp_path: Path) -> None:
    """The peak is that of all other reports; folders are left out."""
    trace = trace_of_memory(tmp_path / "net.json", recorded=True)
    page = _page(tmp_path / "x.html", trace)
    course = _figure(page, "memory")
    highest, in_summary = ask("memory", trace)["devices"][0], ask("summary", trace)["memory"]
    assert max(course["total"]) == course["peak_bytes"] == highest["peak_bytes"]
    assert in_summary["peak_bytes"] == course["peak_bytes"]
    held = {group["name"] or "unknown": group["bytes"] for group in highest["by"]["category"]}
    place = course["x"].index(course["peak"])
    at_peak = dict(zip(course["names"], (each[place] for each in course["bytes"]), strict=True))
    assert Counter(at_peak) == Counter(held)  # in which names without bytes do not matter
    silent = trace_of_memory(tmp_path / "other.json", recorded=False)
    assert 'id="title-memory"' not in _page(tmp_path / "y.html", silent)


@pytest.mark.slow
def test_a_snapshot_beside_or_by_name(tmp_path: Path) -> None:
    """One with another clock than the capture has its own axis."""
    net = capture(tmp_path / "net.sqlite")
    named = built.write(tmp_path / "other.pickle", built.training(5, leak=1000))
    peak_bytes = ask("memory", named)["devices"][0]["peak_bytes"]
    assert 'id="title-memory"' not in _page(tmp_path / "x.html", net)
    said = refused("report", net, "--with", named, "-o", tmp_path / "x.html")
    assert "of different times" in said
    named.rename(tmp_path / "net.memory.pickle")
    course = _figure(page := _page(tmp_path / "x.html", net), "memory")
    assert (course["peak_bytes"], course["shares"]) == (peak_bytes, None)
    assert "train.py:11 holds more and more: 1 kB per step" in page
    assert "/home/user" not in page


def test_a_snapshot_of_the_same_run(tmp_path: Path) -> None:
    """The trace adds layers and costs, as with `pyprof memory --trace`."""
    trace = traces.timed_trace(tmp_path / "net.json")
    device = built.Device(time_us=traces.START_US)
    device.alloc(3000, built.user(1))
    snapshot = built.write(tmp_path / "gpu.pickle", device)
    page = _page(tmp_path / "x.html", trace, "--with", snapshot)
    (answer,) = ask("memory", "--trace", trace, snapshot)["devices"]
    course, tree = _figure(page, "memory"), _figure(page, "memory-peak")
    assert course["peak_bytes"] == answer["peak_bytes"]
    assert tree["name"] == ["mul train.py:1"]
    assert answer["largest"][0]["op"] == "mul"
    refused = run("report", trace, trace, "--with", snapshot, "-o", tmp_path / "y.html")
    assert refused.code == 2
    assert "snapshot goes with one FILE" in " ".join(refused.stderr.split())


@pytest.mark.parametrize(("at", "domain"), [(30, [0, 130_000]), (4, [-6000, 130_000])])
def test_times_are_those_of_the_timeline(tmp_path: Path, at: int, domain: list[int]) -> None:
    """From the first kernel, or from the peak if that is earlier."""
    trace = traces.timed_trace(tmp_path / "net.json", (2, 500), (at, 1000), (90, -500))
    page = _page(tmp_path / "x.html", trace)
    course = _figure(page, "memory")
    assert course["shares"] == _figure(page, "timeline")["shares"]
    assert (course["peak"], course["domain"]) == ((at - 10) * 1000, domain)
    assert course["x"][-1] == 80_000


def test_parts_and_rows_select_what_shares_their_names(tmp_path: Path) -> None:
    """Lines, layers by their innermost names, else ops; or nothing."""
    net = capture(tmp_path / "net.sqlite")
    device = built.Device()
    for layer, frame in (("second", ("f", "/home/me/model.py", 30)), ("elsewhere", built.user(1))):
        device.range(f"layer:{layer}", begins=True)
        device.alloc(1000, frame)
        device.range(f"layer:{layer}", begins=False)
    built.write(tmp_path / "net.memory.pickle", device)
    page = _page(tmp_path / "x.html", net)
    line, other = _figure(page, "memory-peak")["key"]
    assert line.startswith("stack=")
    assert other is None
    keys = dict(re.findall(r'(?:data-key="([^"]*)")?><td class="text path">([^<]*)', page))
    of_name = {name: key for key, name in keys.items()}
    assert of_name["second"].startswith("layer=")
    assert "elsewhere" in page
    assert of_name.get("elsewhere", "") == ""
    assert "table-memory-peaks" not in page, "there is one device"


def test_the_rank_with_the_highest_peak_is_drawn(tmp_path: Path) -> None:
    """The others are listed, the highest first."""
    for rank, size in enumerate((1000, 3000, 2000)):
        capture(tmp_path / f"net-rank{rank}.sqlite")
        device = built.Device()
        device.alloc(size, built.user(rank))
        built.write(tmp_path / f"net-rank{rank}.memory.pickle", device)
    page = _page(tmp_path / "x.html", tmp_path)
    assert _figure(page, "memory")["peak_bytes"] == 3000
    listed = page[page.index('id="table-memory-peaks"') :]
    order = [listed.index(f'data-value="{size}"') for size in (3000, 2000, 1000)]
    assert order == sorted(order)
    assert "rank 1, cuda:0" in page
    assert _rank(RankMemory(None, "cuda:0", 1, None, 1)) == Cell(DASH)


@pytest.mark.long
def test_figures_of_one_clock_move_together(tmp_path: Path) -> None:
    """In a browser: zooming the timeline zooms the memory, and vice versa."""
    target = tmp_path / "x.html"
    _page(target, traces.timed_trace(tmp_path / "net.json", (4, 500), (30, 1000)))
    with browser(tmp_path / "profile") as driver:
        drawn(driver, target)
        seen = """
            const done = arguments[arguments.length - 1];
            const plots = ["figure-timeline", "figure-memory"]
              .map((id) => document.getElementById(id).plot);
            if (arguments[0] !== null) plots[arguments[0]].zoom(0.5, { x: 0.25, y: 0.5 });
            setTimeout(() => done(plots.map((plot) => [...plot.seen.x, plot.view.left])), 200);
        """
        for number in (None, 0, 1):
            timeline, memory = driver.execute_async_script(seen, number)
            assert timeline == memory
        assert errors(driver) == []
