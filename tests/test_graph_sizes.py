"""What ranges of serving frameworks say of the size of a batch, and of a graph."""

from __future__ import annotations

import pytest

from pyprof.marker import graph_sizes


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("execute_8192_context_9(sq8155sk8430sqsq7sqsk6)_generation_37(sq37sk4sqsq37sqsk4)", 8192),
        ("execute_32_context_0(sq0sk0sqsq0sqsk0)_generation_32(sq32sk32785sqsq32sqsk32785)", 32),
        ("execute_context_9(sq100sk100sqsq1sqsk1)_generation_3(sq3sk9sqsq3sqsk9)", 103),
        ("execute_context_1(888)_generation_0(0)", 888),
        ("step[DECODE bs=27]", 27),
        ("step[EXTEND bs=15 toks=15360]", None),  # of tokens, and no graph is captured for it
        ("execute_0_context_0(0)_generation_0(0)", None),
        (f"step[DECODE bs={'9' * 400}]", None),
        ("execute", None),
        ("aten::mm", None),
    ],
)  # fmt: skip
def test_the_batch_of_a_step(text: str, size: int | None) -> None:
    """Tokens, padding included, or requests; None where no size is stated."""
    assert graph_sizes.batch_size(text) == size


def test_the_graph_for_a_batch() -> None:
    """The least that has room."""
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
