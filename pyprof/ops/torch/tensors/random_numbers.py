"""Random numbers, dropout and draws of categories, counts and whole channels.

Drawing a uniform number is the generator's integer work and counts nothing; two normal ones take a
logarithm, a root, a sine and a cosine (Box and Muller), an exponential one a logarithm. Scaling
and shifting count if the arguments ask for them. The cost of a draw that is repeated until it is
accepted depends on the data: its operations are unknown. Bytes: parameters read once, what is drawn
written once, and for dropout its mask.
"""

from pyprof.marker import Tensor, Value
from pyprof.ops import dtypes
from pyprof.ops.examples import NN, Example, b8, f16
from pyprof.ops.registry import backward_of, op
from pyprof.ops.torch.tensors.pointwise_rules import TRANSCENDENTAL
from pyprof.ops.work import Args, Work, broadcast, fresh, like, require, size

FAMILY = "random"

_X = f16(2, 3)
_NORMAL = 2 * TRANSCENDENTAL
_EACH = {
    "randn": _NORMAL,
    "randn_like": _NORMAL,
    "exponential": TRANSCENDENTAL + 1,
    "geometric": TRANSCENDENTAL + 2,
    "log_normal": 3 * TRANSCENDENTAL + 2,
    "cauchy": TRANSCENDENTAL + 2,
    "bernoulli": 1,
}


def _numbers(tensor: Tensor) -> int:
    """Count the real numbers that are drawn: two for a complex one."""
    return tensor.numel * (2 if dtypes.is_complex(tensor.dtype) else 1)


def _asked(a: Args) -> str | None:
    """Return the requested dtype. If a trace records the size but no dtype, it was None."""
    return a.dtype() if a.known("dtype") else None


def _changes(value: Value, neutral: float) -> bool:
    """Whether a known number, or a tensor, shifts or scales what was drawn."""
    return isinstance(value, Tensor) or (isinstance(value, (int, float)) and value != neutral)


# 6 numbers of 21 operations; written, of 2 bytes
@op(
    *("exponential", "geometric", "log_normal", "cauchy", "random", "bernoulli"),
    signature="Tensor input, Value[] rest",
    example=Example((_X,), flops=126, bytes=12, op="exponential_", mod="Tensor"),
)
# 6 numbers of 40 operations; written, of 4 bytes
@op(
    *("randn_like", "rand_like"),
    signature="Tensor input, *, dtype dtype",
    example=Example((_X,), flops=240, bytes=24, kwargs={"dtype": "float32"}),
)
@op(
    "randint_like",
    signature=(
        "Tensor input, int low, int high, *, dtype dtype, any layout, any device, any pin, any mf",
        "Tensor input, int high, *, dtype dtype, any layout, any device, any pin, any mf",
    ),
    example=Example((_X, 10), flops=0, bytes=12),
)
def drawn(a: Args) -> Work:
    """Every element is drawn and written."""
    x = a.tensor("input")
    reads = (x,) if a.op == "bernoulli" and not a.in_place else ()
    out = fresh(x.shape, _asked(a) or x.dtype)
    return Work(_EACH.get(a.op, 0) * _numbers(out), reads, (out,))


# 6 numbers scaled and shifted; written, of 2 bytes
@op(
    "uniform",
    signature="Tensor input, float from, float to, Value[] rest",
    example=Example((_X, -1.0, 1.0), flops=12, bytes=12, op="uniform_", mod="Tensor"),
)
def uniform(a: Args) -> Work:
    """Numbers from 0 to 1 cost nothing but their generator; others are scaled or shifted."""
    x, low, high = a.tensor("input"), a.values.get("from"), a.values.get("to")
    start = low if isinstance(low, (int, float)) else 0
    width = high - start if isinstance(high, (int, float)) else 1
    return Work((_changes(start, 0) + _changes(width, 1)) * _numbers(x), (), (like(x),))


# 6 numbers of 40 operations, scaled; written, of 2 bytes
@op(
    "normal",
    signature=(
        "Tensor! input, float mean, float std, any generator",
        "float mean, float std, Size size, any gen, dtype dtype, any layout, any device, any pin",
        "Number mean, Number std, any generator",
    ),
    example=Example((_X, 0.0, 0.02), flops=246, bytes=12, op="normal_", mod="Tensor"),
)
def normal(a: Args) -> Work:
    """In place, or of the size of means and deviations that are read, or of a size."""
    x, mean, std = a.optional("input"), a.values.get("mean"), a.values.get("std")
    if x is not None and not a.in_place:
        x, mean, std = None, x, mean
    reads = tuple(value for value in (mean, std) if isinstance(value, Tensor))
    if x is not None:
        out = like(x)
    elif reads:
        out = like(reads[0], broadcast(tensor.shape for tensor in reads))
    else:
        out = fresh(a.sizes("size"), _asked(a) or "float32")
    each = _NORMAL + _changes(mean, 0) + _changes(std, 1)
    return Work(each * _numbers(out), reads, (out,))


# 6 numbers of 40 operations; written, of 4 bytes
@op(
    *("randn", "rand"),
    signature="Size size, *, dtype dtype",
    example=Example((2, 3), flops=240, bytes=24),
)
def random_tensor(a: Args) -> Work:
    """A new tensor of random numbers."""
    out = fresh(a.sizes("size"), _asked(a) or "float32")
    return Work(_EACH.get(a.op, 0) * _numbers(out), (), (out,))


# 6 integers of 8 bytes
@op(
    "randint",
    signature=(
        "int low, int high, int[] size, *, dtype dtype, any layout, any device, any pin",
        "int high, int[] size, *, dtype dtype, any layout, any device, any pin",
    ),
    example=Example((0, 10, (2, 3)), flops=0, bytes=48),
)
# 10 integers of 8 bytes
@op("randperm", signature="int n, *, dtype dtype", example=Example((10,), flops=0, bytes=80))
def randint(a: Args) -> Work:
    """A new tensor of random whole numbers, or a permutation: random keys, sorted."""
    shape = a.sizes("n" if a.op == "randperm" else "size")
    return Work(0, (), (fresh(shape, a.dtype() or "int64"),))


# compare with p, times the mask, times the scale: 6 * 3; 6 read and 6 written of 2 bytes, the
# mask's 6 of 1 byte
@op(
    *("dropout", "alpha_dropout", "native_dropout", "_fused_dropout"),
    signature="Tensor input, float p, bool training, bool inplace",
    example=Example((_X, 0.2, True, False), flops=18, bytes=30, mod=NN),
)
def dropout(a: Args) -> Work:
    """In evaluation nothing is done, nor if nothing is to be dropped."""
    x = a.tensor("input")
    if a.values.get("training") is False or a.values.get("p") == 0:
        return Work(0)
    # alpha_dropout: the mask less 1, scaled and shifted, is added to what is left
    each = 7 if a.op == "alpha_dropout" else 3
    return Work(each * x.numel, (x,), (like(x), fresh(x.shape, "bool")))


# times the mask, times the scale: 6 * 2; go 6 and 6 written of 2 bytes, the mask's 6 of 1 byte
@backward_of(dropout, flops=12, bytes=30)
@op(
    *("aten::native_dropout_backward", "aten::_masked_scale"),
    signature="Tensor input, Mask mask, float scale",
    example=Example((_X, b8(2, 3), 1.25), flops=12, bytes=30),
)
def dropout_backward(a: Args) -> Work:
    """The incoming gradient where the mask let through, scaled."""
    x = a.tensor("input")
    return Work(2 * x.numel, (like(x), fresh(x.shape, "bool")), (like(x),))


_DRAWS_X = f16(4, 6)


# scaled to 1 and summed up: 24 * 2; 24 read of 2 bytes, 4 * 3 indices of 8 written
@op(
    "multinomial",
    signature="Tensor input, int num_samples, bool replacement",
    example=Example((_DRAWS_X, 3), flops=48, bytes=144),
)
def multinomial(a: Args) -> Work:
    """Categories drawn from each row; the search in the running sum is not counted."""
    x = a.tensor("input")
    require(x.shape)
    return Work(2 * x.numel, (x,), (fresh((*x.shape[:-1], *a.sizes("num_samples")), "int64"),))


# 24 read, 24 written of 2 bytes
@op(
    *("poisson", "_standard_gamma", "_sample_dirichlet"),
    signature="Tensor input",
    example=Example((_DRAWS_X,), bytes=96),
)
# both parameters read
@op(
    "binomial",
    signature="Tensor input, Tensor prob",
    example=Example((_DRAWS_X, _DRAWS_X), bytes=144),
)
def accepted(a: Args) -> Work:
    """An element for each parameter."""
    reads = (a.tensor("input"), *a.present("prob"))
    out = like(reads[0], broadcast(t.shape for t in reads))
    return Work(None, reads, (out,), no_flops="how often a draw is tried depends on the data")


# a number for each of 2 * 3 channels compared and scaled 12, times 96; 96 read, 96 written of 2
# bytes, and the channels' 6
@op(
    *("feature_dropout", "dropout1d", "dropout2d", "dropout3d", "feature_alpha_dropout"),
    signature="Tensor input, float p, bool training, bool inplace",
    example=Example((f16(2, 3, 4, 4), 0.5, True), flops=108, bytes=396, op="dropout2d", mod=NN),
)
def channel_dropout(a: Args) -> Work:
    """Whole channels of each sample; in evaluation nothing is done."""
    x = a.tensor("input")
    if a.values.get("training", a.values.get("train")) is False:
        return Work(0)
    noise = fresh((size(x, 0) * size(x, 1),), x.dtype)
    return Work(2 * noise.numel + x.numel, (x,), (like(x), noise))


# go 96 and the channels' 6 read, 96 written of 2 bytes
@backward_of(channel_dropout, flops=96, bytes=396)
def channel_dropout_backward(a: Args) -> Work:
    """The incoming gradient times its channel's number."""
    x = a.tensor("input")
    noise = fresh((size(x, 0) * size(x, 1),), x.dtype)
    return Work(x.numel, (like(x), noise), (like(x),))
