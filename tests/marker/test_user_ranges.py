"""Names of the user's ranges, and the direction that they imply."""

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
def test_other_ranges_are_the_users(text: str, name: str) -> None:
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
    """So that its steps are one; the profiler's own name is not a layer."""
    assert marker.classify(text) == Kind.STEP
    assert marker.step_name(text) == name


@pytest.mark.parametrize(
    ("name", "direction"),
    [
        *(("forward", "fprop"), ("attn(F)", "fprop"), ("fwd_layer_3", "fprop")),
        *(("TransformerBlock.forward", "fprop"), ("gpu_model_runner: forward", "fprop")),
        *(("backward-compute", "bprop"), ("mlp(W)", "bprop"), ("mlp(B)", "bprop")),
        ("bwd", "bprop"),
        *(("lossBackward", "bprop"), ("optimizer_step", "optim"), ("optim step", "optim")),
        *(("optimizer-inner-step", "optim"), ("zero_grad", "optim"), ("Self-Attention", "")),
        *(("forward-backward", ""), ("feed_forward", ""), ("FeedForward", "")),
        *(("fast-forwarding", ""), ("feed_forward backward", "bprop"), ("", "")),
    ],
)
def test_a_name_gives_a_direction_or_none(name: str, direction: str) -> None:
    """As a word of its own; two that differ, or `feed forward`, give none."""
    assert marker.direction(name) == direction
