"""State spaces and the short convolutions before them: Mamba's, vLLM's and SGLang's ops.

A selective scan costs 26 operations for each token, channel and state: the exponential 20, its
exponent 1, two products and a sum for the new state, a product and a sum for the result; for each
token and channel 1 for the step times the input, 2 where the input is added, 22 for a gate. A
convolution of W taps costs 2 W an element, 1 for a bias and 21 for SiLU. States that are kept
between calls are of a few sequences, and not counted.
"""

from dataclasses import replace

from pyprof.ops.examples import Example, bf16, f32
from pyprof.ops.registry import op
from pyprof.ops.torch.tensors.pointwise_rules import RULES, TRANSCENDENTAL
from pyprof.ops.work import Args, Work, has_rank, like, require, size

FAMILY = "ssm"

_U = bf16(2, 3, 8)
_A, _B = f32(3, 4), bf16(2, 1, 4, 8)
_WEIGHT, _BIAS = bf16(3, 4), bf16(3)
_STATE = TRANSCENDENTAL + 6
_SILU = RULES["silu"].flops


# 48 elements of 4 states: 192 * 26 + 48 * (1 + 2 + 22); u, delta, z and the result of 48 of 2
# bytes, B and C of 64 of 2, A of 12 and D of 3 of 4
@op(
    *("_C::selective_scan_fwd", "SelectiveScanFn"),
    signature=(
        "Tensor input, Tensor delta, Tensor a, Tensor b, Tensor c, Tensor? skip, Tensor? gate"
    ),
    example=Example((_U, _U, _A, _B, _B, f32(3), _U, None, True), flops=6192, bytes=700),
)
def selective_scan(a: Args) -> Work:
    """A state of each channel, decayed and added to at each token, and read out."""
    u, decay = a.tensor("input"), a.tensor("a")
    reads = tuple(a.tensor(name) for name in ("input", "delta", "a", "b", "c"))
    require(has_rank(decay, 2) and decay.shape[0] in u.shape)  # channels, states
    skip, gate = a.present("skip"), a.present("gate")
    each = _STATE * size(decay, 1) + 1 + 2 * bool(skip) + (_SILU + 1) * bool(gate)
    return Work(each * u.numel, (*reads, *skip, *gate), (like(u),))


_CONVOLVED = "Tensor input, Tensor weight, Tensor? bias"


# 48 elements of 4 taps: 48 * (8 + 1 + 21); 48 read and written, 12 and 3 read of 2 bytes
@op(
    *("_C::causal_conv1d_fwd", "sgl_kernel::causal_conv1d_fwd"),
    signature=(
        f"{_CONVOLVED}, Tensor? states, Tensor? starts, Tensor? indices, Tensor? begun, bool silu"
    ),
    example=Example((_U, _WEIGHT, _BIAS, None, None, None, None, True, -1), flops=1440, bytes=222),
)
@op(
    *("_C::causal_conv1d_update", "sgl_kernel::causal_conv1d_update"),
    signature="Tensor input, Tensor states, Tensor weight, Tensor? bias, bool silu",
    example=Example((_U, bf16(2, 3, 3), _WEIGHT, _BIAS, True), flops=1440, bytes=222),
)
@op(
    "DaoAILab::_causal_conv1d_fwd_cpp",
    signature=f"{_CONVOLVED}, Tensor? sequence, Tensor? begun, Tensor out, Tensor? last, bool silu",
    example=Example((_U, _WEIGHT, _BIAS, None, None, _U, None, True), flops=1440, bytes=222),
)
@op(
    "DaoAILab::_causal_conv1d_update_cpp",
    signature="Tensor input, Tensor states, Tensor weight, Tensor? bias, Tensor out, bool silu",
    example=Example((_U, bf16(2, 3, 3), _WEIGHT, _BIAS, _U, True), flops=1440, bytes=222),
)
def causal_convolution(a: Args) -> Work:
    """A few taps over each channel's last tokens, and SiLU if requested."""
    x, weight, bias = a.tensor("input"), a.tensor("weight"), a.present("bias")
    require(has_rank(weight, 2) and weight.shape[0] in x.shape)  # channels, taps
    work = Work(0, (x, weight, *bias), (like(x),))
    if not a.known("silu"):
        return replace(work, flops=None, no_flops="activation not recorded")
    each = 2 * size(weight, 1) + bool(bias) + _SILU * a.flag("silu", default=False)
    return replace(work, flops=each * x.numel)
