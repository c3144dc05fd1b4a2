"""GPU time by Python stack, as pstats and snakeviz see it."""

from __future__ import annotations

import marshal
import pstats
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest

from pyprof.marker import encode_trace
from tests.analysis.captured import capture
from tests.builders import Range, Work, nsys_db
from tests.commands import run
from tests.export.exported import quietly

if TYPE_CHECKING:
    Key = tuple[str, int, str]
    Stats = dict[Key, tuple[int, int, float, float, dict[Key, tuple[int, int, float, float]]]]
ROOT = ("~", 0, "<GPU time>")


def profile(source: Path, target: Path, *options: str | Path) -> Stats:
    """Export a capture and load it as pstats does."""
    done = run("export", source, *options, "-o", target)
    assert done.code == 0, done.stderr
    return cast("Stats", vars(pstats.Stats(str(target)))["stats"])


def test_time_and_calls_add_up_the_stack(tmp_path: Path) -> None:
    """A line has the time of the kernels it caused, however deep, and a call for each."""
    stats = profile(capture(tmp_path / "net.sqlite"), tmp_path / "net.prof")
    cumulative = {key: round(entry[3] * 1e9) for key, entry in stats.items()}
    caller, line = (f"/home/me/{name}" for name in ("train.py", "model.py"))
    assert cumulative[ROOT] == 100 + 100 + 300 + 50 + 200
    assert round(sum(entry[2] for entry in stats.values()) * 1e9) == cumulative[ROOT]
    assert cumulative[caller, 7, "train.py:7"] == 100 + 100 + 300
    assert cumulative[line, 12, "model.py:12"] == cumulative["~", 0, "torch.relu"] == 100 + 100
    assert cumulative["~", 0, "exp_kernel"] == 300
    primitive, calls, own, _, callers = stats[line, 12, "model.py:12"]
    assert (primitive, calls, own) == (2, 2, 0)
    assert {key: entry[:2] for key, entry in callers.items()} == {(caller, 7, "train.py:7"): (2, 2)}


@pytest.mark.slow
def test_a_line_is_called_after_its_function(tmp_path: Path) -> None:
    """With --source; outside of functions by its text. Otherwise no source is read."""
    script = tmp_path / "net.py"
    script.write_text("class Net:\n    def forward(self):\n        pass\n\nout = Net().forward()\n")
    lines = encode_trace((f"{script}:5", f"{script}:3", f"{script}:99"))
    work = [Work("relu", (1000, 1100), (110, 120))]
    source = nsys_db(tmp_path / "net.sqlite", work, [Range(lines, (100, 200))])
    cases: list[tuple[list[str | Path], dict[int, str]]] = [
        (["--source", tmp_path], {5: "out = Net().forward()", 3: "forward", 99: "net.py:99"}),
        ([], {5: "net.py:5", 3: "net.py:3", 99: "net.py:99"}),
    ]
    for options, expected in cases:
        stats = profile(source, tmp_path / "net.prof", *options)
        assert {line: name for file, line, name in stats if file == str(script)} == expected


@pytest.mark.slow
def test_snakeviz_opens_it(captures: Path, tmp_path: Path) -> None:
    snakeviz = pytest.importorskip("snakeviz.stats")
    source = captures / "nvprof-v100-apex" / "net.dict"
    profile(source, tmp_path / "net.prof")
    loaded = pstats.Stats(str(tmp_path / "net.prof"))
    rows = snakeviz.table_rows(loaded)
    assert any("language-model.py:319(language-model.py:319)" in str(row) for row in rows)
    assert "language-model.py:319(language-model.py:319)" in snakeviz.json_stats(loaded)


@pytest.mark.slow
def test_stacks_add_up(ranks: Path, tmp_path: Path) -> None:
    whole = marshal.loads(quietly(ranks, tmp_path / "all.prof"))  # noqa: S302 - our own
    sums: Counter[tuple[Any, int]] = Counter()
    for file in ranks.iterdir():
        alone = marshal.loads(quietly(file, tmp_path / "one.prof"))  # noqa: S302 - our own
        for frame, entry in alone.items():
            for place in range(4):
                sums[frame, place] += entry[place]
    assert {(frame, place): whole[frame][place] for frame, place in sums} == pytest.approx(sums)
