"""The progress bar of long work: only on a terminal, and not with -q."""

import re
from pathlib import Path

import pytest

from pyprof.__main__ import main
from pyprof.process import progress
from tests.analysis.captured import op
from tests.builders import Range, Work, nsys_db
from tests.commands import on_a_terminal

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


@pytest.mark.few(3)
@pytest.mark.slow
@pytest.mark.usefixtures("net")
@pytest.mark.parametrize(("arguments", "names"), STAGES.items(), ids=lambda value: value[0])
def test_stages_are_named_on_a_bar(
    arguments: tuple[str, ...], names: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "_LONG_BYTES", 0)
    shown = on_a_terminal(monkeypatch, "stderr", *arguments)
    assert re.findall(r"\] +(\d+)/(\d+) +(\w+(?: up)?)", shown) == [
        (str(done), str(len(names)), name) for done, name in enumerate([*names, "done"])
    ]


@pytest.mark.usefixtures("net")
@pytest.mark.parametrize("quiet", [True, False], ids=["-q", "a small file"])
def test_no_bar_with_quiet_or_for_short_work(quiet: bool, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: FBT001 - a parameter
    if quiet:
        monkeypatch.setattr(progress, "_LONG_BYTES", 0)
    assert on_a_terminal(monkeypatch, "stderr", "summary", *["-q"] * quiet, "net.sqlite") == ""


def test_no_bar_in_a_file(
    net: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(progress, "_LONG_BYTES", 0)
    main(["summary", str(net)], standalone_mode=False)
    assert capsys.readouterr().err == ""
