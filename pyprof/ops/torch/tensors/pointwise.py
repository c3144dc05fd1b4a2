"""Pointwise ops, by rule: broadcasting, in-place forms, type promotion, cost class.

FLOPs: the rule's cost for each element of the result. Bytes: every operand with dimensions read
once (a broadcast one at its own size), the result written once; numbers are free. A gradient of a
broadcast operand is summed down to its size. A backward pass is counted as if one kernel did
it: each saved operand read once, each gradient written once.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pyprof.marker import Opaque, Tensor, Value
from pyprof.ops import dtypes
from pyprof.ops.examples import Example, f16
from pyprof.ops.registry import ATEN, BPROP, op
from pyprof.ops.signature import Unknown
from pyprof.ops.torch.tensors.pointwise_rules import (
    BACKWARDS,
    BOOL,
    DOUBLE,
    FLOAT,
    REAL,
    RULES,
    TRANSCENDENTAL,
    Grad,
    PointwiseOp,
)
from pyprof.ops.work import SIZE_IN_DATA, Args, Work, broadcast, like, require

if TYPE_CHECKING:
    from typing import TypeGuard

FAMILY = "pointwise"

_COMPLEX_FLOPS = {
    **dict.fromkeys(("mul", "multiply", "square"), 6),
    **dict.fromkeys(("div", "divide", "true_divide"), 9),
    **dict.fromkeys(("abs", "absolute"), TRANSCENDENTAL + 3),  # the root of two squares
    "sgn": TRANSCENDENTAL + 5,  # and two divisions by it
    "angle": TRANSCENDENTAL,
    "reciprocal": 6,
}
_CLAMPS = ("clamp", "clip")
_POWERS: dict[int | None, int] = {0: 0, 1: 0, 2: 1, 3: 2, -1: 1, -2: 2}
"""What torch's kernels make of these exponents: a fill, a copy, multiplications, a division."""
_WRAPPED = {"bool": "bool", "int64": "int64", "float64": "float32", "complex128": "complex64"}
"""Types of the tensors that torch makes of Python's numbers, and what these count as."""
_SCALED = {"add", "sub", "subtract", "rsub"}
_X = f16(2, 3)
_ROW = f16(3)


@dataclass(frozen=True, slots=True)
class Operands:
    """The operands of a pointwise op: tensors, numbers, and None for an unknown argument."""

    values: tuple[Value, ...]
    rule: PointwiseOp
    out: Tensor | None = None
    """Where the result goes, if the caller passed that."""
    alpha: Value = 1
    """What add and sub multiply their second operand by."""
    rounded: bool = False
    """Whether a division rounds: then integers stay integers."""

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        """Return the operands that are tensors."""
        return tuple(value for value in self.values if isinstance(value, Tensor))

    @property
    def shape(self) -> tuple[int, ...]:
        """Return the shape that all broadcast to."""
        return broadcast(tensor.shape for tensor in self.tensors)


def operands(a: Args) -> Operands:
    """Return a pointwise op's operands. Raises Unknown if none of them is a tensor."""
    rule = RULES[a.op]
    values, out = _without_out(a, rule.arity)
    alpha = a.values.get("alpha", 1)
    at = [index for index, value in enumerate(values) if isinstance(value, Tensor)]
    require(at and len(at) <= rule.arity)
    if at[-1] >= rule.arity:
        # add_(x, alpha, y) and addcmul_(x, value, t, u), as torch up to 1.4 allowed
        alpha = next(value for value in values if not isinstance(value, Tensor))
        values = tuple(values[index] for index in at)
    elif len(values) > rule.arity and "alpha" not in a.values:
        alpha = values[rule.arity]
    if a.op not in _CLAMPS and _has_hidden_shape(values[: rule.arity]):
        raise Unknown("shape of an operand not recorded")
    values = _with_numbers(a, values)
    rounded = isinstance(alpha, str) or isinstance(a.values.get("rounding_mode"), str)
    return Operands(values[: rule.arity], rule, out, alpha, rounded)


def _with_numbers(a: Args, values: tuple[Value, ...]) -> tuple[Value, ...]:
    """Return the operands with a number for each tensor that stands for a Python number.

    ATen's operators take Python numbers as tensors without dimensions, of Python's types. Such a
    tensor of the user's, next to another tensor, is taken for a number.
    """
    tensors = [value for value in values if isinstance(value, Tensor)]
    if a.mod not in ATEN or all(map(_is_wrapped, tensors)):
        return values
    written = 1 if a.in_place else 0
    return (
        *values[:written],
        *(Opaque(value.dtype or "") if _is_wrapped(value) else value for value in values[written:]),
    )


def _has_hidden_shape(values: tuple[Value, ...]) -> bool:
    """Whether no operand has dimensions, but one may be a tensor of unknown shape.

    Beside an operand with dimensions, such a value is taken for a number: torch up to 1.12 recorded
    no types of numbers. Clamps take None for an operand.
    """
    sized = any(isinstance(value, Tensor) and value.shape for value in values)
    return not sized and any(
        isinstance(value, Opaque) and not value.may_be_unsized for value in values
    )


def _is_wrapped(value: Value) -> TypeGuard[Tensor]:
    return isinstance(value, Tensor) and not value.shape and value.dtype in _WRAPPED


def _without_out(a: Args, arity: int) -> tuple[tuple[Value, ...], Tensor | None]:
    """Return the operands without the tensor that takes the result, and that tensor.

    ATen's `out` overloads have the same name and one argument more, the last.
    """
    values, out = a.listed("operands"), a.optional("out")
    last = values[-1] if len(values) > arity else None
    of_aten = a.mod in ATEN and any(isinstance(value, Tensor) for value in values[:arity])
    if out is None and of_aten and isinstance(last, Tensor):
        return values[:-1], last
    return values, out


def result_tensor(a: Args, operands: Operands) -> Tensor:
    """Return the result: the first operand itself if the op is in place."""
    first = operands.values[0]
    out = operands.out or (first if a.in_place else None)
    if isinstance(out, Tensor):
        return Tensor(operands.shape if out is not first else first.shape, out.dtype)
    return Tensor(operands.shape, _result_dtype(operands))


def _result_dtype(operands: Operands) -> str | None:
    kind = operands.rule.result
    if kind == BOOL:
        return "bool"
    values = operands.values[1:] if kind == "rest" else operands.values
    if kind == "first":
        return operands.tensors[0].dtype
    promoted = promoted_dtype(values)
    if promoted is None:
        return None
    if FLOAT in kind and not dtypes.is_floating(promoted) and not operands.rounded:
        return "float32"
    if kind == DOUBLE:
        return "complex128" if dtypes.is_complex(promoted) else "float64"
    return dtypes.real(promoted) if REAL in kind else promoted


def promoted_dtype(values: tuple[Value, ...]) -> str | None:
    """Return the dtype that operands promote to; None if unknown."""
    tensors = [value for value in values if isinstance(value, Tensor)]
    sized = [tensor.dtype for tensor in tensors if tensor.shape]
    single = [tensor.dtype for tensor in tensors if not tensor.shape]
    numbers = [dtypes.of_number(value) for value in values if isinstance(value, (int, float))]
    hidden = [value.type for value in values if isinstance(value, Opaque)]
    numbers += [_WRAPPED[kind] for kind in hidden if kind in _WRAPPED]
    if not _WRAPPED.keys() >= set(hidden):
        # a number of unknown kind changes nothing if the tensors are floating already
        merged = dtypes.result(sized, single, numbers)
        return merged if merged is not None and dtypes.is_floating(merged) else None
    return dtypes.result(sized, single, numbers)


def _cost_each(a: Args, operands: Operands) -> int:
    flops = operands.rule.flops
    if a.op in _POWER_OPS:
        _require_exponent(a, operands)
        # powers of small whole exponents are multiplications, in torch's kernels too
        flops = _POWERS.get(_exponent(operands), flops)
    if a.op in _SCALED and isinstance(operands.alpha, (int, float)) and operands.alpha != 1:
        flops += 1
    if a.op in _CLAMPS:
        flops = _bounds(operands)
    if any(dtypes.is_complex(tensor.dtype) for tensor in operands.tensors):
        return _COMPLEX_FLOPS.get(a.op, 2 * flops)
    return flops


_POWER_OPS = frozenset({"pow", "float_power"})


def _require_exponent(a: Args, operands: Operands) -> None:
    """Raise Unknown if the exponent was not recorded: a square costs a twentieth of a power."""
    if a.op in _POWER_OPS and any(isinstance(value, Opaque) for value in operands.values[1:2]):
        raise Unknown("exponent not recorded")


def _exponent(operands: Operands) -> int | None:
    """Return the exponent of a power if it is a known integer."""
    value = operands.values[1] if len(operands.values) > 1 else None
    return int(value) if isinstance(value, (int, float)) and value % 1 == 0 else None


def _bounds(operands: Operands) -> int:
    """Count the bounds of a clamp. Raises Unknown if none is known: one or two were given.

    If only one is known, the other was None: a trace records both of them, or neither.
    """
    bounds = [value for value in operands.values[1:3] if value is not None]
    known_bounds = [
        value for value in bounds if not isinstance(value, Opaque) or value.type in _WRAPPED
    ]
    if bounds and not known_bounds:
        raise Unknown("min and max not recorded")
    return len(known_bounds)


# add by rows: 2 * 3 elements, one operation each; x 6 + row 3 + result 6 = 15 elements of 2 bytes
@op(*RULES, signature="Value[] operands", example=Example((_X, _ROW), flops=6, bytes=30, op="add"))
def pointwise(a: Args) -> Work:
    """The rule's operations for each element of the result."""
    op_operands = operands(a)
    if a.op == "where" and len(op_operands.values) == 1:  # the indices of a condition, as nonzero
        return Work(0, op_operands.tensors, why=SIZE_IN_DATA)
    out = result_tensor(a, op_operands)
    reads = () if _exponent(op_operands) == 0 and a.op == "pow" else op_operands.tensors
    try:
        flops = _cost_each(a, op_operands) * out.numel
    except Unknown as unknown:
        return Work(None, reads, (out,), no_flops=str(unknown))
    return Work(flops, reads, (out,))


# mul by rows: d(x) = go * row, d(row) = sum of go * x: 6 + 6 operations and 6 additions = 18;
# go 6 + x 6 + row 3 read, 6 + 3 written = 24 elements of 2 bytes
@op(
    *(name for name, rule in RULES.items() if rule.grads),
    direction=BPROP,
    example=Example((_X, _ROW), flops=18, bytes=48, op="mul"),
)
def pointwise_backward(a: Args) -> Work:
    """Every floating operand's gradient, from the incoming one and what the forward saved."""
    op_operands = operands(a)
    out = like(result_tensor(a, op_operands))
    reads: list[Tensor] = []
    writes: list[Tensor] = []
    flops = 0
    grads = _grads(a, op_operands)
    for value, grad in zip(op_operands.values, grads, strict=False):
        if not isinstance(value, Tensor) or not dtypes.is_floating(value.dtype):
            continue
        summed = value.shape != out.shape
        if grad.flops or grad.needs or summed:
            flops += (grad.flops + summed) * out.numel
            reads += [
                saved
                for letter, saved in zip("abc", op_operands.values, strict=False)
                if letter in grad.needs and isinstance(saved, Tensor)
            ]
            writes.append(like(value))
    distinct = list({id(tensor): tensor for tensor in reads}.values())
    work = Work(flops, (out, *distinct) if writes else (), tuple(writes))
    try:
        _require_exponent(a, op_operands)
    except Unknown as unknown:
        return replace(work, flops=None, no_flops=str(unknown))
    return work


def _grads(a: Args, operands: Operands) -> tuple[Grad, ...]:
    """Return the gradients of the operands; some depend on numbers among these."""
    grads = operands.rule.grads
    exponent = _exponent(operands)
    if a.op in _CLAMPS:
        return (replace(grads[0], flops=_bounds(operands)), *grads[1:])
    if a.op == "pow" and exponent is not None and exponent - 1 in _POWERS:
        if exponent == 0:
            return (Grad(0), *grads[1:])  # zeros
        # the next lower power, times the exponent, times the incoming gradient
        first = Grad(_POWERS[exponent - 1] + 2, "" if exponent == 1 else "a")
        return (first, *grads[1:])
    return grads


# expm1 and three more for each of 6 elements; go 6 + saved 6 + gradient 6 = 18 elements of 2 bytes
@op(
    "elu_backward",
    signature=(
        "Tensor grad_output, any alpha, any scale, any input_scale, any is_result, Tensor input"
    ),
    example=Example((_X, 1.0, 1.0, 1.0, False, _X), flops=138, bytes=36, mod="aten"),
)
# relu's: one comparison for each of 6 elements; go 6 + x 6 + gradient 6 = 18 elements of 2 bytes
@op(
    *(f"{name}_backward" for name in BACKWARDS if name != "elu"),
    signature="Tensor grad_output, Tensor input",
    example=Example((_X, _X, 0), flops=6, bytes=36, mod="aten"),
)
def activation_backward(a: Args) -> Work:
    """The incoming gradient times the derivative at what was saved."""
    grad_output, saved = a.tensor("grad_output"), a.tensor("input")
    rule = RULES[BACKWARDS[a.op.removesuffix("_backward")]]
    return Work(rule.grads[0].flops * grad_output.numel, (grad_output, saved), (like(grad_output),))
