"""Shared by the readers of databases."""

import numpy as np
import pyarrow as pa

from pyprof.arrays import MISSING
from pyprof.readers import cupti


def test_calls_are_named_without_cudas_version() -> None:
    assert cupti.call_name("RUNTIME", 211) == "cudaLaunchKernel"
    assert cupti.call_name("RUNTIME", 99999) == "RUNTIME call 99999"


def test_shared_memory_is_static_and_dynamic_and_unknown_without_either() -> None:
    columns = dict.fromkeys(cupti.KERNEL_COLUMNS, pa.array([1, 2]))
    columns["dynamicSharedMemory"] = pa.array([10, None])
    smem = cupti.kernel_columns(pa.table(columns))["smem"]
    assert isinstance(smem, pa.ChunkedArray)
    assert smem.to_pylist() == [11, None]


def test_processes_are_in_the_order_of_their_lowest_devices() -> None:
    """Then of their ids; those whose devices are not known come last."""
    kernels = np.array([5, 9, 9, 4, 8]), np.array([MISSING, 2, 0, 3, 1])
    copies = np.array([5, 8, 7]), np.array([MISSING, 0, 1])
    assert cupti.by_first_device([kernels, copies]).pids == (8, 9, 7, 4, 5)
    assert cupti.by_first_device([]).pids == ()
