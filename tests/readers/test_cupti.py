"""Shared by the readers of nsys and nvprof."""

import numpy as np
import pyarrow as pa

from pyprof.readers import cupti


def test_calls_are_named_without_cudas_version() -> None:
    assert cupti.call_name("RUNTIME", 211) == "cudaLaunchKernel"
    assert cupti.call_name("RUNTIME", 99999) == "RUNTIME call 99999"


def test_copies_are_named_by_their_kinds() -> None:
    names = cupti.copy_names(np.array([1, 8, 11, 99, 1])).to_pylist()
    assert names == [
        "[CUDA memcpy HtoD]",
        "[CUDA memcpy DtoD]",
        "[CUDA Unified Memory memcpy HtoD]",
        "[CUDA memcpy]",
        "[CUDA memcpy HtoD]",
    ]


def test_columns_share_one_numbering() -> None:
    values, (one, other) = cupti.index_of([np.array([7, 9, 7]), np.array([9, 5])])
    assert values[one].tolist() == [7, 9, 7]
    assert values[other].tolist() == [9, 5]
    assert len(values) == 3


def test_shared_memory_is_static_and_dynamic() -> None:
    columns = dict.fromkeys(cupti.KERNEL_COLUMNS, pa.array([1, 2]))
    columns["dynamicSharedMemory"] = pa.array([10, None])
    smem = cupti.kernel_columns(pa.table(columns))["smem"]
    assert isinstance(smem, pa.ChunkedArray)
    assert smem.to_pylist() == [11, 2]
