"""The cost of a call's ops, counted as PyTorch dispatches them: knows nothing of PyProf.

Matrix products and convolutions by torch's own flop_counter; everything else by the operations per
element, as docs/numbers.md defines a FLOP: 1 for an addition, multiplication or comparison, 20 for
a transcendental function. What an op computes in an element is counted from its definition. Each
op that reaches a backend is counted, so a composite op costs what its parts cost.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry

if TYPE_CHECKING:
    from collections.abc import Callable

    Count = Callable[["_Op"], int]

_FREE = """
_conj _efficientzerotensor _has_same_storage_numel _linalg_check_errors _local_scalar_dense
_reshape_copy _to_copy _unique2 _unsafe_view alias as_strided block_diag bucketize cat clone complex
constant_pad_nd copy_ detach diag_embed diagonal diagonal_backward diagonal_scatter embedding empty
empty_like expand eye fill_ flip frac_backward full full_like gather im2col index index_copy
index_fill index_select is_same_size kthvalue lift_fresh lu_unpack masked_fill masked_fill_
masked_scatter masked_scatter_backward masked_select new_empty new_empty_strided new_ones new_zeros
nonzero ones ones_like permute pixel_shuffle pixel_unshuffle positive
profiler::_record_function_enter_new profiler::_record_function_exit rand rand_like randint
randperm reflection_pad1d reflection_pad2d repeat replication_pad2d resize_ roll rot90 scalar_tensor
scatter scatter_ searchsorted select select_backward set_ slice slice_backward sort
split_with_sizes squeeze stack t take to topk transpose tril tril_indices triu unbind unsafe_chunk
unsafe_split unsqueeze upsample_nearest2d values view view_as_real where zero_ zeros zeros_like
"""
_ONE = """
abs add arange bernoulli bitwise_and bitwise_left_shift bitwise_not bitwise_or bitwise_xor ceil
clamp_max clamp_min copysign deg2rad div eq floor fmax fmin fmod ge gt heaviside isinf isnan le
logical_and logical_not logical_or logical_xor lt maximum minimum mul ne neg nextafter prims::add
prims::mul rad2deg reciprocal relu remainder round rsub sgn sign signbit sub threshold
threshold_backward trunc
"""
_TRANSCENDENTAL = """
acos acosh angle asin asinh atan atan2 atanh cos cosh digamma erf erfc erfinv exp exp2 expm1 gcd i0
lcm lgamma log log10 log1p log2 polygamma rsqrt sigmoid sin sinh special_erfcx special_i0e
special_i1 special_i1e special_log_ndtr special_ndtri sqrt tan tanh
"""
_FUNCTION = 20
_RESULT = {
    **dict.fromkeys(_ONE.split(), 1),
    **dict.fromkeys(_TRANSCENDENTAL.split(), _FUNCTION),
    "frac": 2,  # truncate, subtract
    "floor_divide": 2,
    "ldexp": 2,
    "uniform": 2,  # scale, shift
    "linspace": 2,
    "nan_to_num": 3,
    "lerp": 3,
    "addcmul": 3,
    "addcdiv": 3,
    "linalg_cross": 3,
    "hypot": 3 + 20,
    "xlogy": 1 + 20,
    "exponential": 1 + 20,
    "logaddexp": 2 + 40,
    "logaddexp2": 2 + 40,
    "logcumsumexp": 2 + 40,
    "sinc": 2 + 20,
    "logit": 2 + 20,
    "special_entr": 2 + 20,
    "randn": 40,
    "normal": 2 + 40,
    # activations
    "leaky_relu": 2,
    "rrelu_with_noise": 2,
    "_prelu_kernel": 2,
    "hardtanh": 2,
    "hardshrink": 2,
    "softshrink": 3,
    "hardsigmoid": 4,
    "hardswish": 5,
    "elu": 3 + 20,
    "celu": 3 + 20,
    "softplus": 40,
    "log_sigmoid_forward": 2 + 40,
    "silu": 1 + 20,
    "glu": 1 + 20,
    "mish": 1 + 60,
    "gelu": 4 + 20,
    # and their backward
    "sigmoid_backward": 3,
    "tanh_backward": 3,
    "leaky_relu_backward": 2,
    "rrelu_with_noise_backward": 2,
    "_prelu_kernel_backward": 4,
    "hardtanh_backward": 2,
    "hardshrink_backward": 2,
    "softshrink_backward": 2,
    "hardsigmoid_backward": 3,
    "hardswish_backward": 6,
    "elu_backward": 3 + 20,
    "softplus_backward": 3 + 20,
    "log_sigmoid_backward": 4 + 20,
    "silu_backward": 4 + 20,
    "glu_backward": (6 + 20) // 2,  # of either half
    "mish_backward": 6 + 60,
    "gelu_backward": 8 + 40,
    "logit_backward": 4,
    # neighbours multiplied and added up
    "upsample_linear1d": 3,
    "upsample_bilinear2d": 7,
    "upsample_trilinear3d": 15,
    "upsample_bicubic2d": 31,
}
"""Operations per element of the (first) result."""

_EACH_OPERAND = """
adaptive_max_pool2d adaptive_max_pool2d_backward _adaptive_avg_pool2d all amax amin any argmax
argmin bincount col2im count_nonzero cummax cumprod cumsum embedding_dense_backward histc max
max_pool2d_with_indices_backward max_pool3d_with_indices_backward mean median min mode prod
reflection_pad1d_backward reflection_pad2d_backward replication_pad2d_backward sum
upsample_nearest2d_backward
"""
_OPERAND = {
    **dict.fromkeys(_EACH_OPERAND.split(), 1),
    **dict.fromkeys(("aminmax", "dot", "equal", "multinomial", "mv", "nansum"), 2),
    "renorm": 3,
    "allclose": 7,
    "_softmax": 4 + 20,
    "_log_softmax": 4 + 20,
    "_safe_softmax": 4 + 20,
    "_softmax_backward_data": 4,
    "_log_softmax_backward_data": 3 + 20,
    "upsample_linear1d_backward": 4,
    "upsample_bilinear2d_backward": 8,
    "upsample_trilinear3d_backward": 16,
    "upsample_bicubic2d_backward": 32,
    "native_layer_norm_backward": 10,
    "native_group_norm_backward": 10,
    "native_batch_norm_backward": 10,
}
"""Operations per element of the first operand."""

_LOSSES = {
    "mse_loss": 2,
    "huber_loss": 5,
    "smooth_l1_loss": 5,
    "soft_margin_loss": 2 + 40,
    "binary_cross_entropy": 4 + 40,
    "binary_cross_entropy_with_logits": 6 + 40,
}
"""Operations per element, before they are added up."""

_LOSSES_BACK = {
    "mse_loss": 3,
    "huber_loss": 5,
    "smooth_l1_loss": 5,
    "soft_margin_loss": 4 + 20,
    "binary_cross_entropy": 5,
    "multi_margin_loss": 3,
}
_UPDATES = {"sgd": 4, "adam": 32, "adamw": 33, "adagrad": 26}
"""Operations per parameter: momentum; two moments and a root; with decay; a square and a root."""

_NONE, _MEAN, _SUM = range(3)
_NOTHING = frozenset(_FREE.split())


class _Op(NamedTuple):
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    out: Any
    name: str

    def arg(self, place: int, name: str, default: Any = None) -> Any:  # noqa: ANN401
        return self.args[place] if len(self.args) > place else self.kwargs.get(name, default)

    @property
    def first(self) -> torch.Tensor:
        return next(iter(_tensors(self.out)))


def _tensors(value: Any) -> list[torch.Tensor]:  # noqa: ANN401
    if isinstance(value, torch.Tensor):
        return [value]
    return [t for item in value for t in _tensors(item)] if isinstance(value, (tuple, list)) else []


def _size(tensor: torch.Tensor) -> int:
    return tensor.numel()


def _shape(tensor: torch.Tensor) -> tuple[int, ...]:
    return tuple(tensor.shape)


def _width(tensor: torch.Tensor) -> int:
    return tensor.shape[-1]


_FORMULAS: dict[str, Count] = {
    "mul": lambda op: _size(op.out) * (6 if op.out.is_complex() else 1),
    "logsumexp": lambda op: 23 * _size(op.args[0]) + 21 * _size(op.out),
    "_foreach_norm": lambda op: sum(2 * each.numel() + _FUNCTION for each in op.args[0]),
    "trace": lambda op: min(_shape(op.args[0])),
    "dist": lambda op: 3 * _size(op.args[0]),
    "addmv": lambda op: 2 * _size(op.args[1]),
    "addbmm": lambda op: 2 * _size(op.args[1]) * _width(op.args[2]),
    "addr": lambda op: 2 * _size(op.out),
    "multi_margin_loss": lambda op: 4 * _size(op.args[0]) + 2 * _size(op.args[1]) + 1,
    "nll_loss_forward": lambda op: 2 * _size(op.args[1]) + bool(op.args[3] == _MEAN),
    "nll_loss_backward": lambda op: _size(op.args[2]),
    "avg_pool2d avg_pool3d max_pool2d_with_indices max_pool3d_with_indices": (
        lambda op: int(math.prod(op.args[1])) * _size(op.first)
    ),
    "avg_pool2d_backward avg_pool3d_backward": (
        lambda op: int(math.prod(op.args[2])) * _size(op.args[0])
    ),
    "_adaptive_avg_pool2d_backward": lambda op: _size(op.args[1]),
    "_embedding_bag_per_sample_weights_backward": (
        lambda op: 2 * _size(op.args[2]) * _width(op.args[1])
    ),
    "scatter_add scatter_reduce": lambda op: _size(op.args[2]),
    "index_add": lambda op: _size(op.args[3]),
    "index_put put": lambda op: _size(op.args[2]) * bool(op.arg(3, "accumulate", default=False)),
    "_euclidean_dist": lambda op: 2 * _size(op.out) * (_width(op.args[0]) + 2),
    "_cdist_forward": lambda op: 3 * _size(op.args[0]) * _shape(op.args[1])[-2],
    "_cdist_backward": lambda op: 3 * _size(op.args[1]) * _shape(op.args[2])[-2],
    "_pdist_forward": lambda op: 3 * _size(op.out) * _width(op.args[0]),
}
_COUNTS = {name: count for names, count in _FORMULAS.items() for name in names.split()}


def _counts(names: str) -> Callable[[Count], Count]:
    def register(count: Count) -> Count:
        _COUNTS.update(dict.fromkeys(names.split(), count))
        return count

    return register


@_counts("pow")
def _pow(op: _Op) -> int:
    base, power = op.args[:2]
    simple = {0: 0, 1: 0, 2: 1, 3: 2}
    fixed = isinstance(base, torch.Tensor) and not isinstance(power, torch.Tensor)
    return _size(op.out) * (simple.get(power, _FUNCTION) if fixed else _FUNCTION)


@_counts("clamp")
def _clamp(op: _Op) -> int:
    bounds = (op.arg(1, "min"), op.arg(2, "max"))
    return sum(bound is not None for bound in bounds) * _size(op.out)


@_counts("add sub rsub")
def _add(op: _Op) -> int:
    scaled = bool(op.arg(2, "alpha", 1) != 1)
    return (1 + scaled) * _size(op.out) * (2 if op.out.is_complex() else 1)


@_counts("var std var_mean std_mean")
def _variance(op: _Op) -> int:
    quotients = 2 if op.name.endswith("mean") else 1
    each = quotients + (_FUNCTION if op.name.startswith("std") else 0)
    return 4 * _size(op.args[0]) + each * _size(op.first)


@_counts("linalg_vector_norm norm")
def _norm(op: _Op) -> int:
    root = op.arg(1, "ord", 2) not in (0, 1, math.inf)
    return 2 * _size(op.args[0]) + _FUNCTION * root * _size(op.out)


@_counts("native_layer_norm native_group_norm")
def _layer_norm(op: _Op) -> int:
    first = 2 if isinstance(op.args[1], (list, tuple)) else 1
    given = sum(each is not None for each in op.args[first : first + 2])
    return (6 + given) * _size(op.args[0])


@_counts("native_batch_norm")
def _batch_norm(op: _Op) -> int:
    given = sum(each is not None for each in op.args[1:3])
    return (4 * bool(op.args[5]) + 2 + given) * _size(op.args[0])


@_counts(" ".join(_LOSSES))
def _loss(op: _Op) -> int:
    count = max(_size(op.args[0]), _size(op.args[1]))  # one is as large as the result
    places = {"binary_cross_entropy": 3, "binary_cross_entropy_with_logits": 4}
    how = op.arg(places.get(op.name, 2), "reduction", _MEAN)
    return count * (_LOSSES[op.name] + bool(how != _NONE)) + bool(how == _MEAN)


@_counts(" ".join(f"{name}_backward" for name in _LOSSES_BACK))
def _loss_backward(op: _Op) -> int:
    return _LOSSES_BACK[op.name.removesuffix("_backward")] * _size(op.args[1])


@_counts("_scaled_dot_product_flash_attention_for_cpu")
def _attention(op: _Op) -> int:
    q, k, v = op.args[:3]
    pairs = _size(q) // _width(q) * _shape(k)[2]
    causal = op.arg(4, "is_causal", default=False)
    return 2 * pairs * (_width(q) + _width(v)) // (1 + bool(causal))


@_counts("_scaled_dot_product_flash_attention_for_cpu_backward")
def _attention_backward(op: _Op) -> int:
    q, k, v = op.args[1:4]
    pairs = _size(q) // _width(q) * _shape(k)[2]
    return 2 * pairs * (3 * _width(q) + 2 * _width(v)) // (1 + bool(op.args[7]))


@_counts("_embedding_bag _embedding_bag_forward_only _embedding_bag_backward")
def _bags(op: _Op) -> int:
    place = 10 if op.name.endswith("backward") else 6
    weighted = op.arg(place, "per_sample_weights") is not None
    return (1 + weighted) * _size(op.args[1]) * _width(op.args[0])


_NEIGHBOURS = (4, 1, 16)
"""Neighbours of a position in two dimensions, by the mode's number: linear, nearest, cubic."""


@_counts("grid_sampler_2d")
def _grid(op: _Op) -> int:
    neighbours = _NEIGHBOURS[op.args[2]]
    return (2 * neighbours - 1 if neighbours > 1 else 0) * _size(op.first)


@_counts("grid_sampler_2d_backward")
def _grid_backward(op: _Op) -> int:
    neighbours = _NEIGHBOURS[op.args[3]]
    of_input, of_grid = op.args[6]
    each = 2 * neighbours * (of_input + of_grid) if neighbours > 1 else of_input
    return int(each) * _size(op.args[0])


@_counts("linalg_qr")
def _reflections(op: _Op) -> int:
    m, n = _shape(op.args[0])
    return 2 * (2 * m * n**2 - 2 * n**3 // 3)


@_counts("_fft_c2c _fft_r2c _fft_c2r")
def _fourier(op: _Op) -> int:
    real = op.first if op.name == "_fft_c2r" else op.args[0]
    points = math.prod(real.shape[dim] for dim in op.args[1])
    whole = 5 * real.numel() * math.log2(points)
    return round(whole if op.name == "_fft_c2c" else whole / 2)


@_counts("mkldnn_rnn_layer mkldnn_rnn_layer_backward")
def _lstm_layer(op: _Op) -> int:
    x, own = op.args[0], op.args[2]
    steps = _size(x) // _width(x)
    forward = 2 * steps * (_size(op.args[1]) + _size(own)) + 108 * steps * _width(own)
    return forward * (2 if op.name.endswith("backward") else 1)


@_counts("_trilinear")
def _trilinear(op: _Op) -> int:
    x, _, y = op.args[:3]
    return 2 * (_size(x) + _shape(x)[0]) * _width(y)


# --- linear algebra: LAPACK Working Note 41, without lower orders ---------------------------------


def _order(matrix: torch.Tensor) -> tuple[int, int]:
    return matrix.numel() // matrix.shape[-1] ** 2, matrix.shape[-1]


@_counts("linalg_inv_ex cholesky_inverse linalg_cholesky_ex linalg_ldl_factor_ex")
def _inverse(op: _Op) -> int:
    batch, n = _order(op.args[0])
    cubes = {"linalg_inv_ex": (2, 1), "cholesky_inverse": (2, 3)}.get(op.name, (1, 3))
    return batch * (cubes[0] * n**3 // cubes[1])


@_counts("linalg_lu_factor_ex linalg_lu _linalg_det _linalg_slogdet")
def _lu(op: _Op) -> int:
    batch, n = _order(op.args[0])
    return batch * (2 * n**3 // 3)


@_counts("linalg_lu_solve cholesky_solve")
def _two_triangles(op: _Op) -> int:
    n = op.first.shape[-2]
    return 2 * _size(op.first) * n


@_counts("linalg_solve_triangular triangular_solve")
def _triangle(op: _Op) -> int:
    triangle = op.args[1] if op.name == "triangular_solve" else op.args[0]
    return _size(op.first) * _width(triangle)


@_counts("_linalg_solve_ex")
def _solve(op: _Op) -> int:
    batch, n = _order(op.args[0])
    return batch * (2 * n**3 // 3) + 2 * _size(op.first) * n


class Counter(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Count what is dispatched; `unknown` are ops that no rule counts."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.flops = 0
        self.unknown: set[str] = set()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN204
        del types
        out = func(*args, **(kwargs or {}))
        full = func._overloadpacket._qualified_op_name.removeprefix("aten::")  # noqa: SLF001
        if func._overloadpacket in flop_registry:  # noqa: SLF001
            found = flop_registry[func._overloadpacket](*args, **(kwargs or {}), out_val=out)  # noqa: SLF001
            self.flops += found * (4 if _tensors(out)[0].is_complex() else 1)
        elif (each := _cost(full, args, kwargs or {}, out)) is None:
            self.unknown.add(full)
        else:
            self.flops += each
        return out


def _cost(full: str, args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> int | None:  # noqa: ANN401
    """Count one call; None if no rule counts the op."""
    if full in _NOTHING or full.removesuffix("_") in _NOTHING:
        return 0
    name = full.removesuffix("_")
    op = _Op(args, kwargs, out, name)
    if name in _COUNTS:
        return _COUNTS[name](op)
    if name in _RESULT:
        return _RESULT[name] * _size(op.first)
    if name in _OPERAND:
        return _OPERAND[name] * _size(args[0])
    return _of_lists(op)


def _of_lists(op: _Op) -> int | None:
    """Count an op on lists of tensors; None if no rule counts it."""
    if op.name.startswith("_fused_"):
        return _UPDATES[op.name.removeprefix("_fused_")] * sum(map(_size, op.args[0]))
    each = _RESULT.get(op.name.removeprefix("_foreach_")) if "_foreach_" in op.name else None
    if each is None:
        return None
    return (each + bool(op.kwargs.get("alpha", 1) != 1)) * sum(map(_size, op.args[0]))


def flops(call: Callable[[], Any]) -> tuple[int, set[str]]:
    """Count the FLOPs of a call, and name the ops in it that no rule counts."""
    with Counter() as counter:
        call()
    return counter.flops, counter.unknown
