"""Memory beside time in `prof --by`, where it was recorded with the capture."""

from __future__ import annotations

import csv
import json
from typing import TYPE_CHECKING

import pytest

from tests.commands import run
from tests.memory import built
from tests.report.captured import capture
from tests.report.render.test_memory_brief import trace_of_memory

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("key", ["op", "line", "layer"])
def test_groups_have_their_memory(tmp_path: Path, key: str) -> None:
    """As `pyprof memory` says by the same key."""
    path = trace_of_memory(tmp_path / "net.json", recorded=True)
    rows = [*csv.DictReader(run("prof", "--by", key, "--csv", path).stdout.splitlines())]
    devices = json.loads(run("memory", path, "--json").stdout)["devices"]
    held = {group["name"]: group for group in devices[0]["by"][key]}
    column = {"op": "Op", "line": "Line", "layer": "Layer"}[key]
    for row in rows:
        group = held.get(row[column].rpartition(":")[2] if key == "layer" else row[column] or None)
        assert int(row["Alloc"]) == (group["allocated_bytes"] if group else 0)
        share = 100 * group["bytes"] / devices[0]["peak_bytes"] if group else 0
        assert float(row["Peak(%)"]) == pytest.approx(share)
    assert rows


def test_other_tables_are_as_ever(tmp_path: Path) -> None:
    """Without memory, and by other keys."""
    net = capture(tmp_path / "net.sqlite")
    before = run("prof", "--by", "dir", net).stdout
    assert "Alloc" not in run("prof", "--by", "op", net).stdout
    built.write(tmp_path / "net.memory.pickle", built.training())
    assert run("prof", "--by", "dir", net).stdout == before
    assert "Alloc" in run("prof", "--by", "op", net).stdout


def test_a_layer_that_groups_share_is_unknown(tmp_path: Path) -> None:
    """Memory knows the innermost alone."""
    net = capture(tmp_path / "net.sqlite")
    listed = run("prof", "--by", "layer", "--csv", net).stdout.splitlines()
    layers = [row["Layer"] for row in csv.DictReader(listed)]
    device = built.Device()
    for layer in layers:
        device.range(f"layer:{layer.rpartition(':')[2]}", begins=True)
        device.alloc(100)
        device.range(f"layer:{layer.rpartition(':')[2]}", begins=False)
    built.write(tmp_path / "net.memory.pickle", device)
    rows = [*csv.DictReader(run("prof", "--by", "layer", "--csv", net).stdout.splitlines())]
    inner = [row["Layer"].rpartition(":")[2] for row in rows]
    for row, name in zip(rows, inner, strict=True):
        assert (row["Alloc"] == "") == (inner.count(name) > 1)
