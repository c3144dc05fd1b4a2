"""What each pointwise op costs an element: a table of facts, no formulas.

One for an addition, multiplication, division, comparison, rounding, sign or logical operation;
20 for a transcendental function (exp, log, sqrt, sin, erf, pow, ...), the figure of the original
PyProf; compositions are added up from these. Selecting and copying is no arithmetic: 0.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pyprof.marker import Opaque, Tensor, Value
from pyprof.ops import dtypes
from pyprof.ops.examples import Example, f16
from pyprof.ops.registry import ATEN, BPROP, op
from pyprof.ops.signature import Unknown
from pyprof.ops.work import Args, Work, broadcast, like, require

if TYPE_CHECKING:
    from typing import TypeGuard

TRANSCENDENTAL = 20

SAME, FLOAT, BOOL, REAL, DOUBLE = "same", "float", "bool", "real", "double"


@dataclass(frozen=True, slots=True)
class Grad:
    """The gradient of one operand: operations an element, and the operands that it reads.

    `needs` holds an operand's letter, `a` the first; the op's own result, where a gradient reads
    that instead, is as big and counts as `a`.
    """

    flops: int
    needs: str = ""


@dataclass(frozen=True, slots=True)
class PointwiseOp:
    """One pointwise op."""

    arity: int
    flops: int
    result: str = SAME
    """What the result's dtype is: the promoted one, at least float, bool, real of complex, or
    float64 of all."""
    grads: tuple[Grad, ...] | None = ()
    """A gradient for each operand; () where torch gives zeros or none; None where not modelled."""


T = TRANSCENDENTAL
RULES: dict[str, PointwiseOp] = {}


def _add(names: str, arity: int, flops: int, result: str, *grads: Grad | None) -> None:
    for name in names.split():
        given_grads = tuple(grad for grad in grads if grad is not None)
        RULES[name] = PointwiseOp(
            arity, flops, result, given_grads if len(given_grads) == len(grads) else None
        )


def _unary(names: str, flops: int, grad: Grad | None, result: str = SAME) -> None:
    _add(names, 1, flops, result, *(() if grad is None else (grad,)))


# --- one operand --------------------------------------------------------------------------------
_unary("neg negative", 1, Grad(1))
_unary("positive conj conj_physical _conj_physical", 0, Grad(0))
_unary("abs absolute", 1, Grad(2, "a"), REAL)
_unary("sgn", 1, None)
_unary("sign ceil floor round trunc fix bitwise_not", 1, None)
_unary("signbit isnan isinf isfinite isposinf isneginf logical_not", 1, None, BOOL)
_unary("frac", 2, Grad(0))
_unary("square", 1, Grad(2, "a"))
_unary("reciprocal", 1, Grad(3, "a"), FLOAT)
_unary("deg2rad rad2deg", 1, Grad(1), FLOAT)
_unary("nan_to_num", 3, Grad(1, "a"))
_unary("exp exp2", T, Grad(1, "a"), FLOAT)
_unary("expm1", T, Grad(2, "a"), FLOAT)
_unary("log log2 log10 log1p", T, Grad(2, "a"), FLOAT)
_unary("sqrt", T, Grad(2, "a"), FLOAT)
_unary("rsqrt", T, Grad(4, "a"), FLOAT)
_unary("sin cos sinh cosh", T, Grad(T + 1, "a"), FLOAT)
_unary("tan", T, Grad(3, "a"), FLOAT)
_unary(
    "asin acos asinh acosh atanh arcsin arccos arcsinh arccosh arctanh", T, Grad(T + 4, "a"), FLOAT
)
_unary("atan arctan", T, Grad(3, "a"), FLOAT)
_unary("tanh", T, Grad(3, "a"), FLOAT)
_unary("sigmoid expit", T, Grad(3, "a"), FLOAT)
_unary("erf erfc", T, Grad(T + 4, "a"), FLOAT)
_unary("erfinv", T, Grad(T + 4, "a"), FLOAT)
_unary("logit", T + 2, Grad(4, "a"), FLOAT)
_unary(
    "lgamma digamma i0 i0e i1 i1e polygamma mvlgamma multigammaln gammaln psi",
    T,
    Grad(T + 1, "a"),
    FLOAT,
)
_unary("sinc", T + 2, Grad(2 * T + 4, "a"), FLOAT)
_unary("entr", T + 2, Grad(T + 3, "a"), FLOAT)
_unary("erfcx ndtri log_ndtr ndtr", T, Grad(T + 4, "a"), FLOAT)
_unary("angle", T, Grad(4, "a"), f"{REAL} {FLOAT}")
_BESSEL = (
    "airy_ai bessel_j0 bessel_j1 bessel_y0 bessel_y1 modified_bessel_i0 modified_bessel_i1 "
    "modified_bessel_k0 modified_bessel_k1 scaled_modified_bessel_k0 scaled_modified_bessel_k1 "
    "spherical_bessel_j0"
)
_unary(_BESSEL, T, None, FLOAT)

# Activations.
_unary("relu", 1, Grad(1, "a"))
_unary("threshold", 1, Grad(1, "a"))
_unary("relu6 hardtanh", 2, Grad(2, "a"))
_unary("leaky_relu rrelu", 2, Grad(2, "a"))
_unary("hardshrink", 2, Grad(2, "a"))
_unary("softshrink", 3, Grad(2, "a"))
_unary("hardsigmoid", 4, Grad(3, "a"))
_unary("hardswish", 5, Grad(6, "a"))
_unary("elu celu selu", T + 3, Grad(T + 3, "a"))
_unary("softplus", 2 * T, Grad(T + 3, "a"))
_unary("logsigmoid log_sigmoid", 2 * T + 2, Grad(T + 4, "a"))
_unary("silu", T + 1, Grad(T + 4, "a"))
_unary("mish", 3 * T + 1, Grad(3 * T + 6, "a"))
_unary("gelu", T + 4, Grad(2 * T + 8, "a"))
_unary("softsign", 3, Grad(4, "a"))
_unary("tanhshrink", T + 1, Grad(3, "a"))

# --- two operands -------------------------------------------------------------------------------
_add("add", 2, 1, SAME, Grad(0), Grad(0))
_add("sub subtract rsub", 2, 1, SAME, Grad(0), Grad(1))
_add("mul multiply", 2, 1, SAME, Grad(1, "b"), Grad(1, "a"))
_add("div divide true_divide", 2, 1, FLOAT, Grad(1, "b"), Grad(3, "ab"))
_add("floor_divide", 2, 2, SAME)
_add("remainder fmod", 2, 1, SAME, Grad(0), Grad(3, "ab"))
_add("pow", 2, T, SAME, Grad(T + 2, "ab"), Grad(T + 2, "ab"))
_add("rpow", 2, T, SAME, Grad(T + 2, "ab"), Grad(T + 2, "ab"))  # 2 ** x is no x ** 2
_add("float_power", 2, T, DOUBLE, Grad(T + 2, "ab"), Grad(T + 2, "ab"))
_add("atan2 arctan2", 2, T, FLOAT, Grad(5, "ab"), Grad(6, "ab"))
_add("hypot", 2, T + 3, SAME, Grad(2, "ab"), Grad(2, "ab"))
_add("logaddexp logaddexp2", 2, 2 * T + 2, FLOAT, Grad(T + 4, "ab"), Grad(T + 4, "ab"))
_add("xlogy xlog1py", 2, T + 1, FLOAT, Grad(T + 1, "b"), Grad(2, "ab"))
_add("maximum minimum fmax fmin", 2, 1, SAME, Grad(2, "ab"), Grad(2, "ab"))
_add("copysign", 2, 1, FLOAT, Grad(2, "ab"), Grad(0))
_add("heaviside nextafter", 2, 1, SAME)
_add("ldexp", 2, 2, FLOAT, Grad(2, "b"), Grad(2, "ab"))
_add("gcd lcm", 2, T, SAME)
_add("igamma igammac gammainc gammaincc zeta", 2, T, FLOAT)
_add("eq ne lt le gt ge greater greater_equal less less_equal not_equal", 2, 1, BOOL)
_add("logical_and logical_or logical_xor", 2, 1, BOOL)
_add("isclose", 2, 6, BOOL)  # abs(a - b) <= atol + rtol * abs(b)
_add("bitwise_and bitwise_or bitwise_xor bitwise_left_shift bitwise_right_shift", 2, 1, SAME)
_add("squared_difference", 2, 2, SAME, Grad(3, "ab"), Grad(4, "ab"))
_add("_prelu_kernel", 2, 2, SAME, Grad(2, "ab"), Grad(2, "a"))
_add("masked_fill", 3, 0, "first", Grad(0, "b"), Grad(0), Grad(0))
_POLYNOMIALS = (
    "chebyshev_polynomial_t chebyshev_polynomial_u chebyshev_polynomial_v chebyshev_polynomial_w "
    "hermite_polynomial_h hermite_polynomial_he laguerre_polynomial_l legendre_polynomial_p "
    "shifted_chebyshev_polynomial_t shifted_chebyshev_polynomial_u "
    "shifted_chebyshev_polynomial_v shifted_chebyshev_polynomial_w"
)
_add(_POLYNOMIALS, 2, T, FLOAT)

# --- three operands -----------------------------------------------------------------------------
_add("where", 3, 0, "rest", Grad(0), Grad(0, "a"), Grad(0, "a"))
_add("addcmul", 3, 3, SAME, Grad(0), Grad(2, "c"), Grad(2, "b"))
_add("addcdiv", 3, 3, FLOAT, Grad(0), Grad(2, "c"), Grad(5, "bc"))
_add("lerp", 3, 3, SAME, Grad(2, "c"), Grad(1, "c"), Grad(2, "ab"))
_add("clamp clip", 3, 2, SAME, Grad(2, "abc"), Grad(1, "ab"), Grad(1, "ac"))
_add("clamp_min clamp_max", 2, 1, SAME, Grad(1, "ab"), Grad(1, "ab"))

_ACTIVATIONS = (
    "threshold gelu silu mish tanh sigmoid logit elu softplus softshrink hardshrink hardtanh "
    "hardswish hardsigmoid leaky_relu log_sigmoid"
)
BACKWARDS = {name: name for name in _ACTIVATIONS.split()} | {"rrelu_with_noise": "leaky_relu"}
"""The ops `X_backward` that autograd calls: X, and the op whose derivative it computes."""


# Pointwise ops, by rule: arity, broadcasting, in-place forms, type promotion, cost class.
#
# FLOPs: the rule's cost for each element of the result. Bytes: every operand with dimensions read
# once (a broadcast one at its own size), the result written once; numbers are free. A gradient of a
# broadcast operand is summed down to its size. A backward pass is counted as though one kernel did
# it: each saved operand read once, each gradient written once.


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
_POWERS = {0: 0, 1: 0, 2: 1, 3: 2, -1: 1, -2: 2}
"""What torch's kernels make of these exponents: a fill, a copy, multiplications, a division."""
_WRAPPED = {"bool": "bool", "int64": "int64", "float64": "float32", "complex128": "complex64"}
"""Types of the tensors that torch makes of Python's numbers, and what these count as."""
_SCALED = {"add", "sub", "subtract", "rsub"}
_X = f16(2, 3)
_ROW = f16(3)


@dataclass(frozen=True, slots=True)
class Operands:
    """What a pointwise op works on: tensors, numbers, and None where an argument is not known."""

    values: tuple[Value, ...]
    rule: PointwiseOp
    out: Tensor | None = None
    """Where the result goes, if the caller gave that."""
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
    values = _with_numbers(a, values)
    rounded = isinstance(alpha, str) or isinstance(a.values.get("rounding_mode"), str)
    return Operands(values[: rule.arity], rule, out, alpha, rounded)


def _with_numbers(a: Args, values: tuple[Value, ...]) -> tuple[Value, ...]:
    """Return the operands with a number for each tensor that stands for one of Python's.

    ATen's operators take those as tensors without dimensions, of Python's types. Such a tensor of
    the user's, beside another tensor, is taken for one.
    """
    tensors = [value for value in values if isinstance(value, Tensor)]
    if a.mod not in ATEN or all(map(_is_wrapped, tensors)):
        return values
    written = 1 if a.in_place else 0
    return (
        *values[:written],
        *(Opaque(value.dtype or "") if _is_wrapped(value) else value for value in values[written:]),
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
        # A number of unknown kind changes nothing where the tensors are floating already.
        merged = dtypes.result(sized, single, numbers)
        return merged if merged is not None and dtypes.is_floating(merged) else None
    return dtypes.result(sized, single, numbers)


def _cost_each(a: Args, operands: Operands) -> int:
    flops = operands.rule.flops
    if a.op in ("pow", "float_power"):
        flops = _pow_flops(operands)
    if a.op in _SCALED and isinstance(operands.alpha, (int, float)) and operands.alpha != 1:
        flops += 1
    if a.op in _CLAMPS:
        flops = _bounds(operands)
    if any(dtypes.is_complex(tensor.dtype) for tensor in operands.tensors):
        return _COMPLEX_FLOPS.get(a.op, 2 * flops)
    return flops


def _pow_flops(operands: Operands) -> int:
    """Powers of small whole exponents are multiplications, in torch's kernels too."""
    exponent = _exponent(operands)
    return operands.rule.flops if exponent is None else _POWERS.get(exponent, operands.rule.flops)


def _exponent(operands: Operands) -> int | None:
    """Return the exponent of a power if it is a known integer."""
    value = operands.values[1] if len(operands.values) > 1 else None
    return int(value) if isinstance(value, (int, float)) and value % 1 == 0 else None


def _bounds(operands: Operands) -> int:
    """Count the bounds of a clamp. Raises Unknown where none is known: one or two were given.

    Where one is, another that is not was None: a trace writes all of them, or none.
    """
    bounds = [value for value in operands.values[1:3] if value is not None]
    known_bounds = [
        value for value in bounds if not isinstance(value, Opaque) or value.type in _WRAPPED
    ]
    if bounds and not known_bounds:
        raise Unknown("min and max not recorded")
    return len(known_bounds)


# add by rows: 2 * 3 elements, one operation each; x 6 + row 3 + result 6 = 15 elements of 2 bytes
@op(
    *RULES,
    signature="Value[] operands",
    example=Example((_X, _ROW), flops=6, bytes=30, op="add", mod="torch"),
)
def pointwise(a: Args) -> Work:
    """So many operations for each element of the result."""
    op_operands = operands(a)
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
    example=Example((_X, _ROW), flops=18, bytes=48, op="mul", mod="torch"),
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
            reads += _saved(op_operands, grad)
            writes.append(like(value))
    distinct = list({id(tensor): tensor for tensor in reads}.values())
    return Work(flops, (out, *distinct) if writes else (), tuple(writes))


def _grads(a: Args, operands: Operands) -> tuple[Grad, ...]:
    """Return the gradients of the operands; some depend on numbers among these."""
    grads = operands.rule.grads or ()
    exponent = _exponent(operands)
    if a.op in _CLAMPS:
        return (replace(grads[0], flops=_bounds(operands)), *grads[1:])
    if a.op == "pow" and exponent is not None and exponent - 1 in _POWERS:
        if exponent == 0:
            return (Grad(0), *grads[1:])  # zeros
        # the power below, times the exponent, times what comes in
        first = Grad(_POWERS[exponent - 1] + 2, "" if exponent == 1 else "a")
        return (first, *grads[1:])
    return grads


def _saved(operands: Operands, grad: Grad) -> list[Tensor]:
    chosen = [
        operands.values["abc".index(letter)]
        for letter in grad.needs
        if "abc".index(letter) < len(operands.values)
    ]
    return [value for value in chosen if isinstance(value, Tensor)]


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
    example=Example((_X, _X, 0), flops=6, bytes=36, op="threshold_backward", mod="aten"),
)
def activation_backward(a: Args) -> Work:
    """The incoming gradient times the derivative at what was saved."""
    grad_output, saved = a.tensor("grad_output"), a.tensor("input")
    rule = RULES[BACKWARDS[a.op.removesuffix("_backward")]]
    flops = (rule.grads or (Grad(1),))[0].flops * grad_output.numel
    return Work(flops, (grad_output, saved), (like(grad_output),))
