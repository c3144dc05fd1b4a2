"""What each pointwise op costs an element: a table of facts.

One for an addition, multiplication, division, comparison, rounding, sign or logical operation;
20 for a transcendental function (exp, log, sqrt, sin, erf, pow, ...), the figure of the original
PyProf; compositions are added up from these. Selecting and copying is not arithmetic: 0.
"""

from dataclasses import dataclass

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
    grads: tuple[Grad, ...] = ()
    """A gradient for each operand; () if torch gives zeros or none."""


T = TRANSCENDENTAL
RULES: dict[str, PointwiseOp] = {}


def _add(names: str, arity: int, flops: int, result: str, *grads: Grad) -> None:
    for name in names.split():
        RULES[name] = PointwiseOp(arity, flops, result, grads)


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
_unary("mish", 3 * T + 1, Grad(4 * T + 6, "a"))
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
_add("rpow", 2, T, SAME, Grad(T + 2, "ab"), Grad(T + 2, "ab"))  # 2 ** x is not x ** 2
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
_add("igamma igammac gammainc gammaincc zeta _standard_gamma_grad", 2, T, FLOAT)
_add("_dirichlet_grad", 3, T, FLOAT)
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
