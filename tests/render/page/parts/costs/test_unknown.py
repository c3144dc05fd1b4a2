"""Unknown costs on the page, with their remedies."""

from pathlib import Path

import pytest

from pyprof.answers.parts import KnownCost, UnknownCost
from pyprof.render.page.parts.costs import unknown
from tests.builders import Work, nsys_db
from tests.render.page.shown_parts import page_of


def test_an_unknown_cost_is_explained_with_its_remedy() -> None:
    """Reasons by time; the rest together."""
    reasons = [UnknownCost("shapes not recorded", 500, 3)]
    reasons += [UnknownCost(f"unknown op f{n}", n, 1) for n in range(19, -1, -1)]
    table = unknown.reasons(KnownCost("GPU", 1000, 0.5, None, tuple(reasons)))
    assert table[0] == (
        "shapes not recorded", "500 ns", "50.0", "3",
        "capture with pyprof capture, or with record_shapes=True",
    )  # fmt: skip
    assert table[1][0] == "unknown op f19"
    assert "docs/instrument.md" in table[1][4]
    assert len(table) == 13
    assert table[-1][:4] == ("9 other reasons", "36 ns", "3.6", "9")


@pytest.mark.parametrize("kernel", ["my_kernel", "at::native::kernel"])
def test_only_a_pytorch_program_is_told_to_instrument_it(tmp_path: Path, kernel: str) -> None:
    """`pyprof.init()` would do nothing for a program in CUDA C++."""
    file = nsys_db(tmp_path / "net.sqlite", [Work(kernel, (1000, 9000), call=(100, 900))])
    page = page_of(file)
    assert "begin the capture earlier, call pyprof.init()" in page
    assert ("what to do is for a PyTorch program" in page) == (kernel == "my_kernel")
