"""Advice on kernels: layouts, thread blocks and waves, distance from the peaks, DRAM traffic."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from pyprof import schema
from pyprof.analysis.advice.registry import (
    COSTS,
    COUNTERS,
    GPU,
    KERNELS,
    NODES,
    OPS,
    PEAKS,
    SMS,
    rule,
)
from pyprof.analysis.advice.rule_context import is_most
from pyprof.analysis.library import is_autotuned, is_compiled
from pyprof.analysis.time.timeline import COMMUNICATION, activity_classes
from pyprof.gpu.eligible import FAMILIES
from pyprof.gpu.role_rules import Role
from pyprof.gpu.roofline import LAUNCH_NS, LIMITS
from pyprof.prof.kernels.counter_rates import excess

if TYPE_CHECKING:
    from pyprof.analysis.advice.finding import Advice
    from pyprof.analysis.advice.rule_context import RuleContext
    from pyprof.marker import Call


_BETWEEN_LAYOUTS = re.compile(
    r"(?<!folded)(?:nchw_?(?:to|2)_?nhwc|nhwc_?(?:to|2)_?nchw)(?!folded)|batched_transpose",
    re.IGNORECASE,
)
"""Layout transposes of cuDNN and MIOpen. Other preparation is part of the convolution itself."""
_CUDNN = re.compile("cudnn", re.IGNORECASE)
"""cuDNN's kernels count as those of convolutions even if no op is known."""


_CHANNELS_FIRST = re.compile("group_norm|instance_norm")
"""Norms whose kernels on CUDA took contiguous tensors alone until August 2026 (pytorch#111824)."""
_SEQUENCES, _IMAGES, _VOLUMES = 3, 4, 5
"""Dimensions of tensors that convolutions of one, two and three dimensions take."""


@rule(
    "transforms of cuDNN's algorithm: Winograd, FFT, im2col, flipped filters",
    "few channels padded within channels-last: folded NHWC",
    "a convolution of sequences, which have no such format",
    about="layouts",
    needs=(KERNELS, NODES),
)
def channels_last(context: RuleContext) -> Advice | None:
    """Find kernels that only rearrange the tensors of convolutions: all their time could go."""
    of_convolution = context.family("conv") | (context.without_op & context.named(_CUDNN))
    dimensions = context.measure_calls(_count_dimensions)
    rows = np.flatnonzero(
        of_convolution & context.named(_BETWEEN_LAYOUTS) & (dimensions != _SEQUENCES)
    )
    # model.to() converts all that has 4 or 5 dimensions: an error if it has both
    if (dimensions[rows] == _VOLUMES).any():
        action = "use .to(memory_format=torch.channels_last_3d) for each Conv3d and its input,"
        action += " torch.channels_last for each Conv2d"
    else:
        action = "use model.to(memory_format=torch.channels_last), and the same for the input"
    if (context.chosen & context.op.matches(lambda op: bool(_CHANNELS_FIRST.search(op)))).any():
        action += "; GroupNorm and InstanceNorm may put channels first again"
    return context.advice(
        "tensors are rearranged around convolutions",
        action,
        rows,
        context.most(rows, context.ns[rows]),
        elsewhere="keep tensors in the layout NHWC (channels last)",
    )


def _count_dimensions(call: Call) -> int:
    """Count the dimensions of a convolution's tensors; PyTorch gives sequences a height of 1."""
    shapes = [tensor.shape for tensor in call.tensors]
    dimensions = max(map(len, shapes), default=0)
    flat = dimensions == _IMAGES and all(shape[2] == 1 for shape in shapes if len(shape) == _IMAGES)
    return _SEQUENCES if flat else dimensions


_TO_CONTIGUOUS = frozenset({"contiguous", "reshape", "flatten"})
_MUCH = 0.05


@rule(
    "nothing is copied: the tensor is contiguous already, or only viewed",
    "a small part of the time, as in most attention layers",
    "clone() and to(): the copy is what was asked for",
    about="layouts",
    needs=(OPS,),
)
def contiguous_copies(context: RuleContext) -> Advice | None:
    """Find copies that only change a tensor's layout in memory: all their time could go."""
    rows = np.flatnonzero(context.is_op(_TO_CONTIGUOUS))
    return context.advice(
        "tensors are copied only to become contiguous",
        "leave out .contiguous(): nearly all ops take strided tensors (.reshape() copies only if it"
        " must); or make the tensor in the layout that is needed: torch.randn(n, t, c) instead of"
        " torch.randn(n, c, t).permute(0, 2, 1).contiguous(), torch.einsum",
        rows,
        context.most(rows, context.ns[rows]),
        min_share=_MUCH,
    )


_ALMOST_ALL = 0.9
"""If at least this share of the SMs has a block, the rest is kept free, or fits no cluster."""
_BLOCK_A_CHANNEL = re.compile(
    r"bn_[fb]w\w*_1C11_|batch_norm_(?:collect_statistics|backward|backward_reduce)_kernel"
)
"""Batch norms of cuDNN and PyTorch with channels first."""


@rule(
    "a collective, whose blocks are its channels",
    "a persistent kernel, which takes the SMs that it wants, by its name or by a fixed grid",
    "all but a few SMs have a block",
    "a batch norm, which has a block for each channel, however large the batch",
    about="thread blocks",
    needs=(GPU, NODES, SMS),
)
def low_occupancy(context: RuleContext) -> Advice | None:
    """Find kernels with fewer blocks than the GPU has SMs, if they are long enough to matter.

    At best, with every SM at work, their time shrinks to the share of SMs that work now, or to that
    of the roofline, where few SMs come nearer to it: a few can use most of the bandwidth.
    """
    filled = context.blocks_per_sm
    few = (filled > 0) & (filled < _ALMOST_ALL) & (context.ns >= LAUNCH_NS)
    communicates = activity_classes(context.table.records) == COMMUNICATION
    by_design = communicates | context.persistent | context.named(_BLOCK_A_CHANNEL)
    rows = np.flatnonzero(context.chosen & few & ~by_design)
    reached = np.fmax(filled, np.minimum(context.table.roofline.share, 1))[rows]
    return context.advice(
        "kernels have fewer thread blocks than the GPU has SMs",
        "use larger batches, batched or grouped ops instead of loops, or parallel streams",
        rows,
        context.most(rows, context.ns[rows] * (1 - reached)),
    )


_FAR, _GOOD = 0.3, 0.6
"""Shares of the roofline: below the first a kernel is far from it; well-written ones reach the
second, which the gain assumes."""


@rule(
    "too short: a launch and its drain take the time",
    "too few blocks, which low_occupancy reports",
    "one of a recurrent layer's kernels, for all steps or for one: their FLOPs are not known apart",
    about="distance from the peaks",
    needs=(KERNELS, OPS, COSTS, PEAKS),
)
def under_roof(context: RuleContext) -> Advice | None:
    """Find kernels below 30 % of their roofline, known to be neither tiny nor short of blocks.

    The gain is what they would save at 60 %.
    """
    share = context.table.roofline.share
    bound = context.table.bound.is_in("compute", "memory")
    with np.errstate(invalid="ignore"):
        far = context.chosen & bound & (share < _FAR) & (context.ns >= LAUNCH_NS)
    far &= (context.blocks_per_sm > 0) & ~context.family("rnn")
    off = context.reason_startswith("TF32: off")  # these have the rule `tf32`
    rows = np.flatnonzero(far & context.kind(schema.KERNEL) & ~off)
    gain_ns = context.ns[rows] * (1 - share[rows] / _GOOD)
    if is_most(gain_ns, context.family("attention")[rows]):
        action = "try attention's other backends (torch.nn.attention.sdpa_kernel, flash-attn)"
    elif is_most(gain_ns, context.reason_startswith("alignment:")[rows]):
        action = "pad the sizes of these products to multiples of 16 bytes (8 numbers in half"
        action += " precision); the column why names those that are not"
    elif is_most(gain_ns, context.role(Role.GEMM)[rows]):  # the vendor's kernels
        action = "fewer, larger products come nearer to them: larger batches, or weights side by"
        action += " side in one product"
        if not is_autotuned(context.table):
            action += "; torch.compile(mode='max-autotune') tries other kernels"
    elif is_autotuned(context.table):
        action = "use contiguous inputs, or a fused or vendor implementation of the op"
    elif is_compiled(context.table):
        action = "use contiguous inputs, a fused or vendor implementation, or"
        action += " torch.compile(mode='max-autotune')"
    else:
        action = "use torch.compile, contiguous inputs, or a fused or vendor implementation"
        action += " of the op"
    return context.advice(
        "kernels are far below the GPU's peaks",
        action,
        rows,
        context.most(rows, gain_ns),
        elsewhere="use contiguous inputs, or a fused or vendor implementation of the op",
    )


_MAX_WAVES = 4.0
"""With more waves than this, the last one hardly matters."""
_FILLED = 0.75
"""Waves that fill at least this share of the GPU, on average, have no tail worth mentioning."""
_MEMORY = LIMITS.index("memory")


@rule(
    "a persistent kernel, whose blocks take tiles as they come",
    "memory limits it: fewer blocks then share the same bandwidth",
    "a single wave, which low_occupancy reports, or so many that the last hardly matters",
    "the kernel is nearer to its peak than such a tail allows",
    about="thread blocks",
    needs=(GPU, NODES, SMS, OPS),
)
def tail(context: RuleContext) -> Advice | None:
    """Find products whose last wave of blocks fills less of the GPU than the others."""
    waves = context.table.occupancy.waves
    with np.errstate(invalid="ignore"):
        filled = waves / np.ceil(waves)
        few = (waves > 1) & (waves < _MAX_WAVES) & (filled < _FILLED) & (context.ns >= LAUNCH_NS)
        few &= context.table.roofline.share < filled
    limited = context.table.roofline.limit == _MEMORY
    rows = np.flatnonzero(context.family(*FAMILIES) & few & ~limited & ~context.persistent)
    return context.advice(
        "the last wave of thread blocks leaves most of the GPU idle",
        "choose sizes, or a tile, whose blocks fill whole waves; see the columns occ and waves",
        rows,
        context.most(rows, context.ns[rows] * (1 - filled[rows])),
        detail=[f"{count:.2f} waves" for count in waves[rows].tolist()],
    )


_EXCESS = 1.5
"""Above this ratio of measured to needed bytes, a kernel moves too many."""


@rule(
    "arithmetic limits it",
    "nothing was measured",
    about="DRAM traffic",
    needs=(GPU, COUNTERS, COSTS),
)
def excess_traffic(context: RuleContext) -> Advice | None:
    """Find memory-bound kernels that, by counters, move many more bytes than their ops need."""
    if not context.table.measured.any:
        return None
    ratio = excess(context.table)
    with np.errstate(invalid="ignore"):
        much = (ratio >= _EXCESS) & (context.table.roofline.limit == _MEMORY)
    rows = np.flatnonzero(context.chosen & much)
    return context.advice(
        "kernels move more bytes than their ops need, by counters",
        "use contiguous inputs, tiles that reuse data in cache, or a fused implementation",
        rows,
        context.most(rows, context.ns[rows] * (1 - 1 / ratio[rows])),
        detail=[f"{times:.1f} times the least" for times in ratio[rows].tolist()],
    )
