"""The progress bar of long work: only on a terminal, and not with -q."""

import os
import re
import sys
from pathlib import Path

import pytest

from pyprof import progress
from pyprof.__main__ import main
from tests.analysis.captured import op
from tests.builders import Range, Work, nsys_db

pty = pytest.importorskip("pty", reason="terminals are others there")

SIDE = ["reading", "parsing", "adding up"]
STAGES = {
    ("summary", "net.sqlite"): SIDE,
    ("lines", "net.sqlite"): SIDE,
    ("export", "net.sqlite", "-o", "net.csv"): ["reading", "parsing", "costing", "writing"],
    ("report", "net.sqlite", "-o", "net.html"): [*SIDE, "drawing"],
    ("roofline", "net.sqlite", "-o", "net.html"): [*SIDE, "drawing"],
    ("diff", "net.sqlite", "net.sqlite"): [*SIDE, *SIDE, "comparing"],
}


@pytest.fixture
def net(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return nsys_db(
        tmp_path / "net.sqlite", [Work("exp", (200, 300), (110, 120))],
        [Range(op("exp", 16, 8), (105, 125))],
    )  # fmt: skip


def on_a_terminal(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> str:
    """Run a command whose stderr is a terminal; return what is written there."""
    ours, theirs = pty.openpty()
    with os.fdopen(theirs, "w") as terminal, monkeypatch.context() as patch:
        patch.setattr(sys, "stderr", terminal)
        assert not main(arguments, standalone_mode=False)
        terminal.write("end")
        terminal.flush()
        shown = b""
        while not shown.endswith(b"end"):  # a terminal gives what it has
            shown += os.read(ours, 1 << 16)
    os.close(ours)
    return shown.decode().removesuffix("end")


@pytest.mark.few(3)
@pytest.mark.slow
@pytest.mark.usefixtures("net")
@pytest.mark.parametrize(("arguments", "names"), STAGES.items(), ids=lambda value: value[0])
def test_stages_are_named_on_a_bar(
    arguments: tuple[str, ...], names: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One after the other, with how many are done; at the end all are."""
    monkeypatch.setattr(progress, "_LONG_BYTES", 0)
    shown = on_a_terminal(monkeypatch, *arguments)
    assert re.findall(r"\] +(\d+)/(\d+) +(\w+(?: up)?)", shown) == [
        (str(done), str(len(names)), name) for done, name in enumerate([*names, "done"])
    ]


@pytest.mark.usefixtures("net")
@pytest.mark.parametrize("quiet", [True, False], ids=["-q", "a small file"])
def test_no_bar_with_quiet_or_for_short_work(quiet: bool, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: FBT001 - a parameter
    if quiet:
        monkeypatch.setattr(progress, "_LONG_BYTES", 0)
    assert on_a_terminal(monkeypatch, "summary", *["-q"] * quiet, "net.sqlite") == ""


def test_no_bar_in_a_file(
    net: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Only a terminal has one."""
    monkeypatch.setattr(progress, "_LONG_BYTES", 0)
    main(["summary", str(net)], standalone_mode=False)
    assert capsys.readouterr().err == ""
