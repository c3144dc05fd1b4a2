"""Interpolation, grid sampling and padding.

An interpolated output is a weighted sum of its 2, 4, 8 (linear) or 16 (cubic) neighbours: 2 t - 1
operations for t of them; the weights are not counted. Nearest copies. With antialias the number of
neighbours grows with the scale: FLOPs are unknown. Bytes: the input read once, the output written
once.
"""

import math

from pyprof.marker import Tensor, Value
from pyprof.ops.examples import NN, Example, f16
from pyprof.ops.registry import BPROP, backward_of, op
from pyprof.ops.signature import Unknown
from pyprof.ops.work import Args, Work, fresh, has_rank, like, require

FAMILY = "resample"

_X = f16(2, 3, 4, 4)
_NO_ANTIALIAS = "antialias not modelled"
_NEIGHBOURS = {"linear": 2, "bilinear": 4, "trilinear": 8, "bicubic": 16, "nearest": 1}


def _each(mode: str) -> int:
    taps = next((t for name, t in _NEIGHBOURS.items() if mode.startswith(name)), None)
    if taps is None:
        raise Unknown(f"mode {mode} not modelled")
    return 2 * taps - 1 if taps > 1 else 0


def _scaled(x: Tensor, size: Value, scale: Value) -> tuple[int, ...]:
    rank = len(x.shape) - 2
    require(rank >= 1)
    if size is not None:
        sizes = size if isinstance(size, tuple) else (size,) * rank
        lengths = tuple(item for item in sizes if isinstance(item, int))
    else:
        scales = scale if isinstance(scale, tuple) else (scale,) * rank
        lengths = tuple(
            math.floor(old * factor)
            for old, factor in zip(x.shape[2:], scales, strict=False)
            if isinstance(factor, (int, float))
        )
    if len(lengths) != rank:
        raise Unknown("output size not recorded")
    return (*x.shape[:2], *lengths)


# 2 * 3 * 8 * 8 = 384 outputs of 7; 96 read, 384 written of 2 bytes
@op(
    *("interpolate", "upsample", "upsample_nearest", "upsample_bilinear"),
    signature="Tensor input, any size, any scale_factor, str mode, bool align_corners",
    example=Example((_X, None, 2.0, "bilinear", False), flops=2688, bytes=960, mod=NN),
)
def interpolate(a: Args) -> Work:
    """A weighted sum of neighbours for each output."""
    x = a.tensor("input")
    mode = a.value("mode", "bilinear" if a.op.endswith("bilinear") else "nearest")
    out = like(x, _scaled(x, a.value("size"), a.value("scale_factor")))
    if a.values.get("antialias") is True:
        return Work(None, (x,), (out,), no_flops=_NO_ANTIALIAS)
    return Work(_each(str(mode)) * out.numel, (x,), (out,))


# each of 384 incoming gradients is weighted and added to 4 neighbours: 8; 384 read, 96 written
@backward_of(interpolate, flops=3072, bytes=960)
def interpolate_backward(a: Args) -> Work:
    """Each incoming gradient is spread over the neighbours."""
    forward = interpolate(a)
    go = forward.writes[0]
    flops = None if forward.flops is None else forward.flops + go.numel
    return Work(flops, (go,), (like(a.tensor("input")),), no_flops=forward.no_flops)


_MODES = {
    **{f"upsample_nearest{rank}d": "nearest" for rank in (1, 2, 3)},
    **{f"_upsample_nearest_exact{rank}d": "nearest" for rank in (1, 2, 3)},
    "upsample_linear1d": "linear",
    "upsample_bilinear2d": "bilinear",
    "upsample_trilinear3d": "trilinear",
    "upsample_bicubic2d": "bicubic",
}
_ANTIALIASED = tuple(f"_upsample_{mode}2d_aa" for mode in ("bilinear", "bicubic", "lanczos"))
_UPSAMPLE = "Tensor input, any size, any align_corners, any scale_factor"
_UPSAMPLE_BACKWARD = "Tensor grad_output, any output_size, any input_size"


@op(
    *(f"aten::{name}" for name in _MODES if "nearest" in name),
    signature="Tensor input, any size, any scale_factor",
    # 96 read, 384 written of 2 bytes
    example=Example((_X, (8, 8), 2.0, 2.0), flops=0, bytes=960, op="upsample_nearest2d"),
)
@op(
    *(f"aten::{name}" for name in _MODES if "nearest" not in name),
    signature=_UPSAMPLE,
    # as above
    example=Example((_X, (8, 8), False, 2.0, 2.0), flops=2688, bytes=960, op="upsample_bilinear2d"),
)
@op(
    *(f"aten::{name}" for name in _ANTIALIASED),
    signature=_UPSAMPLE,
    # as above; a weighted sum of all pixels below each output's filter
    example=Example((_X, (8, 8), False, None), flops=None, bytes=960),
)
def upsample(a: Args) -> Work:
    """Interpolation by ATen's own ops; unrecorded sizes are those of the backward's gradient."""
    x, mode, shape = a.tensor("input"), _MODES.get(a.op), a.output
    if shape is None:
        size = a.value("size") if a.known("size") else None
        scale = a.value("scale_factor") if a.known("scale_factor") else None
        shape = _scaled(x, size, scale)
    out = fresh(shape, x.dtype)
    if mode is None:
        return Work(None, (x,), (out,), no_flops=_NO_ANTIALIAS)
    return Work(_each(mode) * out.numel, (x,), (out,))


# as above, from the incoming gradient of 384 to one of 96
@op(
    *(f"aten::{name}_backward" for name in _MODES),
    signature=_UPSAMPLE_BACKWARD,
    example=Example(
        (f16(2, 3, 8, 8), (8, 8), (2, 3, 4, 4), False, 2.0, 2.0),
        flops=3072,
        bytes=960,
        op="upsample_bilinear2d_backward",
    ),
)
@op(
    *(f"aten::{name}_backward" for name in _ANTIALIASED),
    signature=_UPSAMPLE_BACKWARD,
    # 384 read, 96 written of 2 bytes
    example=Example((f16(2, 3, 8, 8), (8, 8), (2, 3, 4, 4), False), flops=None, bytes=960),
)
def upsample_backward(a: Args) -> Work:
    """Each incoming gradient is spread over the neighbours, or the pixels below its filter."""
    go, mode = a.tensor("grad_output"), _MODES.get(a.op.removesuffix("_backward"))
    flops = None if mode is None else (_each(mode) + 1) * go.numel
    size = a.value("input_size") if a.known("input_size") else None
    if not isinstance(size, tuple):
        return Work(flops, (go,), why="input_size not recorded")
    x = like(go, (item for item in size if isinstance(item, int)))
    return Work(flops, (go,), (x,), no_flops="" if flops is not None else _NO_ANTIALIAS)


# --- grid sampling --------------------------------------------------------------------------------
_GRID = f16(2, 8, 8, 2)


def _taps(a: Args, rank: int) -> int | None:
    """Return the neighbours of a position; None if the mode is unknown."""
    mode = a.value("mode", 0) if a.known("mode") else None
    return {0: 2**rank, 1: 1, 2: 16, "bilinear": 2**rank, "nearest": 1, "bicubic": 16}.get(mode)


# 2 * 3 * 8 * 8 = 384 outputs of 7; 96 and the grid's 256 read, 384 written of 2 bytes
@op(
    *("grid_sample", "grid_sampler", "grid_sampler_2d", "grid_sampler_3d", "cudnn_grid_sampler"),
    signature="Tensor input, Tensor grid, any mode",
    example=Example((_X, _GRID), flops=2688, bytes=1472, mod=NN),
)
def grid_sample(a: Args) -> Work:
    """Each output is a weighted sum of the neighbours of a position of the grid."""
    x, grid = a.tensor("input"), a.tensor("grid")
    # batch, channel, place
    require(len(x.shape) == len(grid.shape) and has_rank(x, 3, or_more=True))
    out = like(x, (*x.shape[:2], *grid.shape[1:-1]))
    taps = _taps(a, len(x.shape) - 2)
    if taps is None:
        return Work(None, (x, grid), (out,), no_flops="mode not recorded")
    return Work((2 * taps - 1 if taps > 1 else 0) * out.numel, (x, grid), (out,))


# each of 384 is weighted and added at 4 positions (8) and its position's gradient found (8): 16; go
# 384, x 96, grid 256 read, 96 and 256 written of 2 bytes
@op(
    *("grid_sample", "grid_sampler", "grid_sampler_2d", "grid_sampler_3d"),
    direction=BPROP,
    flops=6144,
    bytes=2176,
)
@op(
    *("aten::grid_sampler_2d_backward", "aten::grid_sampler_3d_backward"),
    signature=(
        "Tensor grad_output, Tensor input, Tensor grid, any mode, any padding_mode,"
        "any align_corners, any output_mask"
    ),
    # bicubic, of the grid alone: 32; the input's 96 are not written
    example=Example(
        (f16(2, 3, 8, 8), _X, _GRID, 2, 0, False, (False, True)), flops=12288, bytes=1984
    ),
)
@op(
    "aten::cudnn_grid_sampler_backward",
    signature="Tensor input, Tensor grid, Tensor grad_output",
    example=Example((_X, _GRID, f16(2, 3, 8, 8)), flops=6144, bytes=2176),
)
def grid_sample_backward(a: Args) -> Work:
    """The gradients of input and grid, or those that the mask asks for."""
    forward = grid_sample(a)
    x, grid = forward.reads
    go, mask = a.optional("grad_output") or forward.writes[0], a.values.get("output_mask")
    wanted = mask if isinstance(mask, tuple) and len(mask) == len(forward.reads) else (True, True)
    writes = tuple(like(t) for t, one in zip(forward.reads, wanted, strict=True) if one)
    taps = _taps(a, len(x.shape) - 2)
    if taps is None:
        return Work(None, (go, x, grid), writes, no_flops=forward.no_flops)
    each = (2 * taps, 2 * taps) if taps > 1 else (1, 0)  # the nearest does not move with the grid
    flops = sum(count for count, one in zip(each, wanted, strict=True) if one) * go.numel
    return Work(flops, (go, x, grid), writes)


# --- padding ------------------------------------------------------------------------------------
_PADS = tuple(f"{kind}_pad{rank}d" for kind in ("reflection", "replication") for rank in (1, 2, 3))


def _padded(a: Args, x: Tensor) -> Tensor:
    if a.output is not None:
        return like(x, a.output)
    pad = a.value("pad")
    sizes = [item for item in (pad if isinstance(pad, tuple) else (pad,)) if isinstance(item, int)]
    if len(sizes) % 2 or len(sizes) > 2 * len(x.shape) or not sizes:
        raise Unknown("pad not recorded")
    shape = list(x.shape)
    for at in range(len(sizes) // 2):
        shape[-1 - at] += sizes[2 * at] + sizes[2 * at + 1]
    return fresh(shape, x.dtype)


# 4 x 4 grows to 6 x 6: 96 read, 216 written of 2 bytes
@op(
    *("pad", "constant_pad_nd", *_PADS),
    signature="Tensor input, int[] pad, str mode, Number value",
    example=Example((_X, (1, 1, 1, 1)), flops=0, bytes=624, mod=NN),
)
def pad(a: Args) -> Work:
    """The input is copied into a larger tensor."""
    x = a.tensor("input")
    return Work(0, (x,), (_padded(a, x),))


# 216 read, 96 written of 2 bytes
@backward_of(pad, flops=0, bytes=624)
@op(
    *(f"aten::{name}_backward" for name in _PADS),
    signature="Tensor grad_output, Tensor input",
    # each incoming gradient is added at its place; 216 read, 96 written of 2 bytes
    example=Example(
        (f16(2, 3, 6, 6), _X, (1, 1, 1, 1)), flops=216, bytes=624, op="reflection_pad2d_backward"
    ),
)
def pad_backward(a: Args) -> Work:
    """The gradient cut out of the larger one; what was repeated is added up."""
    x, go = a.tensor("input"), a.optional("grad_output")
    if go is None:
        return Work(0, (_padded(a, x),), (like(x),))
    return Work(go.numel, (go,), (like(x),))
