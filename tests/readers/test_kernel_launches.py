"""Launches that have a kernel in a complete capture."""

import numpy as np
import pyarrow as pa

from pyprof import schema
from pyprof.readers.kernel_launches import none_recorded
from tests.known import known


def _calls(name: str) -> pa.Table:
    columns = {"start": [0], "end": [5], "thread": [0], "corr": [1], "name": [name]}
    return schema.table(schema.CALLS, columns)


def test_a_capture_without_launches_lost_none() -> None:
    calls = _calls("cudaMemcpyAsync")
    assert none_recorded(calls, np.zeros(1, np.int64)) is None
    lost = known(none_recorded(_calls("cudaLaunchKernel"), np.zeros(1, np.int64)))
    assert "kernels were launched (1)" in lost
