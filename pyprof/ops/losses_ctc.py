"""Connectionist temporal classification: a recursion over time and the states of each label.

A sample of T steps and L labels has 2 L + 1 states (Graves 2006: blanks between the labels). A step
of a state adds three probabilities given by their logarithms: three differences and functions, two
sums, a logarithm and the product with its own, 4 * 20 + 7. The lengths are often tensors, which
hold data: then the operations are unknown. Bytes: probabilities and labels read once, losses
written once; the recursion's table is what the op keeps, and counts where it is the result.
"""

from __future__ import annotations

from dataclasses import replace

from pyprof.marker import Call, Tensor
from pyprof.ops.pointwise_rules import TRANSCENDENTAL
from pyprof.ops.registry import BPROP, op
from pyprof.ops.signature import Unknown
from pyprof.ops.work import Args, Work, fresh, like, size

FAMILY = "loss"

_STATE = 4 * TRANSCENDENTAL + 7
_GRADIENT = 2 * TRANSCENDENTAL + 4  # a class of a step: two functions, difference, scales

_PROBABILITIES = Tensor((5, 2, 4), "float32")
_LABELS = Tensor((2, 3), "int64")
_CALL = (_PROBABILITIES, _LABELS, (5, 5), (2, 3))
_TABLE = Tensor((2, 5, 7), "float32")
_LOSSES = Tensor((2,), "float32")
_CTC = "Tensor log_probs, Tensor targets, any input_lengths, any target_lengths"
_WHY = "lengths depend on the data"


def _lengths(a: Args, name: str) -> tuple[int, ...]:
    found = tuple(item for item in a.listed(name) if isinstance(item, int))
    if not found or len(found) != len(a.listed(name)):
        raise Unknown(_WHY)
    return found


def _states(a: Args) -> int:
    """Count the steps of all the samples' states. Raises Unknown where the lengths are data."""
    steps, labels = _lengths(a, "input_lengths"), _lengths(a, "target_lengths")
    if len(steps) != len(labels):
        raise Unknown("arguments do not fit the op")
    return sum(count * (2 * label + 1) for count, label in zip(steps, labels, strict=True))


def _samples(x: Tensor) -> int:
    return size(x, 1) if len(x.shape) > 2 else 1  # noqa: PLR2004 - time, sample, class


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
    example=Call("torch.nn.functional", "ctc_loss", _CALL),
    flops=5220,
    bytes=212,
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
    example=Call("aten", "_ctc_loss", (*_CALL, 0, False)),
    flops=5220,
    bytes=496,
)
def ctc_loss_op(a: Args) -> Work:
    """As ATen's own op, with the recursion's table."""
    x, labels = a.tensor("log_probs"), a.tensor("targets")
    samples = _samples(x)
    work = _forward(a, (fresh((samples,), x.dtype),))
    try:
        longest = max(_lengths(a, "target_lengths"))
    except Unknown:
        if len(labels.shape) != 2:  # noqa: PLR2004 - else padded to the longest
            return replace(work, writes=(), extra_bytes=None, why=_WHY)
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
    example=Call("aten", "_ctc_loss_backward", (_LOSSES, *_CALL, _LOSSES, _TABLE, 0)),
    flops=6980,
    bytes=664,
)
def ctc_backward_op(a: Args) -> Work:
    """The recursion from the other end, and every class's share at every step."""
    return _backward(a, tuple(a.tensor(name) for name in ("grad", "losses", "table")))


# the same but for the table, whose size is the op's own: 664 - 280 - 8, one go
@op(*("torch.nn.functional.ctc_loss", "torch.ctc_loss"), direction=BPROP, flops=6980, bytes=372)
def ctc_backward(a: Args) -> Work:
    """As ATen's own op, without what it kept."""
    return _backward(a, ctc_loss(a).writes)


def _backward(a: Args, kept: tuple[Tensor, ...]) -> Work:
    x = a.tensor("log_probs")
    work = _forward(a, (like(x),))
    return work + Work(_GRADIENT * x.numel, kept)


# the same, and the gradient that cuDNN computes at once: 40 more written
@op(
    "aten::_cudnn_ctc_loss",
    signature=_CTC,
    example=Call("aten", "_cudnn_ctc_loss", (*_CALL, 0, False, False)),
    flops=12200,  # forwards 5220, backwards 6980
    bytes=376,
)
def cudnn_ctc(a: Args) -> Work:
    """Losses and gradient in one op; its labels lie end to end."""
    x = a.tensor("log_probs")
    work = _backward(a, ())
    flops = None if work.flops is None else work.flops + _STATE * _states(a)
    losses = fresh((_samples(x),), x.dtype)
    return Work(flops, work.reads, (losses, *work.writes), no_flops=work.no_flops)
