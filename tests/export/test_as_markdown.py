"""The Markdown report."""

from pathlib import Path

from tests.export.exported import export


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
