"""Lines of several timelines in one: times, processes and flows stay apart."""

import json
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import pyprof
from tests.commands import run


@pytest.fixture(scope="module")
def real(captures: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return captures of different tools as the ranks of one run; one holds two processes."""
    folder = tmp_path_factory.mktemp("real")
    for rank, name in enumerate(
        ("nsys2026.2-h100x2-fsdp/net.sqlite", "nsys2024.2-a100-pyprof-markers/net.sqlite",
         "kineto-h100-vit-inference/trace.json.gz")
    ):  # fmt: skip
        source = captures / name
        (folder / f"rank{rank}.{source.name}").symlink_to(source)
    return folder


@pytest.mark.parametrize("name", ["ranks", pytest.param("real", marks=pytest.mark.long)])
def test_events_of_all_ranks_have_one_time_base(
    name: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """To the ns as in each rank's own file; processes and flows are separate."""
    folder: Path = request.getfixturevalue(name)
    whole = trace(folder, tmp_path / "all.pt.trace.json")
    alone = [trace(file, tmp_path / "one.pt.trace.json") for file in sorted(folder.iterdir())]
    assert timed(whole) == sum(map(timed, alone), Counter())
    labels = {e["pid"]: e["args"]["labels"] for e in events(whole, "M", "process_labels")}
    assert Counter(labels.values()) == {
        f"rank {rank}": len({event["pid"] for event in one["traceEvents"]})
        for rank, one in enumerate(alone)
    }
    assert {event["pid"] for event in whole["traceEvents"]} == labels.keys()
    starts, ends = (Counter(e["id"] for e in events(whole, phase, "ac2g")) for phase in "sf")
    assert starts == ends
    assert len(starts) == sum(len(events(one, "s", "ac2g")) for one in alone)
    assert set(starts.values()) == {1}
    read, frame = pyprof.load(tmp_path / "all.pt.trace.json"), pyprof.load(folder)
    assert sorted(read["sil"]) == sorted(frame["sil"])
    args = (event.get("args", {}) for event in whole["traceEvents"])
    calls = {each["External id"] for each in args if "External id" in each}
    assert calls == {*frame["opid"]}


def trace(source: Path, target: Path) -> dict[str, Any]:
    """Export a timeline and read it, times as exact decimals."""
    assert run("export", "-q", source, "-o", target).code == 0
    found: dict[str, Any] = json.loads(target.read_bytes(), parse_float=Decimal)
    return found


def events(content: dict[str, Any], phase: str, name: str) -> list[dict[str, Any]]:
    return [e for e in content["traceEvents"] if (e["ph"], e["name"]) == (phase, name)]


def timed(content: dict[str, Any]) -> Counter[tuple[object, ...]]:
    """Count the events of each kind at each time."""
    base = content["baseTimeNanoseconds"]
    return Counter(
        (e["ph"], e["name"], e["tid"], base + 1000 * e["ts"], e.get("dur"),
         str({key: value for key, value in e.get("args", {}).items() if key != "External id"}))
        for e in content["traceEvents"]
        if "ts" in e
    )  # fmt: skip
