"""Families of the page, the longest first."""

from tests.render.page.parts.conftest import Made


def test_each_family_has_its_time_and_share(made: Made) -> None:
    """Those without a marker are together; a click selects what has its number."""
    assert made["families"]["families"] == [
        ("element-wise", "1.00 us", 1000 / 1500, "family=0"),
        ("copy", "400 ns", 400 / 1500, "family=1"),
        ("other", "100 ns", 100 / 1500, "family=2"),
    ]
