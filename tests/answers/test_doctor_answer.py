"""The answer of `pyprof doctor`."""

import json
from pathlib import Path

import pytest

from pyprof.capture import machine
from tests.answers.checked import ask, checked
from tests.builders import SECRETS, Work, nsys_db
from tests.commands import run


def test_doctor_of_this_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The text's content, with states and remedies as fields."""
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
    a = nsys_db(tmp_path / "a.sqlite", [Work(call=(10, 20))])
    answer = ask("doctor", a)
    assert answer["capture"]["activity_count"] == 1
    assert answer["machine"] == []
    text = run("doctor", a).stdout
    assert len(answer["pitfalls"]) == text.count("\n- ") > 0
    assert not any(secret in json.dumps(answer) for secret in SECRETS)
