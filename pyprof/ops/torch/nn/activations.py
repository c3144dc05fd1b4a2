"""Activations and similarities that are not pointwise by rule: a weight, a half, a norm."""

from pyprof.ops.examples import NN, Example, f16
from pyprof.ops.registry import BPROP, backward_of, op
from pyprof.ops.torch.tensors.pointwise_rules import TRANSCENDENTAL
from pyprof.ops.work import Args, Work, broadcast, like, size, twice_of

FAMILY = "pointwise"

_X = f16(4, 6)
# operations an element, and a result
_SIMILARITY = {
    "cosine_similarity": (8, 2 * TRANSCENDENTAL + 2),
    "pairwise_distance": (4, TRANSCENDENTAL),
}


# compare and multiply: 24 * 2; 24 and 6 read, 24 written of 2 bytes
@op(
    "prelu",
    signature="Tensor input, Tensor weight",
    example=Example((_X, f16(6)), flops=48, bytes=108, mod=NN),
)
def prelu(a: Args) -> Work:
    """Negative elements are scaled by their channel's weight."""
    x, w = a.tensor("input"), a.tensor("weight")
    return Work(2 * x.numel, (x, w), (like(x),))


# dx: compare, multiply; dw: compare, multiply, add: 24 * 5; go 24, x 24, w 6 read, 24 and 6 written
@backward_of(prelu, flops=120, bytes=168)
def prelu_backward(a: Args) -> Work:
    """The gradients of input and weight."""
    x, w = a.tensor("input"), a.tensor("weight")
    return Work(5 * x.numel, (like(x), x, w), (like(x), like(w)))


# half of 24 times the other's sigmoid: 12 * 21; 24 read, 12 written of 2 bytes
@op("glu", signature="Tensor input, int dim", example=Example((_X,), flops=252, bytes=72, mod=NN))
def glu(a: Args) -> Work:
    """One half times the sigmoid of the other."""
    x = a.tensor("input")
    half = (a if a.known("dim") else a.replaced(dim=None)).axis(len(x.shape))
    out = like(x, (n // 2 if at == half else n for at, n in enumerate(x.shape)))
    return Work((TRANSCENDENTAL + 1) * out.numel, (x,), (out,))


# sigmoid 20, both halves' gradients 6: 12 * 26; go 12, x 24 read, 24 written of 2 bytes
@backward_of(glu, flops=312, bytes=120)
@op(
    "aten::glu_backward",
    signature="Tensor grad_output, Tensor input, int dim",
    example=Example((f16(4, 3), _X, -1), flops=312, bytes=120),
)
def glu_backward(a: Args) -> Work:
    """The gradients of both halves."""
    x = a.tensor("input")
    go = like(x, (x.numel // 2,))
    return Work((TRANSCENDENTAL + 6) * go.numel, (go, x), (like(x),))


# square, add, divide: 24 * 3, a root and a bound for each of 4 rows: 84; 24 read and 24 written of
# 2 bytes
@op(
    "normalize",
    signature="Tensor input, float p, int dim",
    example=Example((_X,), flops=156, bytes=96, mod=NN),
)
def normalize(a: Args) -> Work:
    """Each row divided by its norm."""
    x = a.tensor("input")
    rows = x.numel // max(1, size(x, a.axis(len(x.shape), 1)))
    return Work(3 * x.numel + (TRANSCENDENTAL + 1) * rows, (x,), (like(x),))


# two norms, quotients, a product and its sum: 24 * 8, two roots and bounds for each of 4 rows; 24
# and 24 read, 4 written of 2 bytes
@op(
    "cosine_similarity",
    signature="Tensor x1, Tensor x2, int dim",
    example=Example((_X, _X), flops=360, bytes=104, kwargs={"dim": 1}, mod=NN),
)
# subtract, add epsilon, square, add: 24 * 4, a root for each of 4; as above
@op(
    "pairwise_distance",
    signature="Tensor x1, Tensor x2, any p, any eps, bool keepdim",
    example=Example((_X, _X, 2), flops=176, bytes=104, mod=NN),
)
def similarity(a: Args) -> Work:
    """The angle between, or the distance of, each pair of rows."""
    x, y = a.tensor("x1"), a.tensor("x2")
    broadcasted = like(x, broadcast([x.shape, y.shape]))
    rank = len(broadcasted.shape)
    away = a.axis(rank, min(1, rank - 1) if a.op == "cosine_similarity" else -1)
    out = like(x, (n for at, n in enumerate(broadcasted.shape) if at != away))
    each, last = _SIMILARITY[a.op]
    return Work(each * broadcasted.numel + last * out.numel, (x, y), (out,))


# times the norm's inverse, less the projection: 24 * 6; go 24, x 24 read, 24 written of 2 bytes
@backward_of(normalize, flops=144, bytes=144)
def normalize_backward(a: Args) -> Work:
    """The incoming gradient without its part along the input, scaled."""
    x = a.tensor("input")
    return Work(6 * x.numel, (like(x), x), (like(x),))


# both gradients, as the forward each: 2 * 360; x, y 48, go 4 read, 48 written of 2 bytes
op("cosine_similarity", direction=BPROP, flops=720, bytes=200)(twice_of(similarity))
# 2 * 176; as above
op("pairwise_distance", direction=BPROP, flops=352, bytes=200)(twice_of(similarity))


# two functions and two more for each of 24; 24 read, 24 written of 2 bytes
@op(
    "log_sigmoid_forward",
    signature="Tensor input",
    example=Example((_X,), flops=1008, bytes=96, mod="aten"),
)
def log_sigmoid(a: Args) -> Work:
    """As logsigmoid; the buffer that the CPU keeps is not counted."""
    x = a.tensor("input")
    return Work((2 * TRANSCENDENTAL + 2) * x.numel, (x,), (like(x),))


# compare and multiply: 48; 24 read, 24 and the noise's 24 written of 2 bytes
@op(
    "rrelu_with_noise",
    signature="Tensor input, Tensor noise",
    example=Example((_X, _X), flops=48, bytes=144, mod="aten"),
)
def rrelu_with_noise(a: Args) -> Work:
    """Negative elements are scaled by a random number, which is kept."""
    x, noise = a.tensor("input"), a.tensor("noise")
    return Work(2 * x.numel, (x,), (like(x), noise))


# two for either gradient: 24 * 4; go, x, weight read, both gradients written: 5 * 24 of 2 bytes
@op(
    "_prelu_kernel_backward",
    signature="Tensor grad_output, Tensor input, Tensor weight",
    example=Example((_X, _X, _X), flops=96, bytes=240, mod="aten"),
)
def prelu_kernel_backward(a: Args) -> Work:
    """Both gradients in the input's size; a sum of its own brings the weight's down."""
    go, x, w = a.tensor("grad_output"), a.tensor("input"), a.tensor("weight")
    return Work(4 * x.numel, (go, x, w), (like(x), like(w, x.shape)))
