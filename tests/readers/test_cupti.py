"""Shared by the readers of nsys and nvprof."""

import pyarrow as pa

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
