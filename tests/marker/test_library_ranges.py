"""Ranges of libraries, by domain and by name."""

import pytest

from pyprof import marker
from pyprof.marker import Kind


@pytest.mark.parametrize(
    "text",
    [
        *("ncclAllReduce", "ncclGroupEnd", "nccl:all_reduce", "MPI_Send", "nvshmemx_barrier"),
        *("cublasGemmEx", "cublasLtMatmul", "cudnnConvolutionForward", "nvte_cublas_gemm"),
        *("cub::DeviceReduce::Sum", "thrust::sort", "ExpressionEvaluator::evaluate"),
        *("transform_replay.cpp::replay", "IrContainer clear", "detach"),
        *("<forward op>, op_id = 2, sizes = [[8]]", "_grad_sum_to_size, op_id = 3"),
        *("## Call CompiledFxGraph fal4xp ##", "Torch-Compiled Region: 0/0", "Pregraph bytecode"),
        *("TorchDynamo Cache Lookup", "AOTDispatcher Runtime Wrapper Prologue"),
        *("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", "_compile.compile_inner"),
        *("DistributedDataParallel.forward", "detach_, op_id = 4", "", "  ", "{'loss': 0.3}"),
    ],
)
def test_what_a_library_pushes_names_no_part_of_the_program(text: str) -> None:
    """Nor does PyTorch's own, or an empty text."""
    assert marker.classify(text) == Kind.CONTEXT


@pytest.mark.parametrize(
    ("domain", "theirs"),
    [("NCCL", True), ("CCCL", True), ("cuBLAS", True), ("Rank0", False), ("my app", False)],
)
def test_domains_of_libraries(domain: str, theirs: bool) -> None:  # noqa: FBT001 - a case
    """Any other domain is the user's."""
    assert marker.is_library_domain(domain) == theirs
