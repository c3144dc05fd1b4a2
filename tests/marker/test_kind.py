"""Kinds of texts by their form."""

import pytest

from pyprof import marker
from pyprof.marker import Kind


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("forward, op_id = 3, sizes = [[], [2, 3]]", Kind.USER),
        ("my_attention, op_id = 3, sizes = [[2, 3]]", Kind.USER),
        ("MyFunction, seq = 4, op_id = 3, sizes = [[2, 3]]", Kind.SEQ),
        ("add, sizes = [[2, 3]]", Kind.SEQ),
        ("aten::mm, sizes = [[2, 3]]", Kind.SEQ),
        ("CompiledFunctionBackward, sizes = [[2, 3]]", Kind.SEQ),
        ("CompiledFunctionBackward, op_id = 3, sizes = [[2, 3]]", Kind.SEQ),
        ("CompiledFunctionBackward", Kind.SEQ),
        ("record_param_comms", Kind.SEQ),
        ("record_param_comms, op_id = 3", Kind.SEQ),
    ],
)
def test_functions_of_torchscript_are_not_ops(text: str, kind: Kind) -> None:
    """They contain ops; ops have a namespace, a number or, in old versions, no id."""
    assert marker.classify(text) == kind


def test_a_layer_text_without_colons_is_plain_already() -> None:
    assert marker.plain_layer("layer:a.b") == "layer:a.b"
    assert marker.plain_layer("layer::a:b") == "layer:a:b"


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
        "code_gen_data: fn_name=GraphLowering.compile_to_module, compile_id=0/0",
        *("DistributedDataParallel.forward", "detach_, op_id = 4", "", "  ", "{'loss': 0.3}"),
        *("{'mod': 'x'}", "{'op': 'relu', 'args': []}", '{"model_config": {"workers": 4}}'),
    ],
)
def test_ranges_of_libraries_are_not_layers(text: str) -> None:
    """Nor are PyTorch's own, or an empty text."""
    assert marker.classify(text) == Kind.CONTEXT


@pytest.mark.parametrize(
    ("domain", "theirs"),
    [("NCCL", True), ("CCCL", True), ("cuBLAS", True), ("Rank0", False), ("my app", False)],
)
def test_domains_of_libraries(domain: str, theirs: bool) -> None:  # noqa: FBT001 - a case
    """Any other domain is the user's."""
    assert marker.is_library_domain(domain) == theirs
