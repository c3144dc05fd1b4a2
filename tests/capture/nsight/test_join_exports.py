"""Windows that nsys exports one by one, joined into one file: built ones and real ones."""

import os
import shutil
import sqlite3
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from pyprof.capture.nsight.join_exports import join_nsys_windows
from pyprof.marker import encode_layer
from pyprof.parse import parse_file
from pyprof.readers import read
from tests import damage
from tests.builders import LAYOUTS, Layout, Node, Range, Work, nsys_db
from tests.capture_files.metrics import nsys_metrics
from tests.capture_files.model import Rows
from tests.parse.record_lines import MM, record_lines

SESSION = 1_700_000_000_000_000_000
BEGINS = (0, 5_000_000, 9_000_000)
"""When the session of each window began, in ns from the first's."""
NAMES = (("gemm", "add"), ("add", "relu"), ("gemm", "add"))
"""Kernels of each window: the first that is new gets the lowest number of a text."""


def window(place: int) -> tuple[list[Work], list[Range]]:
    work = [
        Work(name, (1000 * at + 300, 1000 * at + 700), (1000 * at, 1000 * at + 50), corr=10 + at)
        for at, name in enumerate(NAMES[place], 1)
    ]
    return work, [Range(encode_layer(f"net{place}"), (900, 2500))]


def moved(work: list[Work], ranges: list[Range], by: int) -> tuple[list[Work], list[Range]]:
    """Put them on the first session's clock."""
    later = [
        replace(w, at=(w.at[0] + by, w.at[1] + by), call=(w.call[0] + by, w.call[1] + by))
        for w in work
        if w.call
    ]
    return later, [replace(r, at=(r.at[0] + by, (r.at[1] or 0) + by)) for r in ranges]


def exported(folder: Path, layout: Layout, *, sessions: bool = True) -> list[Path]:
    found = []
    for place, begin in enumerate(BEGINS):
        more: dict[str, Rows] = {
            **({"TARGET_INFO_SESSION_START_TIME": [{"utcEpochNs": SESSION + begin}]}
               if sessions else {}),
            "DIAGNOSTIC_EVENT": [{"timestamp": 5, "text": f"{place} events were lost"}],
        }  # fmt: skip
        about = replace(layout, more=more)
        found.append(nsys_db(folder / f"net.{place + 1}.sqlite", *window(place), about))
    return found


def test_samples_are_shifted_like_kernels(tmp_path: Path) -> None:
    found = []
    for place in range(2):
        metrics = nsys_metrics({"tensor_pct": ([1000, 2000], [50.0, 60.0])})
        more: dict[str, Rows] = {
            **metrics,
            "TARGET_INFO_SESSION_START_TIME": [{"utcEpochNs": BEGINS[place]}],
        }
        layout = replace(LAYOUTS["2024.6"], more=more)
        found.append(nsys_db(tmp_path / f"net.{place + 1}.sqlite", *window(place), layout))
    join_nsys_windows(found, tmp_path / "net.sqlite")
    times = read(tmp_path / "net.sqlite").samples.column("time").to_pylist()
    assert times == [1000, 2000, BEGINS[1] + 1000, BEGINS[1] + 2000]


@pytest.mark.few(3)
@pytest.mark.slow
@pytest.mark.parametrize("layout", LAYOUTS)
def test_joined_windows_equal_one_capture(tmp_path: Path, layout: str) -> None:
    join_nsys_windows(exported(tmp_path, LAYOUTS[layout]), tmp_path / "net.sqlite")
    works, ranges = [], []
    for place, begin in enumerate(BEGINS):
        later = moved(*window(place), begin)
        works += later[0]
        ranges += later[1]
        if place:
            works.append(
                Work(kind="none", api="cudaProfilerStart", call=(begin + 900, begin + 901))
            )
        works.append(Work(kind="none", api="cudaProfilerStop", call=(begin + 2800, begin + 2900)))
    whole = nsys_db(tmp_path / "whole.sqlite", works, ranges, LAYOUTS[layout])
    found = parse_file(tmp_path / "net.sqlite")
    # Ids begin again in each window, as CUPTI's do where it was closed in between.
    assert found.arrow("window").to_pylist() == [0, 0, 1, 1, 2, 2]
    assert list(record_lines(found)) == list(record_lines(parse_file(whole)))
    names = found.dictionary("kLongName")
    assert len(names.values) == len(set(names.values))


def test_exports_without_a_start_time_follow_each_other(tmp_path: Path) -> None:
    """Such as those of nsys 2021."""
    join_nsys_windows(
        exported(tmp_path, LAYOUTS["2021.2"], sessions=False), tmp_path / "net.sqlite"
    )
    found = parse_file(tmp_path / "net.sqlite")
    assert found.arrow("window").to_pylist() == [0, 0, 1, 1, 2, 2]
    assert {f"message from nsys: {place} events were lost" for place in range(3)} <= {
        *found.warnings
    }
    assert found.dictionary("layer").to_arrow(found.arrow("layer").type).to_pylist() == [
        [f"net{place}"] for place in (0, 0, 1, 1, 2, 2)
    ]


def test_a_range_that_was_open_does_not_reach_into_the_next_window(tmp_path: Path) -> None:
    first, second = window(0), window(1)
    left_open = Range(encode_layer("epoch"), (800, None))
    paths = [
        nsys_db(tmp_path / "1.sqlite", first[0], [left_open, *first[1]]),
        nsys_db(tmp_path / "2.sqlite", *second),
    ]
    join_nsys_windows(paths, tmp_path / "net.sqlite")
    rows = parse_file(tmp_path / "net.sqlite").table().column("layer").to_pylist()
    assert rows == [["epoch", "net0"]] * 2 + [["net1"]] * 2


def test_a_file_that_is_not_an_export(tmp_path: Path) -> None:
    whole, *_ = exported(tmp_path, LAYOUTS["2024.6"])
    (tmp_path / "net.2.sqlite").write_text("no database")
    with pytest.raises(sqlite3.Error):
        join_nsys_windows([whole, tmp_path / "net.2.sqlite"], tmp_path / "net.sqlite")
    assert not [path for path in tmp_path.iterdir() if "net.sqlite" in path.name]


SCRIPT = """
import os, sys, time
from pyprof.instrument.ranges import emit
push, pop = emit.connect(os.environ["NVTX_INJECTION64_PATH"])
for step in range(6):
    if step % 2:
        push(b"window")
    push(b"step %d" % step)
    print(step, time.monotonic_ns())
    pop()
    if step % 2:
        pop()
"""


@pytest.mark.skipif(shutil.which("nsys") is None, reason="nsys is not installed")
@pytest.mark.long
def test_real_windows(tmp_path: Path) -> None:
    pytest.importorskip("torch")  # the package whose module the script takes imports it
    (tmp_path / "train.py").write_text(SCRIPT)
    command = [
        "nsys", "profile", "--trace=nvtx", "--sample=none", "--cpuctxsw=none", "--export=sqlite",
        "--capture-range=nvtx", "--nvtx-capture=window", "--capture-range-end=repeat",
        "--env-var=NSYS_NVTX_PROFILER_REGISTER_ONLY=0", "--output=net", sys.executable, "train.py",
    ]  # fmt: skip
    path = os.pathsep.join([os.getcwd(), os.environ.get("PYTHONPATH", "")])  # noqa: PTH109 - where pyprof is
    done = subprocess.run(
        command, cwd=tmp_path, env={**os.environ, "PYTHONPATH": path},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    windows = [tmp_path / f"net.{place}.sqlite" for place in (1, 2, 3)]
    if not all(each.exists() for each in windows):
        pytest.skip(f"this nsys wrote no windows: {done.stdout[-200:]}{done.stderr[-200:]}")
    told = {int(line[0]): int(line[2:]) for line in done.stdout.splitlines() if line[:1].isdigit()}
    join_nsys_windows(windows, tmp_path / "net.sqlite")
    steps = "SELECT start, text FROM NVTX_EVENTS WHERE text LIKE 'step%' ORDER BY start"
    rows = damage.query(tmp_path / "net.sqlite", steps)
    assert [text for _, text in rows] == ["step 1", "step 3", "step 5"]
    for (start, _), step in zip(rows, (1, 3, 5), strict=True):
        assert start - rows[0][0] == pytest.approx(told[step] - told[1], abs=5_000_000)


def test_graphs_of_one_window_replayed_in_the_next(tmp_path: Path) -> None:
    launch = Work("gemm", corr=1, api="cudaGraphLaunch_v10000", node=11)
    first = nsys_db(
        tmp_path / "net.1.sqlite",
        [replace(launch, at=(200, 300), call=(100, 110))],
        [Range(MM, (10, 20))],
        nodes=[Node(1, 15), Node(11, 60, of=1)],
    )
    second = nsys_db(
        tmp_path / "net.2.sqlite",
        [replace(launch, at=(50, 90), call=(5, 7))],
        [Range("unrelated", (1, 99))],
        nodes=[Node(12, 4, of=1)],
    )
    join_nsys_windows([first, second], tmp_path / "net.sqlite")
    records = parse_file(tmp_path / "net.sqlite")
    assert records.arrow("op").to_pylist() == [["mm"], ["mm"]]
    assert records.arrow("window").to_pylist() == [0, 1]
    assert records.arrow("replay").to_pylist() == [0, 1]
