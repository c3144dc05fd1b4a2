"""Losses: pointwise ones, likelihoods and CTC; what they compute, and the reduction at the end.

Bytes: prediction and target read once, the loss (or one number) written once. A backward pass
reads both again with the incoming gradient and writes the prediction's gradient.

CTC is a recursion over time and the states of each label. A sample of T steps and L labels has
2 L + 1 states (Graves 2006: blanks between the labels). A step of a state adds three probabilities
given by their logarithms: three differences and functions, two sums, a logarithm and the product
with its own, 4 * 20 + 7. The lengths are often tensors, which hold data: then the operations are
unknown. The recursion's table counts if it is the result.
"""

from dataclasses import replace

from pyprof.marker import Tensor
from pyprof.ops.examples import NN, Example, f16, f32, i64
from pyprof.ops.registry import BPROP, backward_of, op
from pyprof.ops.signature import Unknown
from pyprof.ops.torch.tensors.pointwise_rules import TRANSCENDENTAL
from pyprof.ops.work import Args, Work, broadcast, fresh, has_rank, like, require, size

FAMILY = "loss"

_X = f16(4, 6)
_LABELS = i64(4)
T = TRANSCENDENTAL

# operations an element forward, and for the prediction's gradient
_POINTWISE = {
    "mse_loss": (2, 3),
    "l1_loss": (2, 3),
    "smooth_l1_loss": (5, 5),
    "huber_loss": (5, 5),
    "binary_cross_entropy": (2 * T + 4, 5),
    "binary_cross_entropy_with_logits": (2 * T + 6, T + 4),
    "kl_div": (T + 3, 2),
    "soft_margin_loss": (2 * T + 2, T + 4),
    "poisson_nll_loss": (T + 2, T + 2),
    "hinge_embedding_loss": (3, 2),
}


def reduction(a: Args) -> str:
    """Return `none`, `mean` or `sum`: a name in Python, 0, 1 or 2 in ATen."""
    value = a.values.get("reduction")
    if isinstance(value, int) and not isinstance(value, bool):
        return ("none", "mean", "sum")[value] if value in (0, 1, 2) else "mean"
    if isinstance(value, str):
        return value
    return "mean"


def reduced(a: Args, flops: int, count: int, dtype: str | None, reads: tuple[Tensor, ...]) -> Work:
    """Return the work of `count` losses, added up if the call asks for it."""
    how = reduction(a)
    if how == "none":
        return Work(flops, reads, (fresh((count,), dtype),))
    return Work(flops + count + (how == "mean"), reads, (fresh((), dtype),))


# (x - t)^2 and the sum: 24 * 3, one division; 24 + 24 read, 1 written of 2 bytes
@op(
    *_POINTWISE,
    signature=(
        "Tensor input, Tensor target, Tensor? weight, float extra, str reduction, bool log_target"
    ),
    example=Example((_X, _X), flops=73, bytes=98, kwargs={"reduction": "mean"}, mod=NN),
)
@op(
    *("aten::mse_loss", "aten::smooth_l1_loss", "aten::huber_loss"),
    *("aten::soft_margin_loss", "aten::l1_loss"),
    signature="Tensor input, Tensor target, int reduction",
    # the squared difference alone
    example=Example((_X, _X, 0), flops=48, bytes=144),
)
@op(
    "aten::kl_div",
    signature="Tensor input, Tensor target, int reduction, bool log_target",
    # 24 times 20 + 2
    example=Example((_X, _X, 0, True), flops=528, bytes=144),
)
@op(
    "aten::binary_cross_entropy",
    signature="Tensor input, Tensor target, Tensor? weight, int reduction",
    # 24 times 2 * 20 + 4
    example=Example((_X, _X, None, 0), flops=1056, bytes=144),
)
@op(
    "aten::hinge_embedding_loss",
    signature="Tensor input, Tensor target, float margin, int reduction",
    # 3 for each of 24
    example=Example((_X, _X, 1.0, 0), flops=72, bytes=144),
)
@op(
    "aten::poisson_nll_loss",
    signature=("Tensor input, Tensor target, bool log_input, bool full, float eps, int reduction"),
    # 24 times 20 + 2
    example=Example((_X, _X, True, False, 1e-8, 0), flops=528, bytes=144),
)
def pointwise_loss(a: Args) -> Work:
    """The operations of `_POINTWISE` for each element, and one more if the losses are summed."""
    x, target = a.tensor("input"), a.tensor("target")
    count = fresh(broadcast([x.shape, target.shape]), None).numel
    reads = (x, target, *a.present("weight"))
    # a target that is a logarithm takes an exponential, without a product
    each = _POINTWISE[a.op][0] - (a.op == "kl_div" and a.values.get("log_target") is True)
    return reduced(a, each * count, count, x.dtype, reads)


# 2 (x - t) go / n: 24 * 3; x 24, t 24 and go 1 read, 24 written of 2 bytes
@op(*_POINTWISE, direction=BPROP, flops=72, bytes=146)
# as above: x 24, t 24, go 1 read, 24 written of 2 bytes
@op(
    *("aten::mse_loss_backward", "aten::smooth_l1_loss_backward", "aten::huber_loss_backward"),
    *("aten::binary_cross_entropy_backward", "aten::soft_margin_loss_backward"),
    signature="Tensor grad_output, Tensor input, Tensor target",
    example=Example((f16(), _X, _X, 1), flops=72, bytes=146),
)
def pointwise_loss_backward(a: Args) -> Work:
    """The prediction's gradient alone: targets seldom need one."""
    x, target = a.tensor("input"), a.tensor("target")
    count = fresh(broadcast([x.shape, target.shape]), None).numel
    go = a.gradient(fresh((count,) if reduction(a) == "none" else (), x.dtype))
    each = _POINTWISE[a.op.removesuffix("_backward")][1]
    return Work(each * count, (x, target, go), (like(x),))


# --- negative log-likelihood and cross entropy --------------------------------------------------
_NLL = (
    "Tensor input, Tensor target, Tensor? weight, bool size_average, int ignore_index,"
    "bool reduce, str reduction, float label_smoothing"
)
_ATEN_NLL = (
    "Tensor input, Tensor target, Tensor? weight, int reduction, int ignore_index,"
    "float label_smoothing"
)


# 4 samples picked, negated and added, one division: 9; 4 labels of 8 bytes, 4 read and 1 written
# of 2 bytes
@op(
    *("nll_loss", "nll_loss2d"),
    signature=_NLL,
    example=Example((_X, _LABELS), flops=9, bytes=42, kwargs={"reduction": "mean"}, mod=NN),
)
@op(
    *("aten::nll_loss", "aten::nll_loss2d", "aten::nll_loss_nd"),
    signature=_ATEN_NLL,
    example=Example((_X, _LABELS, None, 1, -100), flops=9, bytes=42),
)
@op(
    *("aten::nll_loss_forward", "aten::nll_loss2d_forward"),
    signature=_ATEN_NLL,
    # and the sum of the weights
    example=Example((_X, _LABELS, None, 1, -100), flops=9, bytes=44),
)
def nll_loss(a: Args) -> Work:
    """One element of each sample is read."""
    x, target = a.tensor("input"), _labels(a)
    count = target.numel
    work = reduced(a, count, count, x.dtype, (target, fresh((count,), x.dtype)))
    weights = Work(0, (), (fresh((), x.dtype),))  # what the mean was divided by
    return work + weights if a.op.endswith("_forward") else work


def _labels(a: Args) -> Tensor:
    target = a.tensor("target")
    return target if target.dtype is not None else fresh(target.shape, "int64")


# 4 labels of 8 bytes and go 1 read, 24 written of 2 bytes; 4 negated
@op(*("nll_loss", "nll_loss2d"), direction=BPROP, flops=4, bytes=82)
@op(
    *("aten::nll_loss_backward", "aten::nll_loss2d_backward"),
    signature="Tensor grad_output, Tensor input, Index target",
    # as above
    example=Example((f16(), _X, _LABELS), flops=4, bytes=82),
)
def nll_loss_backward(a: Args) -> Work:
    """Zeros of the prediction's size, and one element a sample."""
    x, target = a.tensor("input"), _labels(a)
    go = a.gradient(fresh((target.numel,) if reduction(a) == "none" else (), x.dtype))
    return Work(target.numel, (target, go), (like(x),))


# log-softmax 24 * 24 = 576 and the loss 9; 24 of 2 bytes and 4 labels of 8 read, 1 of 2 written
@op(
    "cross_entropy",
    signature=_NLL,
    example=Example((_X, _LABELS), flops=585, bytes=82, kwargs={"reduction": "mean"}, mod=NN),
)
@op(
    "aten::cross_entropy_loss",
    signature=_ATEN_NLL,
    example=Example((_X, _LABELS, None, 1, -100, 0.0), flops=585, bytes=82),
)
def cross_entropy(a: Args) -> Work:
    """Log-softmax and negative log-likelihood, as if one kernel did both."""
    x, target = a.tensor("input"), _labels(a)
    if target.shape == x.shape:  # a distribution for each sample instead of a label
        count = x.numel // max(1, size(x, min(1, len(x.shape) - 1)))
        work = reduced(a, 2 * x.numel, count, x.dtype, (x, target))
    else:
        work = reduced(a, target.numel, target.numel, x.dtype, (x, target))
    # smoothed labels add every class's share to each element
    smoothing = a.values.get("label_smoothing")
    each = T + 4 + (isinstance(smoothing, float) and smoothing > 0)
    return Work(each * x.numel) + work


# softmax(x) - one: exp 20, the sum's division 1, subtraction and scale 2: 24 * 23; x 24 and go 1
# of 2 bytes, 4 labels of 8 read, 24 of 2 written
@backward_of(cross_entropy, flops=552, bytes=130)
def cross_entropy_backward(a: Args) -> Work:
    """Softmax minus the target, scaled."""
    x, target = a.tensor("input"), _labels(a)
    go = fresh((target.numel,) if reduction(a) == "none" else (), x.dtype)
    return Work((T + 3) * x.numel, (x, target, go), (like(x),))


_STATE = 4 * TRANSCENDENTAL + 7
_GRADIENT = 2 * TRANSCENDENTAL + 4  # a class of a step: two functions, difference, scales

_CALL = (f32(5, 2, 4), i64(2, 3), (5, 5), (2, 3))
_LOSSES = f32(2)
_CTC = "Tensor log_probs, Tensor targets, any input_lengths, any target_lengths"
_WHY = "lengths depend on the data"


def _lengths(a: Args, name: str) -> tuple[int, ...]:
    lengths = tuple(item for item in a.listed(name) if isinstance(item, int))
    if not lengths or len(lengths) != len(a.listed(name)):
        raise Unknown(_WHY)
    return lengths


def _states(a: Args) -> int:
    """Count the steps of all the samples' states. Raises Unknown if the lengths are data."""
    steps, labels = _lengths(a, "input_lengths"), _lengths(a, "target_lengths")
    require(len(steps) == len(labels))
    return sum(count * (2 * label + 1) for count, label in zip(steps, labels, strict=True))


def _samples(x: Tensor) -> int:
    return size(x, 1) if has_rank(x, 3) else 1


def _forward(a: Args, writes: tuple[Tensor, ...]) -> Work:
    reads = (a.tensor("log_probs"), a.tensor("targets"))
    try:
        return Work(_STATE * _states(a), reads, writes)
    except Unknown as unknown:
        return Work(None, reads, writes, no_flops=str(unknown))


# 5 steps of 5 and of 7 states: 60 * 87; 40 of 4 bytes and 6 of 8 read, one loss written of 4
@op(
    *("torch.nn.functional.ctc_loss", "torch.ctc_loss"),
    signature=f"{_CTC}, int blank, any reduction",
    example=Example(_CALL, flops=5220, bytes=212),
)
def ctc_loss(a: Args) -> Work:
    """The losses' sum or mean, which is small beside the recursion, is not counted."""
    x = a.tensor("log_probs")
    each = a.values.get("reduction") in ("none", 0)
    return _forward(a, (like(x, (_samples(x),) if each else ()),))


# two losses, and the table of 2 * 5 * 7 of 4 bytes
@op(
    "aten::_ctc_loss",
    signature=f"{_CTC}, int blank",
    example=Example((*_CALL, 0, False), flops=5220, bytes=496),
)
def ctc_loss_op(a: Args) -> Work:
    """ATen's own op, which also returns the table of the recursion."""
    x, labels = a.tensor("log_probs"), a.tensor("targets")
    samples = _samples(x)
    work = _forward(a, (fresh((samples,), x.dtype),))
    try:
        longest = max(_lengths(a, "target_lengths"))
    except Unknown:
        if not has_rank(labels, 2):
            return replace(work, writes=(), why=_WHY)
        longest = labels.shape[1]
    table = fresh((samples, x.shape[0], 2 * longest + 1), x.dtype)
    return replace(work, writes=(*work.writes, table))


# the recursion backwards, 5220, and 44 for each of 40 classes; 40, losses 2, go 2, the table 70 of
# 4 bytes and 6 labels of 8 read, 40 of 4 written
@op(
    "aten::_ctc_loss_backward",
    signature=(
        "Tensor grad, Tensor log_probs, Tensor targets, any input_lengths, any target_lengths,"
        "Tensor losses, Tensor table"
    ),
    example=Example((_LOSSES, *_CALL, _LOSSES, f32(2, 5, 7), 0), flops=6980, bytes=664),
)
# the same but for the table, whose size is the op's own: 664 - 280 - 8, one go
@backward_of(ctc_loss, flops=6980, bytes=372)
def ctc_backward(a: Args) -> Work:
    """The recursion from the other end, and every class's share at every step."""
    if a.op == "_ctc_loss_backward":
        return _backward(a, a.present("grad", "losses", "table"))
    return _backward(a, ctc_loss(a).writes)


def _backward(a: Args, saved: tuple[Tensor, ...]) -> Work:
    x = a.tensor("log_probs")
    work = _forward(a, (like(x),))
    return work + Work(_GRADIENT * x.numel, saved)


# the same, and the gradient that cuDNN computes at once: 40 more written
@op(
    "aten::_cudnn_ctc_loss",
    signature=_CTC,
    # forwards 5220, backwards 6980
    example=Example((*_CALL, 0, False, False), flops=12200, bytes=376),
)
def cudnn_ctc(a: Args) -> Work:
    """Losses and gradient in one op; its labels lie end to end."""
    x = a.tensor("log_probs")
    work = _backward(a, ())
    flops = None if work.flops is None else work.flops + _STATE * _states(a)
    losses = fresh((_samples(x),), x.dtype)
    return Work(flops, work.reads, (losses, *work.writes), no_flops=work.no_flops)
