"""Kernels that Inductor wrote: a name that lists the ops fused in it, and the kernel's arguments.

`triton_poi_fused_add_mul_3` adds and multiplies. FLOPs: the pointwise rules' sum for each element
of the iteration space, taken as the largest tensor. Bytes: each pointer argument moved once; one
that is read and written is known by its name alone, which is not among the arguments, so an
in-place kernel counts one move too few. Ops without a pointwise or reducing rule add nothing.
"""

from __future__ import annotations

from pyprof.marker import Call, Tensor
from pyprof.ops.pointwise_rules import RULES
from pyprof.ops.reductions import COSTS
from pyprof.ops.registry import op
from pyprof.ops.signature import Unknown
from pyprof.ops.work import Args, Work

_KNOWN = {name: rule.flops for name, rule in RULES.items()}
_REDUCING = {name: each for name, (each, _) in COSTS.items()}
_LONGEST_NAME = 6  # words


def fused_names(kernel: str) -> list[str]:
    """Give the ops in a kernel's name: `add` and `mul` of `triton_poi_fused_add_mul_3`."""
    words = kernel.partition("_fused_")[2].split("_")
    found = []
    at = 0
    while at < len(words):
        for length in range(min(_LONGEST_NAME, len(words) - at), 0, -1):
            name = "_".join(words[at : at + length])
            if name in _KNOWN or name in _REDUCING:
                found.append(name)
                at += length
                break
        else:
            at += 1
    return found


# add and mul for each of 24 elements; three tensors of 24 of 2 bytes
@op(
    "triton.*",
    signature="Value[] arguments",
    example=Call("", "triton_poi_fused_add_mul_3", (*(Tensor((4, 6), "float16"),) * 3, 24)),
    flops=48,
    bytes=144,
)
def fused_kernel(a: Args) -> Work:
    """So much for each op named, for each element."""
    tensors = tuple(value for value in a.listed("arguments") if isinstance(value, Tensor))
    if not tensors:
        raise Unknown("shapes not recorded")
    count = max(tensor.numel for tensor in tensors)
    names = fused_names(a.op)
    flops = sum(_KNOWN.get(name, _REDUCING.get(name, 0)) for name in names) * count
    return Work(flops, tensors, (), {"ops": "+".join(names)})
