"""Memory columns in `prof --by`, if it was recorded with the capture."""

from pathlib import Path

import pytest

from tests.allocations import built
from tests.allocations.traces import timed_trace
from tests.analysis.captured import capture
from tests.commands import run
from tests.render.text.test_memory_brief import trace_of_memory


def _rows(*arguments: str | Path) -> list[dict[str, str]]:
    """Run `prof --csv`; return its rows."""
    return run("prof", "--csv", *arguments).rows


@pytest.mark.parametrize("key", ["op", "line", "layer"])
def test_groups_have_their_memory(tmp_path: Path, key: str) -> None:
    """Equal to `pyprof memory` by the same key."""
    path = trace_of_memory(tmp_path / "net.json", recorded=True)
    rows = _rows("--by", key, path)
    devices = run("memory", path, "--json").json["devices"]
    held = {group["name"]: group for group in devices[0]["by"][key]}
    column = {"op": "Op", "line": "Line", "layer": "Layer"}[key]
    for row in rows:
        group = held.get(row[column].rpartition(":")[2] if key == "layer" else row[column] or None)
        assert int(row["Alloc(B)"]) == (group["allocated_bytes"] if group else 0)
        share = 100 * group["bytes"] / devices[0]["peak_bytes"] if group else 0
        assert float(row["Peak(%)"]) == pytest.approx(share)
    assert rows


@pytest.mark.slow
def test_other_tables_have_no_memory(tmp_path: Path) -> None:
    net = capture(tmp_path / "net.sqlite")
    before = run("prof", "--by", "dir", net).stdout
    assert "Alloc" not in run("prof", "--by", "op", net).stdout
    built.write(tmp_path / "net.memory.pickle", built.training())
    assert run("prof", "--by", "dir", net).stdout == before
    assert "Alloc" in run("prof", "--by", "op", net).stdout


@pytest.mark.slow
def test_a_layer_that_groups_share_is_unknown(tmp_path: Path) -> None:
    """Memory is only known for the innermost layer."""
    net = capture(tmp_path / "net.sqlite")
    inner = [row["Layer"].rpartition(":")[2] for row in _rows("--by", "layer", net)]
    device = built.Device()
    for name in inner:
        device.range(f"layer:{name}", begins=True)
        device.alloc(100)
        device.range(f"layer:{name}", begins=False)
    built.write(tmp_path / "net.memory.pickle", device)
    for row, name in zip(_rows("--by", "layer", net), inner, strict=True):
        assert (row["Alloc(B)"] == "") == (inner.count(name) > 1)


@pytest.mark.slow
def test_columns_of_memory_can_be_chosen_and_sort_rows(tmp_path: Path) -> None:
    """Like others: the largest first, in text, CSV and JSON."""
    path = timed_trace(tmp_path / "net.json", (2, 500), (30, 1000), (90, -500))
    asked = ("prof", "--by", "op", "-c", "op,alloc,peak_share", "--sort", "alloc", path)
    rows = _rows(*asked[1:])
    assert [*rows[0]] == ["Op", "Alloc(B)", "Peak(%)"]
    sizes = [int(row["Alloc(B)"]) for row in rows]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] == 1500
    answer = run(*asked, "--json").json
    assert [column["column"] for column in answer["columns"]] == ["op", "alloc", "peak_share"]
    assert [row["alloc_bytes"] for row in answer["rows"]] == sizes
    (first,) = run(*asked, "--json", "--top", "1").json["rows"]
    assert first == answer["rows"][0]


def test_memory_that_was_not_recorded_is_unknown(tmp_path: Path) -> None:
    """Columns requested by name are empty, with a reason; single rows have none.

    Rows selected with --where have no memory of their own.
    """
    net = capture(tmp_path / "net.sqlite")
    done = run("prof", "--by", "op", "-c", "op,alloc", "--csv", net)
    assert {row["Alloc(B)"] for row in done.rows} == {""}
    assert "no memory was recorded with the capture" in done.stderr
    assert run("prof", "--by", "op", "--sort", "peak_share", net).code == 0
    assert run("prof", "-c", "alloc", net).code == 2
    assert run("prof", "--by", "dir", "-c", "alloc", net).code == 2
    built.write(tmp_path / "net.memory.pickle", built.training())
    chosen = ("prof", "--by", "op", "--where", "dir=fprop", net)
    assert run(*chosen, "-c", "alloc").code == 2
    assert "Alloc" not in run(*chosen).stdout
