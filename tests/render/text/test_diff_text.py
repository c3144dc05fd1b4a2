"""Text of a comparison."""

from dataclasses import replace
from pathlib import Path

from pyprof.analysis.diff.compare import compare
from pyprof.analysis.diff.side import Side, summarise_side
from pyprof.answers.diff_answer import Stage
from pyprof.inputs.source import load
from pyprof.render.text.diff_text import diff_lines, metrics, stage_rows


def test_stages_are_named_by_their_op_or_its_absence() -> None:
    """A dash if nothing names it; several are counted."""
    stages = [Stage("mm", 1, 5, 10, 15), Stage(None, 1, -2, 15, 13), Stage("add", 3, 1, 13, 14)]
    assert [*stage_rows(stages)] == [
        ("A", "", "10 ns"),
        ("mm", "+5 ns", "15 ns"),
        ("-", "-2 ns", "13 ns"),
        ("3 others", "+1 ns", "14 ns"),
        ("B", "", "14 ns"),
    ]


def _side(path: Path, ns: int) -> Side:
    path.write_text(f'{{"kShortName": "k", "kLongName": "k", "kDuration": {ns}}}')
    return summarise_side(load(str(path)), ("kernel",), None)


def test_the_rows_of_a_cpu_are_ops(tmp_path: Path) -> None:
    """Only a GPU has kernels and copies."""
    found = compare(_side(tmp_path / "a.dict", 5), _side(tmp_path / "b.dict", 9))
    assert "kernels and copies" in [label for label, *_ in metrics(found)]
    assert "ops" in [label for label, *_ in metrics(replace(found, processor="CPU"))]


def test_names_of_stages_are_at_the_left(tmp_path: Path) -> None:
    found = compare(_side(tmp_path / "a.dict", 5), _side(tmp_path / "b.dict", 9))
    shown = "\n".join(diff_lines(found, None))
    assert "\nA          5 ns\nk   +4 ns  9 ns\nB          9 ns\n" in shown
