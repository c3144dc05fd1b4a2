"""A capture of three windows: all reports keep them apart, made from it or from what was parsed."""

import csv
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import pyprof
from pyprof.analysis.diff.compare import compare
from pyprof.analysis.diff.side import summarise_side
from pyprof.analysis.ranks.rank_tables import measure_ranks
from pyprof.analysis.summary.overview import overview
from pyprof.inputs import source
from pyprof.inputs.executor import InProcess
from pyprof.inputs.ranks import RankedCapture
from pyprof.inputs.source import items
from pyprof.marker import encode_layer
from pyprof.render.page.strips import strips
from tests.analysis.answered import answered
from tests.builders import Range, Work, nsys_db
from tests.commands import run

US = 1000
BEGINS = (0, 50_000 * US, 90_000 * US)
"""When each window begins; it holds two steps of 100 us."""
KERNELS = ((5, 20, 7), (30, 30, 7), (35, 45, 8), (84, 6, 7))
"""Of each step: when it starts, how long it lasts, on which stream, in us. The last is the
optimizer's. Launched 4 us before."""


def _work() -> Iterator[Work]:
    for place, begin in enumerate(BEGINS):
        if place:
            yield Work(kind="none", api="cudaProfilerStart_v4000", call=(begin - 500, begin - 400))
        for step in (begin, begin + 100 * US):
            for start, length, stream in KERNELS:
                at = step + start * US
                yield Work(
                    "gemm", (at, at + length * US), (at - 4 * US, at - 2 * US), stream=stream
                )
        stop = begin + 210 * US
        yield Work(kind="none", api="cudaProfilerStop_v4000", call=(stop, stop + 10))


def _ranges() -> Iterator[Range]:
    last = KERNELS[-1][0]
    for step in (begin + offset for begin in BEGINS for offset in (0, 100 * US)):
        optimizer = (step + (last - 6) * US, step + last * US)
        yield Range("Optimizer.step#SGD.step", optimizer)
        yield Range(encode_layer("net"), (step, optimizer[0]))


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("windows")
    net = nsys_db(folder / "net.rank0.sqlite", _work(), _ranges())
    found = {"capture": net}
    for form, name in (("dict", "net.dict"), ("parquet", "net.parquet"), ("dataset", "net/")):
        found[form] = folder / name
        assert run("parse", "-q", net, "-o", f"{folder}/{name}").code == 0
    return found


FORMS = pytest.mark.parametrize("form", ["capture", "dict", "parquet", "dataset"])


def load(files: dict[str, Path], form: str) -> source.Source:
    (item,) = items([str(files[form])], InProcess())
    return source.load(item)


@FORMS
def test_time_is_that_of_the_windows(files: dict[str, Path], form: str) -> None:
    """Busy, idle and span by counting microseconds; steps that begin with a window and others."""
    found = answered(load(files, form))
    assert found.devices is not None
    (device,) = found.devices
    step = {at for start, length, _ in KERNELS for at in range(start, start + length)}
    window = step | {at + 100 for at in step}
    span = max(window) + 1 - min(window)
    assert (device.windows, device.busy_ns, device.span_ns) == (
        3, 3 * len(window) * US, 3 * span * US,
    )  # fmt: skip
    assert device.busy_ns + device.idle_ns == device.span_ns
    assert sum(device.idle_by_cause_ns.values()) == device.idle_ns
    assert device.paused_ns + device.span_ns == BEGINS[-1] + span * US
    first = (max(step) + 1 - min(step)) * US
    assert [*found.steps.duration_ns] == [first, 100 * US] * 3


@FORMS
def test_rows_tell_their_window(files: dict[str, Path], form: str) -> None:
    """There is no gap before the first row of a window, and the others add up to the idle time."""
    frame = pyprof.load(files[form])
    assert frame["window"].tolist() == [place for place in range(3) for _ in range(8)]
    first = frame.groupby("window").head(1)
    assert first["gap"].isna().all()
    assert frame["gap"].isna().sum() == len(BEGINS)
    found = answered(load(files, form))
    assert found.devices is not None
    assert frame["gap"].sum() == found.devices[0].idle_ns


@FORMS
def test_chosen_steps(files: dict[str, Path], form: str) -> None:
    """The second step of the first window and both of the next: no pause is in their time."""
    found = answered(load(files, form), "1:4")
    assert found.devices is not None
    (device,) = found.devices
    assert (device.windows, device.span_ns) == (2, (100 + 185) * US)


@FORMS
def test_ranks(files: dict[str, Path], form: str) -> None:
    """`pyprof ranks` measures the same of the capture and of all that was made from it."""
    path = files[form]
    if form == "dataset":
        (path,) = path.rglob("*.parquet")
    facts = measure_ranks(RankedCapture(str(path), ((None, 0),)))
    (row,) = facts.ranks.select(["span_ns", "busy_ns", "idle_ns"]).to_pylist()
    assert row == {"span_ns": 555 * US, "busy_ns": 456 * US, "idle_ns": 99 * US}
    assert facts.steps.column("duration_ns").to_pylist() == [85 * US, 100 * US] * 3


@FORMS
def test_the_page_shows_no_pause(files: dict[str, Path], form: str) -> None:
    """A strip is as long as its step, or as its window."""
    found = load(files, form)
    whole = overview(found)
    cut = strips(found, whole)
    assert cut is not None
    shown = cut.strip(answered(found).steps)
    assert shown.length_ns == [85 * US, 100 * US] * 3
    nothing = replace(whole.steps, duration_ns=np.zeros_like(whole.steps.duration_ns))
    cut = strips(found, replace(whole, steps=nothing))
    assert cut is not None
    shown = cut.strip(replace(answered(found).steps, duration_ns=(0,) * len(nothing)))
    assert list(zip(shown.labels, shown.length_ns, strict=True)) == [
        (f"window {place}", 185 * US) for place in range(3)
    ]


def test_nothing_differs_between_them(files: dict[str, Path]) -> None:
    """`pyprof diff` of the capture and of what was parsed from it."""
    for form in ("dict", "parquet", "dataset"):
        found = compare(
            summarise_side(load(files, "capture"), ("op",)),
            summarise_side(load(files, form), ("op",)),
        )
        assert {metric.delta for metric in found.metrics.values()} <= {0, None}
        assert found.per_step == (6, 6)


@pytest.mark.parametrize("form", ["dict", "parquet"])
def test_text_and_tables_are_the_same(files: dict[str, Path], form: str) -> None:
    """Whatever a row tells, one form tells as the other."""
    columns = ("prof", "--csv", "-c", "idx,window,gap,queue,start,sil,layer,dir")
    assert run(*columns, files[form]).stdout == run(*columns, files["capture"]).stdout
    by_window = run("prof", "--by", "window", "--csv", files[form]).stdout
    _, *rows = csv.reader(by_window.splitlines())
    assert [row[:3] for row in rows] == [[str(place), "8", str(202 * US)] for place in range(3)]


@FORMS
def test_a_trace_has_a_slice_for_each_window(
    files: dict[str, Path], form: str, tmp_path: Path
) -> None:
    """Layers do not reach over a pause; on each stream, they lie in the window's slice."""
    run("export", files[form], "-o", tmp_path / "net.pt.trace.json")
    events = json.loads((tmp_path / "net.pt.trace.json").read_text())["traceEvents"]
    slices = [event for event in events if event.get("cat") == "gpu_user_annotation"]
    windows = [event for event in slices if event["name"].startswith("window ")]
    assert sorted(event["name"] for event in windows) == [
        f"window {place}" for place in (0, 0, 1, 1, 2, 2)
    ]
    assert all(event["dur"] <= 185 for event in windows)
    assert all(event["dur"] < 185 for event in slices if event["name"] == "net")


@FORMS
def test_speedscope_has_a_profile_for_each_window(
    files: dict[str, Path], form: str, tmp_path: Path
) -> None:
    """Of each stream; all streams of a window begin together."""
    run("export", files[form], "-o", tmp_path / "net.speedscope.json")
    profiles = json.loads((tmp_path / "net.speedscope.json").read_text())["profiles"]
    assert [(profile["name"], profile["endValue"]) for profile in profiles[1:]] == [
        (f"GPU 0, stream {stream}, window {place}", length * US)
        for stream, length in ((7, 185), (8, 175))
        for place in range(3)
    ]
