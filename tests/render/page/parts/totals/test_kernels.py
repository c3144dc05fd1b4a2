"""Kernels of the page, the longest first."""

from tests.analysis.captured import HOSTILE
from tests.render.page.parts.conftest import Made


def test_each_kernel_has_the_time_of_its_calls(made: Made) -> None:
    """With the op that called it, and its full name next to the short one."""
    rows = made["kernels"]["kernels"].rows
    assert [(row[0].note, row[1].number, row[3].text, row[4].text) for row in rows] == [
        ("exp_kernel", 600, "exp", "2"),
        ("[CUDA memcpy HtoD]", 400, "-", "2"),
        ("relu_kernel", 400, "relu", "4"),
        (HOSTILE, 100, "-", "2"),
    ]
