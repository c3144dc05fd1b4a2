"""The contract of formulas: their worked example, foreign arguments, batches."""

from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from pyprof import ops
from pyprof.marker import Call, Opaque, Summary, Tensor, Value
from pyprof.ops import Cost, OpModel
from pyprof.ops.examples import bf16, f32, i64

FOREIGN: list[tuple[Value, ...]] = [
    (),
    (None,),
    ("text", 3, 2.5, True),
    (Opaque("Foo"),) * 12,
    (Tensor(()),) * 2,
    (f32(0), f32(0)),
    (Tensor((2, 3), "no_such_dtype"),) * 3,
    (Tensor((2, 3)), Tensor((7, 5, 11))),
    (bf16(1, 2, 3, 4, 5),) * 9,
    ((f32(2), "text"), (1, 2)),
    (Summary(1000), Summary(3, 12, "float32")),
    (-1, (-1, -5), i64(3), -2),
]
KEYWORDS: list[dict[str, Value]] = [{}, {"dim": 99}, {"input": f32(4, 4)}]
_BATCHED: dict[tuple[str, ...], str] = {
    ("input",): (
        "linear prelu glu normalize conv2d conv_transpose2d convolution aten::cudnn_convolution "
        "aten::mkldnn_convolution aten::_slow_conv2d_forward "
        "aten::cudnn_convolution_transpose aten::slow_conv_transpose2d "
        "torch.nn.functional.embedding torch.nn.functional.unfold torch.nn.functional.fold "
        "layer_norm group_norm instance_norm aten::instance_norm rms_norm max_pool2d avg_pool2d "
        "adaptive_avg_pool2d interpolate pad softmax aten::softmax aten::_softmax dropout"
    ),
    ("input", "grid"): "grid_sample",
    ("input", "mask"): "aten::native_dropout_backward",
    ("input", "grad_output"): (
        "aten::convolution_backward aten::cudnn_convolution_backward aten::_slow_conv2d_backward"
    ),
    ("grad_output", "output"): "aten::_softmax_backward_data",
    ("grad_output", "input", "mean", "rstd"): "aten::native_layer_norm_backward",
    ("query", "key", "value"): (
        "scaled_dot_product_attention _scaled_dot_product_attention_math "
        "aten::_scaled_dot_product_flash_attention "
        "aten::_scaled_dot_product_flash_attention_for_cpu "
        "aten::_scaled_dot_product_efficient_attention "
        "aten::_scaled_dot_product_fused_attention_overrideable flex_attention"
    ),
}
BATCHED = {name: arguments for arguments, names in _BATCHED.items() for name in names.split()}
"""By op, the tensor arguments whose first dimension is a batch: FLOPs are proportional to it."""


def contract_of(module: str) -> Callable[[OpModel], None]:
    """Return the test that each formula of a module below `pyprof.ops` keeps the contract."""
    own = [m for m in ops.models() if m.formula.__module__ == f"pyprof.ops.{module}"]
    ids = [f"{model.names[0]}-{model.direction}" for model in own]
    assert own, f"{module} has no formula"

    @pytest.mark.parametrize("model", own, ids=ids)
    def test(model: OpModel) -> None:
        where = f"pyprof/ops/{module.replace('.', '/')}.py"
        broken = [f"{where}: {model.names[0]} must be a formula that {clause}"
                  for clause in broken_clauses(model)]  # fmt: skip
        assert not broken, "\n".join(broken)

    return test


def broken_clauses(model: OpModel) -> Iterator[str]:
    """Yield the clauses of the contract that a formula breaks."""
    if not (model.formula.__doc__ or "").strip():
        yield "says in a docstring what it counts"
    if model.example is None:
        yield "carries a worked example, as one that no reader can follow is not trusted"
        return
    yield from _example(model, model.example)
    yield from _foreign(model)
    if batched := next((BATCHED[name] for name in model.names if name in BATCHED), None):
        yield from _batches(model, model.example, batched)


def _example(model: OpModel, example: Call) -> Iterator[str]:
    """Compare the example with its claim; costs that depend on data are unknown here, too."""
    if (model.flops, model.bytes) == (None, None) and not model.unrecorded:
        yield "tells FLOPs or bytes of the example"
    found = ops.cost(example, model.direction, context=model.context)
    if (found.flops, found.bytes) != (model.flops, model.bytes):
        yield f"gives what the example claims: {(model.flops, model.bytes)}, not {found}"
    if model.unrecorded and model.unrecorded != found.reason:
        yield f"gives the reason that it states: {model.unrecorded}, not {found.reason}"
    if ops.find(example, model.direction) is not model:
        yield "is found for the op of the example, which is one of its names"
    if not (ops.known(example) or not model.work or model.direction == ops.BPROP):
        yield "makes the op of the example a known one"


def _foreign(model: OpModel) -> Iterator[str]:
    """Whatever the arguments, the cost is non-negative integers, or None with a reason."""
    for call in _calls(model):
        found = ops.cost(call, model.direction)
        if not _sound(found):
            yield f"gives numbers or a reason, and never raises: {call} gave {found}"
            return  # others fail in the same way


def _calls(model: OpModel) -> Iterator[Call]:
    for name in model.names[:3]:
        mod, _, plain = name.replace("::", ".").rpartition(".")
        for spelled in {mod or "torch", mod or "aten"}:
            for args in FOREIGN:
                for kwargs in KEYWORDS:
                    yield Call(spelled, plain, args, kwargs)


def _sound(found: Cost) -> bool:
    numbers = (found.flops, found.bytes)
    return (
        all(number is None or (type(number) is int and number >= 0) for number in numbers)
        and bool(found.reason) == (None in numbers)
        and not found.reason.startswith("failed formula")
    )


def _batches(model: OpModel, example: Call, batched: tuple[str, ...]) -> Iterator[str]:
    """Twice the batch is twice the FLOPs; each further sample adds the same bytes."""
    one, two, three = (
        ops.cost(_with_batch(example, model, batched, factor), model.direction)
        for factor in (1, 2, 3)
    )
    flops = [one.flops, two.flops, three.flops]
    sizes = [one.bytes, two.bytes, three.bytes]
    if one.flops is None or flops != [one.flops, 2 * one.flops, 3 * one.flops]:
        yield f"has FLOPs in proportion to the batch, not {flops}"
    if one.bytes is None or two.bytes is None or three.bytes is None:
        yield "tells the bytes of each batch"
    elif not three.bytes - two.bytes == two.bytes - one.bytes > 0:
        yield f"has bytes that grow evenly with the batch, not {sizes}"


def _with_batch(call: Call, model: OpModel, batched: tuple[str, ...], factor: int) -> Call:
    """Multiply the first dimension of these arguments."""
    names = [part.split()[-1] for part in model.signatures[0].split(",")]

    def grown(name: str, value: Value) -> Value:
        if name not in batched or not isinstance(value, Tensor):
            return value
        return replace(value, shape=(value.shape[0] * factor, *value.shape[1:]))

    args = tuple(grown(name, value) for name, value in zip(names, call.args, strict=False))
    kwargs = {name: grown(name, value) for name, value in call.kwargs.items()}
    return replace(call, args=(*args, *call.args[len(args) :]), kwargs=kwargs)
