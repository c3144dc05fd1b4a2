"""The answers of `pyprof memory`, and of `pyprof diff` of two snapshots."""

from pathlib import Path

import pytest

from tests.allocations import built
from tests.answers.checked import ask, checked
from tests.commands import run


@pytest.mark.slow
def test_memory_is_that_of_snapshots_with_and_without_times(tmp_path: Path) -> None:
    """And of traces; invalid Unicode in names does no harm."""
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


@pytest.mark.slow
def test_two_snapshots_are_compared_as_json(tmp_path: Path) -> None:
    """With all figures of the text, and devices in only one of them."""
    second = built.Device(number=1)
    second.alloc(1000, built.user(1))
    before = built.write(tmp_path / "a.pickle", built.training(5), second)
    after = built.write(tmp_path / "b.pickle", built.training(5, leak=1 << 20))
    answer = ask("diff", before, after)
    assert (answer["kind"], answer["only_a"], answer["only_b"]) == ("memory_diff", ["cuda:1"], [])
    (device,) = answer["devices"]
    peaks = [ask("memory", path)["devices"][0]["peak_bytes"] for path in (before, after)]
    peak = device["metrics"]["peak"]
    assert [peak["a_bytes"], peak["b_bytes"]] == peaks
    assert peak["change_bytes"] == 5 << 20 == peaks[1] - peaks[0]
    assert peak["change_share"] == pytest.approx((5 << 20) / peaks[0])
    assert device["metrics"]["start"]["change_share"] is None
    (line,) = device["by"]["line"]
    assert (line["name"], line["change_bytes"]) == ("/home/user/train.py:11", 5 << 20)
    assert "Only in A: cuda:1" in run("diff", before, after).stdout
