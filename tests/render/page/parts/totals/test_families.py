"""Families of the page, the longest first."""

from tests.render.page.parts.conftest import Made


def test_each_family_has_its_time_and_share(made: Made) -> None:
    """Rows without a marker are one; a click selects rows by its id."""
    assert made["families"]["families"] == [
        ("element-wise", "1.00 us", 1000 / 1500, "family=0"),
        ("copy", "400 ns", 400 / 1500, "family=1"),
        ("other", "100 ns", 100 / 1500, "family=2"),
    ]
