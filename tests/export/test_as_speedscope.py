"""Stacks over time, valid by speedscope's own schema."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.analysis.captured import capture
from tests.commands import run
from tests.export.exported import quietly

SCHEMA = Path(__file__).resolve().parents[1] / "samples" / "speedscope" / "file-format-schema.json"


def exported(source: Path, folder: Path) -> dict[str, Any]:
    done = run("export", source, "-o", folder / "net.speedscope.json")
    assert done.code == 0, done.stderr
    found: dict[str, Any] = json.loads((folder / "net.speedscope.json").read_text())
    return found


def test_a_stream_is_a_profile_with_its_idle_time(tmp_path: Path) -> None:
    """Weights are ns since the first work of all; an empty stack is idle time."""
    found = exported(capture(tmp_path / "net.sqlite"), tmp_path)
    names = [frame["name"] for frame in found["shared"]["frames"]]
    _, first, second = found["profiles"]
    assert [first["name"], second["name"]] == ["GPU 0, stream 7", "GPU 0, stream 8"]
    stacks = [[names[number] for number in sample] for sample in first["samples"]]
    relu = ["/home/me/train.py:7", "/home/me/model.py:12", "torch.relu", "relu_kernel"]
    assert stacks[:4] == [relu, [], relu, []]
    assert first["weights"] == [100, 900, 100, 900, 300, 100, 50]
    assert second["weights"] == [50, 200]
    assert first["endValue"] == sum(first["weights"])


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["nsys2024.2-a100-pyprof-markers/net.sqlite", "nvprof-v100-apex/net.dict"]
)
def test_the_schema_accepts_it(captures: Path, tmp_path: Path, name: str) -> None:
    """Speedscope's own; all GPU time is there."""
    jsonschema = pytest.importorskip("jsonschema")
    found = exported(captures / name, tmp_path)
    jsonschema.validate(found, json.loads(SCHEMA.read_text()))
    in_all, *streams = (
        sum(weight for sample, weight in zip(p["samples"], p["weights"], strict=True) if sample)
        for p in found["profiles"]
    )
    done = run("prof", captures / name, "--csv", "-c", "sil", "-q")
    durations = [int(line.strip('"')) for line in done.stdout.splitlines()[1:]]
    assert in_all == sum(streams) == sum(durations)


def test_streams_of_all_ranks_are_profiles(ranks: Path, tmp_path: Path) -> None:
    """Each as in its rank's own file, with the rank's name; stacks are stored once."""
    jsonschema = pytest.importorskip("jsonschema")
    whole = json.loads(quietly(ranks, tmp_path / "all.speedscope.json"))
    jsonschema.validate(whole, json.loads(SCHEMA.read_text()))
    in_all, *streams = profiles(whole)
    expected: Counter[tuple[str, ...]] = Counter()
    for rank, file in enumerate(sorted(ranks.iterdir())):
        first, *alone = profiles(json.loads(quietly(file, tmp_path / "one.speedscope.json")))
        for stack, weight in first[1]:
            expected[stack] += weight
        assert streams[: len(alone)] == [(f"rank {rank}: {name}", rows) for name, rows in alone]
        streams = streams[len(alone) :]
    assert not streams
    assert in_all[1] == sorted(expected.items(), key=lambda entry: -entry[1])


def profiles(content: dict[str, Any]) -> list[tuple[str, list[tuple[tuple[str, ...], int]]]]:
    """Return each profile's name, and its stacks in words with their weights."""
    names = [frame["name"] for frame in content["shared"]["frames"]]
    return [
        (profile["name"], [(tuple(names[frame] for frame in stack), weight) for stack, weight
                           in zip(profile["samples"], profile["weights"], strict=True)])
        for profile in content["profiles"]
    ]  # fmt: skip
