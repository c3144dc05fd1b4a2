"""Memory in other reports: a section of the summary, and two snapshots compared."""

import gzip
import json
from pathlib import Path

import pytest

from tests.allocations import built
from tests.analysis.captured import capture
from tests.answers.checked import ask
from tests.commands import printed, run
from tests.fuzz import seeds


def trace_of_memory(path: Path, *, recorded: bool) -> Path:
    (seed,) = (each for each in seeds._memory() if each.kind == "json")
    whole = {"profile_memory": int(recorded), **json.loads(seed.data)}
    text = json.dumps(whole).encode()
    path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)
    return path


@pytest.mark.few(1)
@pytest.mark.slow
@pytest.mark.parametrize("name", ["net.json", "net.json.gz"])
def test_a_summary_names_the_peak_of_a_trace(tmp_path: Path, name: str) -> None:
    """If memory was recorded, by the trace's header."""
    shown = run("summary", trace_of_memory(tmp_path / name, recorded=True)).stdout
    assert "Memory\nPeak on cpu:0 of rank 1: 1.51 kB\n" in shown
    assert "Memory\n" not in run("summary", trace_of_memory(tmp_path / name, recorded=False)).stdout


def test_memory_beside_chosen_rows_is_that_of_the_whole_recording(tmp_path: Path) -> None:
    path = trace_of_memory(tmp_path / "net.json", recorded=True)
    assert "Memory (whole recording)\n" in run("summary", "--where", "sil>0", path).stdout


def test_events_are_found_without_the_setting_in_the_header(tmp_path: Path) -> None:
    """Older torch and tools that rewrite traces leave it out."""
    path = trace_of_memory(tmp_path / "net.json", recorded=True)
    whole = json.loads(path.read_text())
    del whole["profile_memory"]
    path.write_text(json.dumps(whole))
    assert "Memory\n" in run("summary", path).stdout
    whole["traceEvents"] = [each for each in whole["traceEvents"] if each["name"] != "[memory]"]
    path.write_text(json.dumps(whole))
    assert "Memory\n" not in run("summary", path).stdout


def test_a_summary_names_the_peak_of_a_snapshot_next_to_it(tmp_path: Path) -> None:
    """With its leak; a damaged snapshot is ignored here."""
    net = capture(tmp_path / "net.sqlite")
    snapshot = built.write(tmp_path / "net.memory.pickle", built.training(5, leak=1000))
    shown = run("summary", net).stdout
    assert "Memory\nPeak on cuda:0: 26.2 MB of 1.1 TB reserved\n" in shown
    words = " ".join(shown.split())
    assert "gradients 4.19 MB, parameters 4.19 MB, temporaries 1.05 MB, unknown 5 kB" in words
    assert "By: train.py:10 8.39 MB, train.py:20 8.39 MB, unknown 5.24 MB" in words
    assert "Grows by 1 kB a step at train.py:11" in shown
    snapshot.write_bytes(snapshot.read_bytes()[:100])
    done = run("summary", net)
    assert done.code == 0
    assert "Memory\n" not in done.stdout


def test_two_snapshots_are_compared(tmp_path: Path) -> None:
    before = built.write(tmp_path / "a.pickle", built.training(5))
    after = built.write(tmp_path / "b.pickle", built.training(5, leak=1 << 20))
    lines = [" ".join(line.split()) for line in printed("diff", before, after).splitlines()]
    assert "Peak 26.2 MB 31.5 MB +5.24 MB" in lines
    assert "/home/user/train.py:11 0 B 5.24 MB +5.24 MB +5" in lines


def test_equal_snapshots_have_no_differences(tmp_path: Path) -> None:
    path = built.write(tmp_path / "a.pickle", built.training())
    other = built.write(tmp_path / "b.pickle", built.training())
    shown = run("diff", path, other).stdout
    assert "At the peaks by" not in shown
    assert run("diff", path, other, "--csv").code == 2
    assert run("diff", path, other, "--by", "op").code == 2
    assert run("diff", path, other, "--steps", "1:").code == 2


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("limit", "code", "said"),
    [
        ("peak>+5%", 3, "peak>+5%: peak changed by +5.24 MB (+20.0 %)"),
        ("peak>5MiB", 0, ""),
        ("peak>5.2MB", 3, "peak>5.2MB"),
        ("peak<0", 0, ""),
        ("end>1B", 3, "end>1B"),
        ("start>0%", 0, ""),
        ("start>0", 0, ""),
        ("time>3%", 2, "metrics are peak, reserved, start, end"),
        ("peak>5m", 2, "with a unit of %"),
    ],
)
def test_limits_of_memory(tmp_path: Path, limit: str, code: int, said: str) -> None:
    """Exit code 3 beyond it, 2 if it is invalid."""
    before = built.write(tmp_path / "a.pickle", built.training(5))
    after = built.write(tmp_path / "b.pickle", built.training(5, leak=1 << 20))
    done = run("diff", before, after, "--fail-if", limit)
    assert done.code == code, done.stderr
    assert said in " ".join(done.stderr.split())
    assert bool(done.stderr) == bool(said)
    if code != 2:
        answer = json.loads(run("diff", before, after, "--fail-if", limit, "--json").stdout)
        assert bool(answer["failed"]) == bool(said)


@pytest.mark.slow
def test_ranks_are_listed_by_their_peaks(tmp_path: Path) -> None:
    """With the captures' ranks if snapshots' names have none; as text and JSON."""
    files = [tmp_path / f"rank{number}" / "net.sqlite" for number in (0, 1)]
    for number, path in enumerate(files):
        path.parent.mkdir()
        capture(path)
        device = built.Device()
        device.alloc(1000 + 2000 * number, built.user(number))
        built.write(path.with_name("net.memory.pickle"), device)
    shown = run("ranks", *files, "-q").stdout
    lines = [line.split() for line in shown[shown.index("Peaks of memory") :].splitlines()]
    assert lines[2][:4] == ["1", "cuda:0", "3", "kB"]
    assert lines[3][:4] == ["0", "cuda:0", "1", "kB"]
    peaks = [(rank["rank"], rank["peak_bytes"]) for rank in ask("ranks", *files, "-q")["memory"]]
    assert peaks == [(1, 3000), (0, 1000)]
    assert "of rank 1: 3 kB" in run("summary", *files, "-q").stdout
    for path in files:
        path.with_name("net.memory.pickle").unlink()
    assert "memory" not in run("ranks", *files, "-q").stdout
    assert ask("ranks", *files, "-q")["memory"] == []
