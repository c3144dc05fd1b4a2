"""Draws whose probability is the tensor's own: categories, counts, and channels dropped whole.

Bytes: the parameters read once, what is drawn written once. A draw that is tried until it is
accepted costs as the data will have it: its operations are unknown.
"""

from __future__ import annotations

from pyprof.marker import Call, Tensor
from pyprof.ops.registry import BPROP, op
from pyprof.ops.signature import Unknown
from pyprof.ops.work import Args, Work, broadcast, fresh, like, size

FAMILY = "random"

_X = Tensor((4, 6), "float16")
_IMAGE = Tensor((2, 3, 4, 4), "float16")
_CHANNELS = ("feature_dropout", "dropout1d", "dropout2d", "dropout3d", "feature_alpha_dropout")


# scaled to 1 and summed up: 24 * 2; 24 read of 2 bytes, 4 * 3 places of 8 written
@op(
    "multinomial",
    signature="Tensor input, int num_samples, bool replacement",
    example=Call("torch", "multinomial", (_X, 3)),
    flops=48,
    bytes=144,
)
def multinomial(a: Args) -> Work:
    """So many categories from each row; the search in the running sum is not counted."""
    x = a.tensor("input")
    if not a.known("num_samples") or not x.shape:
        raise Unknown("num_samples not recorded")
    return Work(2 * x.numel, (x,), (fresh((*x.shape[:-1], a.integer("num_samples", 0)), "int64"),))


# 24 read, 24 written of 2 bytes
@op(
    *("poisson", "_standard_gamma", "_sample_dirichlet"),
    signature="Tensor input",
    example=Call("torch", "poisson", (_X,)),
    bytes=96,
)
# both parameters read
@op(
    "binomial",
    signature="Tensor input, Tensor prob",
    example=Call("torch", "binomial", (_X, _X)),
    bytes=144,
)
def accepted(a: Args) -> Work:
    """An element for each parameter."""
    reads = (a.tensor("input"), *a.present("prob"))
    out = like(reads[0], broadcast(t.shape for t in reads))
    return Work(None, reads, (out,), no_flops="how often a draw is tried depends on the data")


# a number for each of 2 * 3 channels compared and scaled 12, times 96; 96 read, 96 written of 2
# bytes, and the channels' 6
@op(
    *_CHANNELS,
    signature="Tensor input, float p, bool training, bool inplace",
    example=Call("torch.nn.functional", "dropout2d", (_IMAGE, 0.5, True)),
    flops=108,
    bytes=396,
)
def channel_dropout(a: Args) -> Work:
    """Whole channels of each sample; in evaluation nothing is done."""
    x = a.tensor("input")
    if a.values.get("training", a.values.get("train")) is False:
        return Work(0)
    noise = fresh((size(x, 0) * size(x, 1),), x.dtype)
    return Work(2 * noise.numel + x.numel, (x,), (like(x), noise))


# go 96 and the channels' 6 read, 96 written of 2 bytes
@op(*_CHANNELS, direction=BPROP, flops=96, bytes=396)
def channel_dropout_backward(a: Args) -> Work:
    """The incoming gradient times its channel's number."""
    x = a.tensor("input")
    noise = fresh((size(x, 0) * size(x, 1),), x.dtype)
    return Work(x.numel, (like(x), noise), (like(x),))
