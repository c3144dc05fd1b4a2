"""The answer of `pyprof memory`."""

from pathlib import Path

from tests.allocations import built
from tests.answers.checked import ask, checked
from tests.commands import run


def test_memory_is_that_of_snapshots_with_and_without_times(tmp_path: Path) -> None:
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
