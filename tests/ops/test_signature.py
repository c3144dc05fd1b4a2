"""Every formula's arguments are where torch's schema has them.

An ATen-level call is read by position alone: a parameter that stands one place off takes another
argument's value. No GPU is asked: also ops that the CPU cannot run have a schema.
"""

from typing import Any

import pytest

torch: Any = pytest.importorskip("torch")
pytest.importorskip("torch.nn.attention.varlen")  # it adds ops of its own

from pyprof import ops
from pyprof.marker import Call
from pyprof.ops.signature import parse

_TENSORS = {"Tensor", "Tensor!", "Tensor?", "Index", "Index?", "Mask", "Mask?"}
_NUMBERS = {"int": "int", "SymInt": "int", "bool": "bool", "float": "float", "number": "float"}

OTHERWISE = {
    "__getitem__": "ATen's is of lists; the tensor's is Python's alone",
    "_batch_norm_with_update": "read as the others: what is one place off is not used",
    "_fused_dropout": "read as the others: a generator stands where `training` does",
    "_safe_softmax": "read as the others: a dtype is taken for no wish of float32",
    "_scaled_dot_product_attention_math": "Python's form; the math inside it counts for ATen",
    "_to_cpu": "a list is not modelled",
    "_unique2": "flags stand where masked_select has its mask",
    "unique_consecutive": "as _unique2",
    "unique_dim": "as _unique2",
    "unique_dim_consecutive": "as _unique2",
    "batch_norm_gather_stats": "a number stands where the other form has a tensor of counts",
    "binary_cross_entropy_with_logits": "the positive weight is small beside the rest",
}


def _fits(signature: str, schema: Any) -> bool:  # noqa: ANN401 - torch may be absent
    arguments = [argument for argument in schema.arguments if not argument.is_out]
    for at, parameter in enumerate(parse(signature)):
        kind = parameter.type
        if kind == "Value[]":
            return True
        if at >= len(arguments):
            return kind not in _TENSORS or kind.endswith("?")
        if not _alike(kind, str(arguments[at].type)):
            return False
    return True


def _alike(kind: str, theirs: str) -> bool:
    plain = theirs.removeprefix("Optional[").rstrip("]") if "List" not in theirs else theirs
    if kind in ("any", "Number"):
        return True
    if kind in _TENSORS:
        return plain == "Tensor"
    if kind == "Tensor[]":
        return "Tensor" in theirs
    if kind in ("int[]", "Size"):
        return "List[" in theirs or _NUMBERS.get(plain) == "int"
    if kind in ("int", "bool", "float"):
        return _NUMBERS.get(plain) == kind
    return "Tensor" not in theirs


def test_arguments_are_where_torchs_schema_has_them() -> None:
    """One of a formula's signatures fits one of the op's overloads, position by position."""
    fitting: dict[str, bool] = {}
    for schema in torch._C._jit_get_all_schemas():
        space, _, name = schema.name.partition("::")
        model = ops.find(Call(space, name)) if space in ("aten", "torch_attn") else None
        if model is None or not model.work or any(arg.is_out for arg in schema.arguments):
            continue
        found = any(_fits(signature, schema) for signature in model.signatures)
        fitting[name] = fitting.get(name, False) or found
    assert {name for name, fits in fitting.items() if not fits} == set(OTHERWISE)
    assert len(fitting) > 1000
