"""The JSON of lines, peaks, doctor and ranks."""

import json
from pathlib import Path

import pytest

from pyprof.analysis.ranks.output_tables import TABLES
from pyprof.capture import machine
from tests.allocations import built
from tests.analysis.captured import capture
from tests.answers.checked import ask, checked
from tests.builders import SECRETS, Work, nsys_db
from tests.commands import run


def test_lines_add_up(tmp_path: Path) -> None:
    """Own times and what is unknown are all; the slowest line comes first."""
    answer = ask("lines", capture(tmp_path / "a.sqlite"))
    own = [line["own_ns"] for line in answer["lines"]]
    assert own == sorted(own, reverse=True)
    assert sum(own) + answer["unknown_ns"] == answer["total_ns"] == 750
    slowest = answer["lines"][0]
    assert slowest["line"] == "/home/me/model.py:30" == f"{slowest['file']}:{slowest['number']}"
    assert (slowest["calls"], slowest["own_ns"], slowest["share"]) == (1, 300, 0.4)


def test_figures_of_chosen_rows_say_so(tmp_path: Path) -> None:
    """Which conditions chose them, and of how much; null where all rows count."""
    a = capture(tmp_path / "a.sqlite", steps=4)
    kept = {"where": "op=relu", "row_count": 8, "all_row_count": 20, "time_ns": 800,
            "all_time_ns": 3000}  # fmt: skip
    for command in ("summary", "lines"):
        assert ask(command, a)["chosen"] is None
        assert ask(command, a, "--where", "op=relu")["chosen"] == kept
    in_steps = ask("summary", a, "--where", "op=relu", "--steps", "2:")["chosen"]
    assert (in_steps["row_count"], in_steps["all_row_count"]) == (4, 10)
    given = ask("summary", a, "--where", "op=relu")["utilization"]
    assert (given["mfu"], given["why"]) == (None, "it is of all work; leave out --where")
    assert ask("prof", a)["where"] is None
    asked = ("--where", "op=relu", "--where", "sil>50")
    assert ask("prof", a, *asked)["where"] == "op=relu and sil>50"


def test_launches_that_blocked_are_noted(tmp_path: Path) -> None:
    work = [Work("k", (100 * n + 20, 100 * n + 60), (100 * n, 100 * n + 80)) for n in range(1, 21)]
    (note,) = ask("summary", nsys_db(tmp_path / "blocked.sqlite", work))["notes"]
    assert note.startswith("launches blocked (CUDA_LAUNCH_BLOCKING=1)")
    assert ask("summary", capture(tmp_path / "a.sqlite"))["notes"] == []


def test_source_only_where_it_is_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """JSON is sent to others: the current folder is not read by itself."""
    folder = tmp_path / "me"
    folder.mkdir()
    (folder / "model.py").write_text("\n" * 11 + "    x = relu(x)\n")
    a = capture(tmp_path / "a.sqlite")
    monkeypatch.chdir(folder)
    assert {line["source"] for line in ask("lines", a)["lines"]} == {None}
    texts = {line["number"]: line["source"] for line in ask("lines", a, "--source", ".")["lines"]}
    assert texts == {12: "    x = relu(x)", 30: None, 7: None}


def test_memory(tmp_path: Path) -> None:
    """Of snapshots and traces, with times and without; names that are no Unicode do no harm."""
    device = built.training(5, leak=64 * 1024)
    device.oom(1 << 30, 5 << 20, built.CALL, ("f", "/home/me/\ud800.py", 10))
    snapshot = built.write(tmp_path / "a.pickle", device)
    (answer,) = ask("memory", snapshot)["devices"]
    assert answer["out_of_memory"][0]["line"] == "/home/me/?.py:10"
    assert answer["peak_bytes"] == sum(group["bytes"] for group in answer["by"]["category"])
    assert max(point["bytes"] for point in answer["timeline"]) == answer["peak_bytes"]
    done = run("memory", snapshot, "-o", tmp_path / "x.json")
    assert checked((tmp_path / "x.json").read_text())["devices"] == [answer], done.stderr
    for event in device.events:
        del event["time_us"]
    (untimed,) = ask("memory", built.write(tmp_path / "b.pickle", device))["devices"]
    assert {point["time_ns"] for point in untimed["timeline"]} == {None}
    assert (untimed["began_ns"], untimed["span_ns"]) == (None, None)


def test_peaks() -> None:
    """All cards, or one; -o x.json is the same."""
    answer = ask("peaks")
    (h100,) = [card for card in answer["devices"] if card["gpu"] == "H100 SXM"]
    assert (h100["sm_count"], h100["compute_capability"]) == (132, "9.0")
    assert 900 < h100["tflops"]["half tensor"] < 1000
    assert ask("peaks", "H100 SXM")["devices"] == [h100]
    done = run("peaks", "no such card", "--json")
    assert (done.code, done.stdout, done.stderr.count("\n")) == (1, "", 1)


def test_doctor_of_this_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the text says, with states and remedies apart."""
    findings = [
        machine.Finding(machine.State.GOOD, "2 x NVIDIA H100"),
        machine.Finding(machine.State.BAD, "torch is not installed", "pip install torch"),
    ]
    monkeypatch.setattr(machine, "findings", lambda: iter(findings))
    answer = ask("doctor")
    assert (answer["capture"], answer["pitfalls"]) == (None, [])
    assert answer["machine"] == [
        {"state": "ok", "text": "2 x NVIDIA H100", "remedy": ""},
        {"state": "bad", "text": "torch is not installed", "remedy": "pip install torch"},
    ]
    assert run("doctor", "-o", tmp_path / "x.json").code == 0
    assert checked((tmp_path / "x.json").read_bytes()) == answer


def test_doctor_of_a_capture(tmp_path: Path) -> None:
    """What it holds, and each pitfall by itself."""
    a = nsys_db(tmp_path / "a.sqlite", [Work(call=(10, 20))])
    answer = ask("doctor", a)
    assert answer["capture"]["activity_count"] == 1
    assert answer["machine"] == []
    text = run("doctor", a).stdout
    assert len(answer["pitfalls"]) == text.count("\n- ") > 0
    assert not any(secret in json.dumps(answer) for secret in SECRETS)


def test_ranks_have_all_tables(tmp_path: Path) -> None:
    """Those of CSV, under their old names at the top, each with the columns of CSV."""
    files = [capture(tmp_path / f"net.rank{n}.sqlite", steps=2) for n in (0, 1)]
    answer = ask("ranks", *files)
    for name, table in TABLES.items():
        assert all([*row] == [*table.columns] for row in answer[name])
    assert [row["rank"] for row in answer["ranks"]] == [0, 1]
    assert answer["left_out"] == []
