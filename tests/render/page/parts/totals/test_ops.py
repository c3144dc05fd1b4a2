"""Ops of the page, the longest first."""

from tests.render.page.parts.conftest import Made


def test_each_op_has_its_line_and_the_time_of_its_kernels(made: Made) -> None:
    rows = made["ops"]["ops"].rows
    ops = [(row[0].text, row[1].number, row[4].text) for row in rows]
    assert [op for op in ops if op[2].startswith("model.py")] == [
        ("exp", 600, "model.py:30"),
        ("relu", 400, "model.py:12"),
    ]
    assert sum(ns for _, ns, _ in ops) == 1500
