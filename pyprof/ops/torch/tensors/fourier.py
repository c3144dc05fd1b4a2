"""Fourier transforms, as torch.fft and as ATen call them, forward and backward.

5 N log2 N operations over the dimensions that are transformed, half of it for real data: how FFTW
reports speed (fftw.org/speed), whatever the algorithm. Bytes: read once, written once.
"""

import math

from pyprof.marker import Tensor
from pyprof.ops import dtypes
from pyprof.ops.examples import Example, c64, f32
from pyprof.ops.registry import BPROP, op
from pyprof.ops.signature import Unknown
from pyprof.ops.work import Args, Work, fresh, require, size

FAMILY = "fft"

_ROWS = c64(4, 8)
_REAL_ROWS = f32(4, 8)


def _transform(
    x: Tensor, shape: list[int], dims: tuple[int, ...], kind: str, *, onesided: bool = True
) -> Work:
    """Return the work of a transform of that many points: `c2c`, `r2c` (half a result), `c2r`."""
    result = list(shape)
    if kind == "r2c" and onesided:
        result[dims[-1]] = result[dims[-1]] // 2 + 1
    wide = dtypes.complex_of(x.dtype)
    dtype = dtypes.real(wide) if kind == "c2r" else wide
    real = kind != "c2c" or not (x.dtype is None or dtypes.is_complex(x.dtype))
    points = math.prod(shape[at] for at in dims)
    each = 2.5 if real else 5
    flops = round(each * math.prod(shape) * math.log2(points)) if points > 1 else 0
    return Work(flops, (x,), (fresh(result, dtype),))


# 4 rows of 8: 5 * 8 * 3 = 120 each; 32 read and 32 written of 8 bytes
@op(
    "_fft_c2c",
    signature="Tensor input, int[] dim",
    example=Example((_ROWS, (1,), 0, True), flops=480, bytes=512, mod="aten"),
)
# half of it; 32 read of 4 bytes, 4 * 5 written of 8
@op(
    "_fft_r2c",
    signature="Tensor input, int[] dim, any norm, bool onesided",
    example=Example((_REAL_ROWS, (1,), 0, True), flops=240, bytes=288, mod="aten"),
)
# from 4 * 5 to 4 * 8: half of 480; 20 read of 8 bytes, 32 written of 4
@op(
    "_fft_c2r",
    signature="Tensor input, int[] dim, any norm, int last",
    example=Example((c64(4, 5), (1,), 0, 8), flops=240, bytes=288, mod="aten"),
)
def kernel(a: Args) -> Work:
    """The transform that a library is called for."""
    x, named = a.tensor("input"), a.value("dim")
    if not isinstance(named, tuple) or not x.shape:
        raise Unknown("dim not recorded")
    dims = tuple(item % len(x.shape) for item in named if isinstance(item, int))
    if not dims:
        raise Unknown("dim not recorded")
    shape, kind = list(x.shape), a.op.removeprefix("_fft_")
    if kind == "c2r":
        shape[dims[-1]] = a.integer("last", 0)
    onesided = kind != "r2c" or a.flag("onesided", default=True)
    return _transform(x, shape, dims, kind, onesided=onesided)


# --- torch.fft ----------------------------------------------------------------------------------
_KINDS = {"fft": "c2c", "ifft": "c2c", "rfft": "r2c", "ihfft": "r2c", "irfft": "c2r", "hfft": "c2r"}
_MANY = tuple(f"{name}{rank}" for name in _KINDS for rank in "2n")


# 4 rows of 8 real numbers: 2.5 * 8 * 3 = 60 each; 32 read of 4 bytes, 20 written of 8
@op(
    *_KINDS,
    signature="Tensor input, int n, int dim, any norm",
    example=Example((_REAL_ROWS,), flops=240, bytes=288, op="rfft", mod="torch.fft"),
)
# 32 points in two dimensions: 5 * 32 * 5; 32 read and written of 8 bytes
@op(
    *_MANY,
    signature="Tensor input, int[] s, int[] dim, any norm",
    example=Example((_ROWS,), flops=800, bytes=512, mod="torch.fft"),
)
def fourier(a: Args) -> Work:
    """Cut or padded to the requested sizes, then transformed."""
    if a.mod in ("torch", "Tensor"):  # where they took the number of dimensions instead of `n`
        raise Unknown("an interface of torch 1.7 and earlier")
    x = a.tensor("input")
    rank, kind = len(x.shape), _KINDS[a.op.rstrip("2n")]
    asked = a.value("n" if a.op in _KINDS else "s")
    sizes = asked if isinstance(asked, tuple) else (asked,) if asked is not None else ()
    last = {"2": 2, "n": len(sizes) or rank}.get(a.op[-1], 1)
    dims = tuple(range(rank - last, rank))
    if a.given("dim"):
        named = a.value("dim")
        # in the order in which they were named: the last one is halved
        listed = named if isinstance(named, tuple) else ()
        known = (at for at in listed if isinstance(at, int) and -rank <= at < rank)
        dims = a.dims("dim", rank) if isinstance(named, int) else tuple(at % rank for at in known)
    require(rank and dims and min(dims) >= 0 and (len(sizes) in (0, len(dims))))
    shape = list(x.shape)
    if kind == "c2r":
        shape[dims[-1]] = 2 * (shape[dims[-1]] - 1)
    for at, points in zip(dims, sizes, strict=False):
        shape[at] = points if isinstance(points, int) and points >= 0 else shape[at]
    return _transform(x, shape, dims, kind)


# the same backwards
@op("_fft_c2c", direction=BPROP, flops=480, bytes=512)
@op("_fft_r2c", direction=BPROP, flops=240, bytes=288)
@op("_fft_c2r", direction=BPROP, flops=240, bytes=288)
@op(*_KINDS, direction=BPROP, flops=240, bytes=288)
@op(*_MANY, direction=BPROP, flops=800, bytes=512)
def fourier_backward(a: Args) -> Work:
    """The transform of the incoming gradient, the other way."""
    work = kernel(a) if a.op.startswith("_fft_") else fourier(a)
    return Work(work.flops, work.writes, work.reads)


# 5 frames of 8 samples, 2 apart: window 8 and 2.5 * 8 * 3 each: 5 * 68; 8 samples and the window 8
# of 4 bytes read, 5 * 5 written of 8
@op(
    *("torch.stft", "Tensor.stft"),
    signature=(
        "Tensor input, int n_fft, int hop_length, int win_length, Tensor? window, bool center,"
        "any pad_mode, any normalized, bool onesided"
    ),
    example=Example((f32(8), 8, 2, 8, f32(8), True), flops=340, bytes=264),
)
def stft(a: Args) -> Work:
    """Overlapping frames, each multiplied by the window and transformed."""
    x, points = a.tensor("input"), a.integer("n_fft", 0)
    hop = a.integer("hop_length", points // 4)
    centre = a.flag("center", default=True)
    length = size(x, -1) + (points // 2 * 2 if centre else 0)
    require(points >= 1 and hop >= 1 and length >= points)
    count = (length - points) // hop + 1
    frames = fresh((*x.shape[:-1], count, points), x.dtype)
    half = a.flag("onesided", default=not dtypes.is_complex(x.dtype))
    kind = "r2c" if half else "c2c"
    work = _transform(frames, list(frames.shape), (len(frames.shape) - 1,), kind)
    window = a.present("window")
    flops = (work.flops or 0) + len(window) * frames.numel
    return Work(flops, (x, *window), work.writes)
