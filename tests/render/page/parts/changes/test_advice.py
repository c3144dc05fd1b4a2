"""What advice checked, on the page."""

from pathlib import Path

from tests.builders import Work, nsys_db
from tests.render.page.shown_parts import page_of


def test_the_page_says_what_advice_checked(tmp_path: Path) -> None:
    """As the summary does: a kernel without an op cannot be classified by one."""
    file = nsys_db(tmp_path / "net.sqlite", [Work("my_kernel", (1000, 9000), call=(100, 900))])
    page = page_of(file)
    assert "Not looked at: gradients, loops, recomputation, distance from the peaks" in page
    assert "the op is unknown for 100 % of kernel time" in page
