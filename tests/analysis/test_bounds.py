"""What reports do is bounded: trees of any depth, no more GPUs and processes than there can be."""

import json
from pathlib import Path

import numpy as np
import pytest

from pyprof.analysis.summary.layer_tree import MAX_DEPTH, layer_sums, layer_times
from pyprof.analysis.time import host_api, steps, timeline
from pyprof.parse import parse
from pyprof.prof.table import Table
from pyprof.records import parquet
from pyprof.records.merging import merge_sums
from pyprof.render.text import summary_text
from tests.analysis.captures import Work, capture, layer, records
from tests.commands import run


def test_a_tree_of_modules_is_not_as_deep_as_a_name_has_dots() -> None:
    """Beyond a level, the rest of the name is one: its time is there all the same."""
    name = ".".join(f"l{level}" for level in range(20_000))
    net = capture([Work((50, 60), (10, 20))], ranges=[layer(name, (1, 30))])
    sums, _ = layer_sums(Table(parse(net)))
    layers = layer_times(merge_sums(sums, sums), None)
    assert max(len(each.path) for each in layers) <= MAX_DEPTH
    assert ".".join(layers[-1].path) == name
    assert (layers[0].time_ns, layers[-1].own_ns, layers[-1].rows) == (20, 20, 2)


def test_far_levels_are_numbered() -> None:
    """A table does not grow as wide as the tree is deep."""
    assert [summary_text._indented(level) for level in (0, 2, 16)] == ["", "    ", " " * 32]
    assert summary_text._indented(5000) == " " * 32 + "(5000) "


def test_no_more_gpus_than_a_machine_has(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those with most rows are looked at, and how many are not is kept."""
    work = [Work((10 * n, 10 * n + 5), device=max(n - 3, 0)) for n in range(8)]
    found = timeline.timeline(records(capture(work)))
    assert found is not None
    assert (len(found.devices), found.left_out) == (5, 0)
    monkeypatch.setattr(timeline, "_MOST", 2)
    found = timeline.timeline(records(capture(work)))
    assert found is not None
    assert ([each.device for each in found.devices], found.left_out) == ([0, 1], 3)


def test_no_more_processes_than_a_machine_trains_with(monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps are looked for in those with most rows."""
    work = [Work((10 * n, 10 * n + 5), pid=1 + n % 3) for n in range(8)]
    monkeypatch.setattr(steps, "MOST", 1)
    assert len(steps.find_steps(records(capture(work)))) == 0


def test_each_process_has_its_calls() -> None:
    """Found for all at once; one of which none is known is silent."""
    work = [Work((100 * n + 50, 100 * n + 60), (100 * n, 100 * n + 7)) for n in (1, 2)]
    found = host_api.calls(records(capture(work)), None).hosts()
    assert {pid: host.anywhere.start.tolist() for pid, host in found.items()} == {1: [100, 200]}
    assert host_api.SILENT.anywhere.total == 0


@pytest.mark.parametrize(
    "command",
    [
        ["prof", "--csv"],
        ["prof", "--by", "op"],
        ["summary"],
        ["lines"],
        ["export", "-o", "OUT.md"],
        ["export", "-o", "OUT.pt.trace.json"],
        ["export", "-o", "OUT.json"],
        ["export", "-o", "OUT.prof"],
        ["export", "-o", "OUT.csv"],
        ["export", "-o", "OUT.speedscope.json"],
        ["report", "-o", "OUT.html"],
        ["diff", "IN"],
        ["ranks"],
    ],
    ids=" ".join,
)
def test_a_file_without_rows(command: list[str], tmp_path: Path) -> None:
    """Nothing to report is no fault."""
    nothing = records(capture([Work((0, 5))])).take(np.zeros(0, np.int64))
    path = tmp_path / "net.parquet"
    with path.open("wb") as file:
        parquet.write(nothing, file)
    places = {"IN": str(path)}
    done = run(
        *(places.get(word, word.replace("OUT", f"{tmp_path}/out")) for word in command), path
    )
    assert done.code in (0, 1)
    assert done.code == 0 or done.stderr.count("\n") == 1
    for written in tmp_path.glob("out.*json"):
        json.loads(written.read_bytes())


@pytest.mark.filterwarnings("error")
def test_times_too_long_to_be_true_are_no_warning_of_numpys(tmp_path: Path) -> None:
    """What is wrong with a time is the reader's to say."""
    found = records(capture([Work((0, 2**62)), Work((5, 2**62)), Work((6, 2**62 + 5))]))
    with (tmp_path / "net.parquet").open("wb") as file:
        parquet.write(found, file)
    for command in ("lines", "summary"):
        run(command, tmp_path / "net.parquet")
