"""Samples of counters, before they are tied to kernels."""

import numpy as np
import pytest

from pyprof.readers.device_metrics import meaning, samples
from tests.known import known


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("value", [1.7e308, -1.7e308, float("inf"), float("nan"), -1.0])
def test_an_impossible_value_is_dropped(value: float) -> None:
    clock = known(meaning("SM clock (MHz)") or meaning("GPC Clock Frequency [MHz]"))
    zero, one = np.zeros(2, np.int64), np.arange(2)
    table = samples(zero, one, [clock], zero, np.array([1000.0, value]))
    assert table.num_rows == 1
