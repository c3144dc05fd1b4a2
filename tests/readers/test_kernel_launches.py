"""Launches that have a kernel in a complete capture."""

import numpy as np
import pyarrow as pa

from pyprof import schema
from pyprof.readers.kernel_launches import kernel_launches, none_recorded, outermost
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


def test_launches_of_a_captured_graph_have_no_kernel() -> None:
    calls = _calls(
        *("cudaLaunchKernel", "cudaStreamBeginCapture", "cudaLaunchKernel"),
        *("cudaStreamEndCapture", "cuLaunchKernelEx", "cudaMemcpyAsync"),
    )
    assert kernel_launches(calls, np.zeros(len(calls), np.int64)).tolist() == [0, 4]


def test_a_driver_call_inside_a_runtime_call_is_the_same_launch() -> None:
    calls = _calls("cudaLaunchKernel", "cuLaunchKernel", "cudaLaunchKernel", length=11)
    calls = calls.set_column(1, "end", pa.array([25, 15, 35]))
    number = outermost(calls, np.arange(3))
    assert number[0] == number[1]


def test_a_capture_without_launches_lost_none() -> None:
    calls = _calls("cudaMemcpyAsync")
    assert none_recorded(calls, np.zeros(1, np.int64)) is None
    lost = known(none_recorded(_calls("cudaLaunchKernel"), np.zeros(1, np.int64)))
    assert "kernels were launched (1)" in lost
