"""Launches that have a kernel in a complete capture."""

import numpy as np
import pyarrow as pa

from pyprof import schema
from pyprof.readers.kernel_launches import none_recorded
from tests.known import known


def _calls(*names: str, length: int = 5) -> pa.Table:
    """Build calls of one thread, one after the other."""
    start = 10 * np.arange(len(names))
    return schema.table(
        schema.CALLS,
        {
            "start": start,
            "end": start + length,
            "thread": np.zeros(len(names), np.int32),
            "corr": np.arange(1, len(names) + 1),
            "name": pa.array(names).dictionary_encode(),
        },
    )


def test_a_capture_without_launches_lost_none() -> None:
    calls = _calls("cudaMemcpyAsync")
    assert none_recorded(calls, np.zeros(1, np.int64)) is None
    lost = known(none_recorded(_calls("cudaLaunchKernel"), np.zeros(1, np.int64)))
    assert "kernels were launched (1)" in lost
