"""`pyprof memory`: text for people, JSON and CSV for programs."""

import csv
import json
import pickle
from pathlib import Path

import pyarrow as pa
import pytest

from pyprof.readers import kineto
from tests.allocations import built, traces
from tests.commands import refused, run
from tests.conftest import CAPTURES
from tests.known import raising


@pytest.fixture
def snapshot(tmp_path: Path) -> Path:
    device = built.training(5, leak=64 * 1024)
    device.oom(1 << 30, 5 << 20, built.CALL, built.user(10))
    return built.write(tmp_path / "snapshot.pickle", device)


def test_the_text_answers_what_filled_the_memory(snapshot: Path) -> None:
    done = run("memory", snapshot)
    assert (done.code, done.stderr) == (0, "")
    shown = done.stdout
    assert "Peak: 26.5 MB allocated" in shown
    assert "optimizer state  8.39 MB" in shown
    assert "/home/user/train.py:11  197 kB   65.5 kB       3" in shown
    assert "1.07 GB was asked for by /home/user/train.py:10; the device had 5.24 MB free" in shown
    places = [shown.index(head) for head in ("Out of memory", "At the ends of", "At the peak by")]
    assert places == sorted(places), "what went wrong comes first"


def test_other_maxima_are_shown_beside_the_peak(tmp_path: Path) -> None:
    """Blocks that wait for a stream, and reserved memory, may have theirs elsewhere."""
    device = built.Device(segment_bytes=1 << 20)
    first = device.alloc(4000, built.user(1))
    device.free(first, pending=True)
    second = device.alloc(3000, built.user(2))
    device.free(second)
    device._event("segment_free", 1, 1 << 20, [])
    shown = " ".join(run("memory", built.write(tmp_path / "x.pickle", device)).stdout.split())
    assert "Peak: 4 kB allocated 0 ns after the first event (event 0)" in shown
    most = "7 kB 20.0 us after the first event (event 2)"
    assert f"Most in use, with what waits for other streams: {most}" in shown
    assert "Most reserved" not in shown  # the peak was before the segment went
    device.alloc(9000, built.user(3))
    shown = run("memory", built.write(tmp_path / "x.pickle", device)).stdout
    assert "Most reserved: 2.1 MB before the first event" in shown


def test_peak_by_full_call_stack(tmp_path: Path) -> None:
    device = built.Device()
    outer, inner = built.user(1, "main"), ("forward", "/home/user/net;1.py", 5)
    mul = ("torch::autograd::THPVariable_mul(_object*, _object*, _object*)", "??", 0)
    for size in (1000, 500):
        device.alloc(size, mul, inner, outer)
    device.alloc(200, outer)
    device.alloc(30)
    path = built.write(tmp_path / "x.pickle", device)
    shown = run("memory", "--by", "stack", path).stdout
    frames = "  main (/home/user/train.py:1)\n  forward (/home/user/net;1.py:5)\n  mul\n"
    assert f"1.5 kB, 86.7 %, 2 blocks\n{frames}" in shown
    assert "30 B, 1.7 %, 1 block\n  (no stack)\n" in shown
    (found,) = run("memory", "--json", path).json["devices"]
    assert sum(stack["bytes"] for stack in found["stacks"]) == found["peak_bytes"]
    target = tmp_path / "x.collapsed"
    assert run("memory", path, "-o", target).code == 0
    assert target.read_text().splitlines() == [
        "(no stack) 30",
        "main (/home/user/train.py:1) 200",
        "main (/home/user/train.py:1);forward (/home/user/net,1.py:5);mul 1500",
    ]


def test_blocks_at_a_chosen_moment(tmp_path: Path) -> None:
    """After an event, or until a time: a displayed time selects its own event."""
    device = built.training(2)
    path = built.write(tmp_path / "x.pickle", device)
    expected = built.levels(built.snapshot(device))
    moments_us = [event["time_us"] - device.events[0]["time_us"] for event in device.events]
    forms = (str(3), f"{moments_us[5] / 1000:.2f}ms", f"{moments_us[9]} us")
    for event, at in zip((3, 5, 9), forms, strict=True):
        (found,) = run("memory", "--at", at, "--json", path).json["devices"]
        held = expected.after[event]
        assert (found["at"]["event_id"], found["at"]["bytes"]) == (event, held)
        for groups in (*found["at"]["by"].values(), found["at"]["stacks"]):
            assert sum(group["bytes"] for group in groups) == held
        assert found["peak_bytes"] == expected.peak
    target = tmp_path / "x.csv"
    assert run("memory", "--at", "2", path, "-o", target).code == 0
    rows = csv.DictReader(target.read_text().splitlines())
    assert sum(int(row["bytes"]) for row in rows) == expected.after[2]
    shown = run("memory", "--at", "2", path).stdout
    assert "Then by category" in shown
    assert "At the peak by" not in shown


@pytest.mark.parametrize("at", ["12", "0.5s", "9e9ms", "-1", "5 parsecs", "1.5"])
def test_a_moment_needs_a_unit_or_is_an_event(tmp_path: Path, at: str) -> None:
    device = built.Device()
    device.alloc(1000)
    for event in device.events:
        del event["time_us"]
    path = built.write(tmp_path / "x.pickle", device)
    done = run("memory", f"--at={at}", path)
    assert done.code == {"12": 0, "0.5s": 1}.get(at, 2)
    assert ("no times were recorded" in done.stderr) == (at == "0.5s")
    assert run("memory", "--at", "12", path, "-o", tmp_path / "x.html").code == 2


def test_long_names_fit_a_page_s_width(tmp_path: Path) -> None:
    device = built.training()
    for line in range(1, 4):
        device.alloc(
            10**11 + line, ("a_long_function" * 9, f"/home/user/{'folder/' * 30}net.py", line)
        )
    done = run("memory", built.write(tmp_path / "net.pickle", device))
    assert max(map(len, done.stdout.splitlines())) <= 100
    assert done.stdout.count("100 GB") >= 3


def test_json_has_the_whole_answer(snapshot: Path, tmp_path: Path) -> None:
    target = tmp_path / "x.json"
    assert run("memory", snapshot, "-o", target).code == 0
    assert run("memory", snapshot, "--json").stdout == target.read_text()
    answer = json.loads(target.read_text())
    (device,) = answer["devices"]
    assert (answer["kind"], answer["schema_version"]) == ("memory", 1)
    assert device["peak_bytes"] == sum(group["bytes"] for group in device["by"]["line"])
    assert None in {group["name"] for group in device["by"]["category"]}
    assert device["growth"]["leaks"][0]["line"] == "/home/user/train.py:11"


def test_csv_has_the_blocks_of_the_peak(snapshot: Path, tmp_path: Path) -> None:
    target = tmp_path / "x.csv"
    assert run("memory", snapshot, "-o", target).code == 0
    rows = [*csv.DictReader(target.read_text().splitlines())]
    (device,) = run("memory", snapshot, "--json").json["devices"]
    assert sum(int(row["bytes"]) for row in rows) == device["peak_bytes"]
    assert {row["category"] for row in rows} >= {"parameters", "optimizer state", ""}


def test_ranks_are_listed_by_peak(tmp_path: Path) -> None:
    for rank, size in enumerate((1000, 3000)):
        device = built.Device()
        device.alloc(size, built.user(rank))
        built.write(tmp_path / f"rank{rank}.pickle", device)
    shown = run("memory", tmp_path).stdout
    assert shown.startswith("Memory of rank 1, cuda:0: 1 event")
    assert "Peaks of memory" in shown
    target = tmp_path / "stacks.collapsed"
    assert run("memory", tmp_path, "-o", target).code == 0
    roots = [line.partition(";")[0] for line in target.read_text().splitlines()]
    assert roots == ["rank 0, cuda:0", "rank 1, cuda:0"]


def test_a_file_without_memory_is_refused(tmp_path: Path) -> None:
    path, empty = tmp_path / "x.txt", tmp_path / "x.pickle"
    path.write_text("nothing")
    for name in (path, tmp_path, tmp_path / "absent"):
        refused("memory", name)
    empty.write_bytes(pickle.dumps(built.snapshot()))  # of a device that did nothing
    refused("memory", empty)


def test_impossible_values_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    too_large = raising(pa.ArrowInvalid("Value 4611686018427387904 too large"))
    trace = traces.written(tmp_path / "net.pt.trace.json", [traces.event(1, 512)])
    monkeypatch.setattr(kineto, "read", too_large)
    assert "impossible values (Value 4611686018427387904 too large)" in refused("memory", trace)


def test_a_snapshot_is_not_overwritten(snapshot: Path) -> None:
    before = snapshot.read_bytes()
    for name in (snapshot, snapshot.parent):
        assert run("memory", name, "-o", snapshot).code == 1
    other = snapshot.with_name("other.pickle")
    other.write_bytes(before)
    assert "is a capture" in run("memory", snapshot, "-o", other).stderr
    assert (snapshot.read_bytes(), other.read_bytes()) == (before, before)


def test_other_commands_refer_to_pyprof_memory(snapshot: Path) -> None:
    done = run("summary", snapshot)
    assert done.code == 1
    assert "a torch memory snapshot, which pyprof memory reads" in done.stderr


@pytest.mark.parametrize(
    "path", sorted((CAPTURES / "memory-torch-snapshots").glob("*.pickle")), ids=lambda p: p.stem
)
def test_real_snapshots_are_shown(path: Path) -> None:
    done = run("memory", path, *(f"--by={key}" for key in ("line", "op", "size", "evidence")))
    assert (done.code, done.stderr) == (0, "")
    assert "At the peak by line" in done.stdout


def test_equal_blocks_are_one_row_and_unknown_tables_one_sentence(tmp_path: Path) -> None:
    device = built.Device()
    for _ in range(3):
        device.alloc(4000)
    device.alloc(1000)
    shown = run("memory", built.write(tmp_path / "x.pickle", device)).stdout
    heading = shown.splitlines().index("Largest blocks at the peak")
    assert [line.split() for line in shown.splitlines()[heading + 1 : heading + 4]] == [
        ["Blocks", "Size"], ["3", "4", "kB"], ["1", "1", "kB"],
    ]  # fmt: skip
    assert "by line" not in shown
    assert "Unknown for all of it: " in shown
    assert "no call stacks were recorded" in " ".join(shown.split())
