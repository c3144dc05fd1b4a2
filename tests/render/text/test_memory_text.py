"""Bytes and differences of memory as text."""

import pytest

from pyprof.render.text.memory_text import signed, size


@pytest.mark.parametrize(
    ("value", "text"), [(0, "0 B"), (1500, "1.5 kB"), (2_000_000, "2 MB"), (3 * 10**9, "3 GB")]
)
def test_sizes_have_a_decimal_prefix(value: int, text: str) -> None:
    assert size(value) == text


def test_a_difference_has_its_sign() -> None:
    assert (signed(1500), signed(-1500)) == (f"+{size(1500)}", f"-{size(1500)}")
