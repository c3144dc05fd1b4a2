"""Names of ranges: whose they are, what they are called, which direction they say."""

import pytest

from pyprof import marker
from pyprof.marker import Kind


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Self-Attention", "Self-Attention"),
        ("layer_3", "layer_3"),
        ("attn(F)", "attn(F)"),
        ("## forward ##", "forward"),
        ("FSDP::pre_forward (layers.0)", "layers.0 (FSDP pre_forward)"),
        (
            "FSDP::post_forward (blocks.2._checkpoint_wrapped_module), op_id = 3",
            "blocks.2 (FSDP post_forward)",
        ),
        ("FSDP::all_gather, op_id = 12", "FSDP all_gather"),
        (
            "{'Module': 'model.layers.0.self_attn', 'TrainableParams': {}, 'Inputs': [[8, 4096]]}",
            "model.layers.0.self_attn",
        ),
        ("[pl][profile][Strategy]DDPStrategy.training_step", "DDPStrategy.training_step"),
        ("[pl][module]torch.nn.modules.linear.Linear: model.fc", "model.fc"),
        ("transformer_engine.LayerNormLinear.forward.gemm", "LayerNormLinear.forward.gemm"),
        ("gpu_model_runner: forward", "gpu_model_runner: forward"),
        ("optimizer_step, op_id = 99", "optimizer_step"),
        ("forward-compute", "forward-compute"),
        ("MyModel::encode", "MyModel::encode"),
    ],
)
def test_what_nobody_else_claims_is_the_users(text: str, name: str) -> None:
    """And reads as its author named the part of the program."""
    assert marker.classify(text) == Kind.USER
    assert marker.range_name(text) == name


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("iteration 12", "iteration"),
        ("train_step", "train_step"),
        ("Step 0 to 10", "Step"),
        ("step[DECODE bs=32]", "step[DECODE]"),
        ("execute_32_context_0(sq0sk0sqsq0sqsk0)_generation_32(sq32sk9sqsq32sqsk9)", "execute"),
        ("execute_context_1(888)_generation_0(0)", "execute"),
        ("execute_new_3_cached_4", "execute"),
        ("[pl][profile]run_training_batch", "run_training_batch"),
        ("training_step", "training_step"),
        ("run_batch", "run_batch"),
        ("ProfilerStep#7", ""),
    ],
)
def test_a_step_is_named_without_its_number(text: str, name: str) -> None:
    """So that its steps are one; the profiler's own name no part of the program."""
    assert marker.classify(text) == Kind.STEP
    assert marker.step_name(text) == name


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
def test_functions_of_torchscript_are_no_ops(text: str, kind: Kind) -> None:
    """They name what their ops are in; ops have a namespace, a number or, once, no id."""
    assert marker.classify(text) == kind


@pytest.mark.parametrize(
    ("name", "direction"),
    [
        *(("forward", "fprop"), ("attn(F)", "fprop"), ("fwd_layer_3", "fprop")),
        *(("TransformerBlock.forward", "fprop"), ("gpu_model_runner: forward", "fprop")),
        *(
            ("backward-compute", "bprop"),
            ("mlp(W)", "bprop"),
            ("mlp(B)", "bprop"),
            ("bwd", "bprop"),
        ),
        *(("lossBackward", "bprop"), ("optimizer_step", "optim"), ("optim step", "optim")),
        *(("optimizer-inner-step", "optim"), ("zero_grad", "optim"), ("Self-Attention", "")),
        *(
            ("forward-backward", ""),
            ("feed_forward", ""),
            ("FeedForward", ""),
            ("fast-forwarding", ""),
        ),
        *(("feed_forward backward", "bprop"), ("", "")),
    ],
)
def test_a_name_says_a_direction_or_none(name: str, direction: str) -> None:
    """A word of its own says it; two that differ, or `feed forward`, say nothing."""
    assert marker.direction(name) == direction


@pytest.mark.parametrize(
    ("domain", "theirs"),
    [("NCCL", True), ("CCCL", True), ("cuBLAS", True), ("Rank0", False), ("my app", False)],
)
def test_domains_of_libraries(domain: str, theirs: bool) -> None:  # noqa: FBT001 - a case
    """Any other domain is the user's."""
    assert marker.is_library_domain(domain) == theirs
