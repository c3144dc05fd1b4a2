"""Text of a comparison."""

from pyprof.answers.diff_answer import Stage
from pyprof.render.text.diff_text import stage_rows


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
