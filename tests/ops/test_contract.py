"""Every formula keeps the contract: its own worked example, foreign arguments, batches."""

from dataclasses import replace

import pytest

from pyprof import ops
from pyprof.marker import Call, Opaque, Summary, Tensor, Value
from pyprof.ops import Cost, OpModel

MODELS = ops.models()
FOREIGN: list[tuple[Value, ...]] = [
    (),
    (None,),
    ("text", 3, 2.5, True),
    (Opaque("Foo"),) * 12,
    (Tensor(()),) * 2,
    (Tensor((0,), "float32"), Tensor((0,), "float32")),
    (Tensor((2, 3), "no_such_dtype"),) * 3,
    (Tensor((2, 3)), Tensor((7, 5, 11))),
    (Tensor((1, 2, 3, 4, 5), "bfloat16"),) * 9,
    ((Tensor((2,), "float32"), "text"), (1, 2)),
    (Summary(1000), Summary(3, 12, "float32")),
    (-1, (-1, -5), Tensor((3,), "int64"), -2),
]


def _id(model: OpModel) -> str:
    return f"{model.names[0]}-{model.direction}"


@pytest.mark.parametrize("model", MODELS, ids=_id)
def test_each_formula_carries_a_worked_example(model: OpModel) -> None:
    """A formula without an example that a reader can follow is not trusted.

    What the data decide is unknown in the example too; never both FLOPs and bytes.
    """
    assert model.example is not None
    assert (model.flops, model.bytes) != (None, None)
    assert (model.formula.__doc__ or "").strip()


@pytest.mark.parametrize("model", MODELS, ids=_id)
def test_the_worked_example_gives_what_it_claims(model: OpModel) -> None:
    """FLOPs and bytes of the example equal the numbers worked out beside it."""
    assert model.example is not None
    found = ops.cost(model.example, model.direction)
    assert (found.flops, found.bytes) == (model.flops, model.bytes), found.reason


@pytest.mark.parametrize("model", MODELS, ids=_id)
def test_the_example_resolves_to_its_own_formula(model: OpModel) -> None:
    """The example's op is one of the names that the formula is registered for."""
    assert model.example is not None
    assert ops.find(model.example, model.direction) is model
    assert ops.known(model.example) or not model.work or model.direction == ops.BPROP


@pytest.mark.parametrize("args", FOREIGN, ids=str)
@pytest.mark.parametrize("model", MODELS, ids=_id)
def test_foreign_arguments_give_a_reason_and_never_raise(
    model: OpModel, args: tuple[Value, ...]
) -> None:
    """Whatever the arguments, the cost is non-negative integers, or None with a reason."""
    for name in model.names[:3]:
        mod, _, plain = name.replace("::", ".").rpartition(".")
        for spelled in {mod or "torch", mod or "aten"}:
            for kwargs in ({}, {"dim": 99}, {"input": Tensor((4, 4), "float32")}):
                _check(ops.cost(Call(spelled, plain, args, kwargs), model.direction))


def _check(found: Cost) -> None:
    for number in (found.flops, found.bytes):
        assert number is None or (type(number) is int and number >= 0)
    assert bool(found.reason) == (found.flops is None or found.bytes is None)
    assert not found.reason.startswith("failed formula"), found.reason


def _with_batch(call: Call, model: OpModel, factor: int) -> Call:
    """Multiply the first dimension of the arguments that the formula names."""
    names = [part.split()[-1] for part in model.signatures[0].split(",")]

    def grown(name: str, value: Value) -> Value:
        if name not in model.batch or not isinstance(value, Tensor):
            return value
        return replace(value, shape=(value.shape[0] * factor, *value.shape[1:]))

    args = tuple(grown(name, value) for name, value in zip(names, call.args, strict=False))
    kwargs = {name: grown(name, value) for name, value in call.kwargs.items()}
    return replace(call, args=(*args, *call.args[len(args) :]), kwargs=kwargs)


@pytest.mark.parametrize("model", [m for m in MODELS if m.batch], ids=_id)
def test_flops_are_proportional_to_the_batch_and_bytes_grow_evenly(model: OpModel) -> None:
    """Twice the batch is twice the FLOPs; each further sample adds the same bytes."""
    assert model.example is not None
    one, two, three = (
        ops.cost(_with_batch(model.example, model, factor), model.direction) for factor in (1, 2, 3)
    )
    assert one.flops is not None
    assert one.bytes is not None
    assert two.bytes is not None
    assert three.bytes is not None
    assert (two.flops, three.flops) == (2 * one.flops, 3 * one.flops)
    assert three.bytes - two.bytes == two.bytes - one.bytes > 0
