"""Limits of `pyprof memory --fail-if`."""

import pytest

from pyprof.analysis.diff.memory_limits import METRICS, parse


@pytest.mark.parametrize(
    ("text", "value"),
    [("peak>2GB", 2e9), ("reserved>1GiB", 2.0**30), ("end>+5%", 0.05), ("start>0", 0.0)],
)
def test_a_limit_is_read_with_its_unit(text: str, value: float) -> None:
    limit = parse(text)
    assert limit.name == text.partition(">")[0]
    assert limit.value == pytest.approx(value)
    assert limit.relative is text.endswith("%")


def test_a_number_without_a_unit_is_refused() -> None:
    with pytest.raises(ValueError, match="unit of bytes"):
        parse("peak>5")


def test_a_misspelt_metric_is_suggested() -> None:
    with pytest.raises(ValueError, match="peak") as refused:
        parse("peek>5%")
    assert all(name in str(refused.value) for name in METRICS)
