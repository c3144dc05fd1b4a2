"""The sizes of batches that graphs are captured for."""

import pytest

from pyprof.marker import graph_sizes


def test_the_graph_for_a_batch() -> None:
    captured = (32, 1, 8)
    assert [graph_sizes.chosen(size, captured) for size in (1, 2, 8, 33)] == [1, 8, 8, None]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("capture_8192_PIECEWISE", (8192, "PIECEWISE")),
        ("capture_32_DECODE", (32, "DECODE")),
        ("capture_the_flag", None),
        ("recapture_32_DECODE", None),
    ],
)
def test_the_range_around_a_capture(text: str, told: tuple[int, str] | None) -> None:
    """Batch size and mode."""
    assert graph_sizes.captured(text) == told
