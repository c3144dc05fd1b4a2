"""Samples of counters, before they are tied to kernels."""

import numpy as np
import pytest

from pyprof.readers.device_metrics import meaning, samples
from tests.known import known


def test_a_clock_in_hz_under_a_name_in_mhz_is_in_hz() -> None:
    """And of one time, the last value counts; a share is not a clock."""
    meanings = [known(meaning("SM clock (MHz)")), known(meaning("SM Active (%)"))]
    time, which = np.array([0, 1, 1, 1]), np.array([0, 0, 0, 1])
    table = samples(0 * time, time, meanings, which, np.array([1.41e3, 7.0, 1.2e9, 25.0]))
    assert table["value"].to_pylist() == [1.41e9, 1.2e9, 25.0]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("value", [1.7e308, -1.7e308, float("inf"), float("nan"), -1.0])
def test_an_impossible_value_is_dropped(value: float) -> None:
    clock = known(meaning("SM clock (MHz)") or meaning("GPC Clock Frequency [MHz]"))
    zero, one = np.zeros(2, np.int64), np.arange(2)
    table = samples(zero, one, [clock], zero, np.array([1000.0, value]))
    assert table.num_rows == 1
