"""The Markdown report."""

import re
from pathlib import Path

from pyprof.answers.gains import gain_of
from pyprof.inputs.source import load
from tests.analysis.answered import answered
from tests.builders import Work, nsys_db
from tests.export.exported import export

US = 1000


def test_markdown_totals_ops_kernels_layers_and_lines(source: Path) -> None:
    """A section each, the longest first; work without an op is one group."""
    text = export(source, ".md").read_text()
    titles = [line for line in text.splitlines() if line.startswith("#")]
    assert titles == ["# GPU profile", "## Ops", "## Kernels", "## Layers", "## Source lines"]
    ops = text.split("## Ops")[1].split("##")[0].splitlines()[4:]
    assert [line.split(" | ")[:3] for line in ops if line] == [
        ["| exp", "1", "300 ns"],
        ["| \\(none\\)", "2", "250 ns"],
        ["| relu", "2", "200 ns"],
    ]


def test_kernels_of_ops_are_not_said_to_be_their_calls(source: Path) -> None:
    """The summary counts calls of ops, each of which may launch several kernels."""
    tables = [line for line in export(source, ".md").read_text().splitlines() if "time |" in line]
    assert [line.split(" | ")[:2] for line in tables] == [
        ["| op", "kernels"],
        ["| kernel", "calls"],
        ["| layer", "kernels"],
        ["| line", "kernels"],
    ]


def test_gains_are_those_of_the_summary(tmp_path: Path) -> None:
    """Guessed steps that hold nearly all work, but little of the time, are not what is judged."""
    work = [Work("setup", (10, 20), (1, 2))]
    for place in range(60):
        at = (20_000 + 50 * place) * US
        name = ("first", "second")[place % 2]
        work.append(Work(name, (at, at + 20 * US), (at - 10 * US, at - 5 * US)))
    path = nsys_db(tmp_path / "net.sqlite", work)
    text = export(path, ".md").read_text()
    answer = answered(load(str(path)))
    assert answer.steps.averaged_count
    assert re.findall(r"\*\*gain (.*?)\*\*", text) == [
        gain_of(entry).words for entry in answer.advice
    ]
    assert "a step" not in text
