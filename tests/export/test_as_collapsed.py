"""Collapsed stacks, as flame-graph tools read them: a stack, a space, a weight."""

import re
from pathlib import Path

import pytest

from pyprof.marker import encode_trace
from tests.analysis.captured import HOSTILE, capture
from tests.builders import Range, Work, nsys_db
from tests.commands import printed

LINE = re.compile(r"([^ ;].*?) (\d+)")
"""What flamegraph.pl, inferno and speedscope make of a line."""


def collapsed(source: Path, target: Path, *options: str | Path) -> dict[str, int]:
    """Export a capture; return the weight of each stack."""
    printed("export", "-q", source, *options, "-o", target)
    lines = target.read_text(encoding="utf-8").splitlines()
    found = [LINE.fullmatch(line) for line in lines]
    assert all(found)
    weights = {match[1]: int(match[2]) for match in found if match}
    assert len(weights) == len(lines)
    return weights


def test_a_stack_is_lines_then_the_op_then_the_kernel(tmp_path: Path) -> None:
    """Outermost first, weights in ns; semicolons in a name would end a frame."""
    weights = collapsed(capture(tmp_path / "net.sqlite", hostile="a;b c"), tmp_path / "x.collapsed")
    lines = "/home/me/train.py:7;/home/me/model.py:12"
    assert weights == {
        f"{lines};torch.relu;relu_kernel": 200,
        "/home/me/train.py:7;/home/me/model.py:30;torch.exp;exp_kernel": 300,
        "a,b c": 50,
        "[CUDA memcpy HtoD]": 200,
    }


@pytest.mark.parametrize("hostile", [HOSTILE, "two\nlines", "tab\tbed 12", "核心 3"])
def test_a_name_breaks_no_line(hostile: str, tmp_path: Path) -> None:
    """Whatever it holds, a stack is one line that ends with its weight."""
    weights = collapsed(capture(tmp_path / "net.sqlite", hostile=hostile), tmp_path / "x.folded")
    assert sorted(weights.values()) == [50, 200, 200, 300]


def test_lines_are_called_after_their_functions(tmp_path: Path) -> None:
    """If --source is given, with file and line; else only these."""
    script = tmp_path / "net.py"
    script.write_text("class Net:\n    def forward(self):\n        pass\n")
    work = [Work("relu", (1000, 1100), (110, 120))]
    trace = encode_trace((f"{script}:3",))
    source = nsys_db(tmp_path / "net.sqlite", work, [Range(trace, (100, 200))])
    assert [*collapsed(source, tmp_path / "x.collapsed")] == [f"{script}:3;relu"]
    named = collapsed(source, tmp_path / "y.collapsed", "--source", tmp_path)
    assert [*named] == [f"forward ({script}:3);relu"]


@pytest.mark.slow
def test_ranks_add_up(tmp_path: Path) -> None:
    (tmp_path / "ranks").mkdir()
    for rank in range(2):
        capture(tmp_path / "ranks" / f"net-rank{rank}.sqlite")
    one = collapsed(tmp_path / "ranks" / "net-rank0.sqlite", tmp_path / "x.collapsed")
    both = collapsed(tmp_path / "ranks", tmp_path / "y.collapsed")
    assert both == {stack: 2 * ns for stack, ns in one.items()}
