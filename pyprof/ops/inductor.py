"""Kernels that Inductor wrote: a name that lists the ops fused in it, and the kernel's arguments.

`triton_poi_fused_add_mul_3` adds and multiplies. FLOPs: the pointwise rules' sum for each element
of the iteration space, whose sizes follow the tensors in the arguments; if they are missing, the
largest tensor counts. In a kernel that reduces, a root is that of a row, and adds next to nothing;
of one that sums up a product, the product alone counts. A kernel without names, or one for lists of
tensors, has unknown FLOPs.
Bytes: each pointer argument moved once. Only the name of an argument shows that it is both read and
written, and names are not recorded, so an in-place kernel counts one move too few. Kernels that
only select elements, such as copies of slices, read no more of an argument than they write; how
much other kernels read is not recorded. Ops without a pointwise or reducing rule add nothing.

A template (`triton_tem_fused_mm_0`) is a matrix product with pointwise ops after it: its factors
and result are those three arguments whose sizes fit M K, K N and M N; if none fit, or the template
is another, the arithmetic is unknown.
"""

import math
import re
from itertools import pairwise

from pyprof.marker import FRAMES, FUSED_OPS, Tensor
from pyprof.ops.examples import Example, f16
from pyprof.ops.registry import op
from pyprof.ops.signature import Unknown
from pyprof.ops.torch.linalg.gemm import product
from pyprof.ops.torch.tensors.pointwise_rules import RULES
from pyprof.ops.torch.tensors.reductions import COSTS
from pyprof.ops.work import Args, Work, like, stored

FAMILY = "fused"

_ATTRIBUTES = ["kernel_file", "kernel_hash", "kernel_kwargs", "num_warps", "num_stages", "grid"]
_SIGNATURE = ", ".join(
    [*(f"attribute {name}" for name in (*_ATTRIBUTES, FRAMES, FUSED_OPS)), "Value[] arguments"]
)

_EACH = {name: each for name, (each, _) in COSTS.items()}
_EACH |= {name: rule.flops for name, rule in RULES.items()}
_PRODUCTS = {"mm", "addmm", "bmm", "baddbmm"}
_SUMMED = {"mm", "bmm", "mv"}
"""Products with a vector that Inductor writes as sums; of `addmm`, it may be the bias alone."""
_LONGEST_NAME = 6  # words
_UNARY = (name for name, rule in RULES.items() if rule.arity == 1)
_PICKS = (
    "clone copy _to_copy slice select split split_with_sizes narrow chunk unbind cat stack "
    "constant_pad_nd embedding index index_select view _unsafe_view reshape expand permute "
    "transpose t squeeze unsqueeze repeat flip roll detach alias lift_fresh_copy"
)
_NAMES = sorted((*_PICKS.split(), *_UNARY), key=len, reverse=True)
_PICKING = re.compile(rf"(?:(?:{'|'.join(map(re.escape, _NAMES))})(?:_|$))+")
"""Names of ops that make each element from a single element."""
_TABLES = {"embedding", "index", "gather"}
_WINDOWS = {"pool2d", "pool3d", "unfold", "im2col", "split", "chunk", "unbind"}
"""Ops that read several elements of an argument for each one they make, or make parts of it."""
_NAMELESS = re.compile(r"triton_(?:poi|for)_fused_\d+")
"""A kernel's name that has a number but no ops."""


def _words(kernel: str) -> list[str]:
    return kernel.partition("_fused_")[2].split("_")


def fused_names(kernel: str) -> list[str]:
    """Return the ops in a kernel's name: `add` and `mul` of `triton_poi_fused_add_mul_3`."""
    words = _words(kernel)
    ops = []
    at = 0
    while at < len(words):
        for length in range(min(_LONGEST_NAME, len(words) - at), 0, -1):
            name = "_".join(words[at : at + length])
            if name in _EACH:
                ops.append(name)
                at += length
                break
        else:
            at += 1
    return ops


# add and mul for each of 24 elements; three tensors of 24 of 2 bytes
@op(
    "triton.*",
    signature=_SIGNATURE,
    example=Example(
        (*(f16(4, 6),) * 3, 24), flops=48, bytes=144, op="triton_poi_fused_add_mul_3", mod=""
    ),
)
def fused_kernel(a: Args) -> Work:
    """The cost of each fused op for each element."""
    tensors, names = _tensors(a), _fused_ops(a)
    sizes = [value for value in a.listed("arguments") if type(value) is int]
    sized = bool(sizes) and a.op.startswith("triton_poi_")
    nameless = _NAMELESS.fullmatch(a.op) is not None
    reduces = a.op.startswith(("triton_red_", "triton_per_"))

    count = max(tensor.numel for tensor in tensors)
    # sizes of dynamic shapes may be among them; on a CPU, only these follow the tensors
    if sizes and min(sizes) > 0 and a.op.startswith("triton_"):
        count = min(math.prod(sizes), count)
    if _picks_one(a.op) or _looks_up(a.op) or (nameless and sized):
        tensors = tuple(like(t, (count,)) if stored(t) > count else t for t in tensors)

    why = ""
    if nameless and not a.given(FUSED_OPS):
        why = "the kernel's name contains none of its fused ops"
    elif a.op.startswith("triton_for_"):
        why = "it is not recorded which of its tensors are results"
    params = {"ops": "+".join(names)}
    if len({stored(t) for t in tensors}) > 1:
        if nameless and not sized:
            return Work(None, tensors, (), params, why=why or "unknown bytes")
        if _looks_up(a.op) and not sizes:
            why = "how much of its tables it reads is not recorded"
            return Work(None, tensors, (), params, why=why)
    if why:
        return Work(None, tensors, (), params, no_flops=why)
    if reduces and not _SUMMED.isdisjoint(_words(a.op)):
        return Work(2 * count, tensors, (), params)
    of_elements = [name for name in names if name != "rsqrt" or not reduces]
    return Work(_each(of_elements) * count, tensors, (), params)


def _fused_ops(a: Args) -> list[str]:
    """Return the ops that a kernel fuses: as recorded next to the trace, else as in its name."""
    recorded = a.value(FUSED_OPS)
    return recorded.split("+") if isinstance(recorded, str) else fused_names(a.op)


# three tensors of 24 of 2 bytes; nothing shows what is done with them
@op(
    "triton.own",
    signature=_SIGNATURE,
    example=Example((*(f16(4, 6),) * 3, 24), bytes=144, op="my_kernel_0"),
)
def own_kernel(a: Args) -> Work:
    """A Triton kernel of the user's own in a compiled graph: each argument once."""
    why = "a Triton kernel of yours: what it computes is not recorded"
    return Work(None, _tensors(a), (), no_flops=why)


# a product 2 * 4 * 6 * 5 and relu of 20; 24 + 30 + 20 of 2 bytes
@op(
    "triton.tem",
    family="gemm",
    signature=_SIGNATURE,
    example=Example(
        tuple(Tensor(shape, "float16") for shape in ((4, 6), (6, 5), (4, 5))),
        flops=260,
        bytes=148,
        op="triton_tem_fused_mm_relu_1",
        mod="",
    ),
)
def template(a: Args) -> Work:
    """A matrix product whose factors are found by their sizes, and the cost of ops after it."""
    tensors = _tensors(a)
    is_product = not _PRODUCTS.isdisjoint(a.op.split("_"))
    if not is_product or (product := _product(tensors)) is None:
        return other_template(a)
    each = _each(_fused_ops(a))
    return Work((product.flops or 0) + each * product.writes[0].numel, tensors, (), product.params)


_IMAGE = f16(2, 3, 8, 8)


# three tensors of 384 of 2 bytes; their sizes do not show what is done with them
@op(
    "triton.tem_attention",
    family="attention",
    signature=_SIGNATURE,
    example=Example(((_IMAGE,) * 3), bytes=2304, op="triton_tem_fused_flex_attention_0", mod=""),
)
@op(
    "triton.tem_convolution",
    family="conv",
    signature=_SIGNATURE,
    example=Example(((_IMAGE,) * 3), bytes=2304, op="triton_tem_fused_convolution_0", mod=""),
)
def other_template(a: Args) -> Work:
    """Each argument once; the arithmetic is not known."""
    params: dict[str, object] = {"ops": "+".join(_fused_ops(a))}
    why = "sizes of a template kernel not recorded"
    return Work(None, _tensors(a), (), params, no_flops=why)


def _tensors(a: Args) -> tuple[Tensor, ...]:
    operands = tuple(value for value in a.listed("arguments") if isinstance(value, Tensor))
    if not operands:
        raise Unknown("shapes not recorded")
    return operands


def _each(names: list[str]) -> int:
    return sum(_EACH.get(name, 0) for name in names)


def _picks_one(kernel: str) -> bool:
    """Whether a kernel makes each element of its result from one element of an argument.

    Then it reads no more of an argument than it writes: a slice, a row of a table, not all of it.
    """
    kind, _, words = kernel.partition("_fused_")
    return kind == "triton_poi" and _PICKING.fullmatch(words.rpartition("_")[0]) is not None


def _looks_up(kernel: str) -> bool:
    """Whether a kernel takes rows of a table, and so reads no more of it than it makes."""
    words = _words(kernel)
    return not _TABLES.isdisjoint(words) and _WINDOWS.isdisjoint(words)


def _product(tensors: tuple[Tensor, ...]) -> Work | None:
    """Return the product of the first two arguments whose result fits another one."""
    matrices = [tensor for tensor in tensors if len(tensor.shape) > 1]
    for at, (first, second) in enumerate(pairwise(matrices)):
        m, k, n = first.shape[-2], first.shape[-1], second.shape[-1]
        shape = (*first.shape[:-2], m, n)
        if second.shape[:-1] != (*first.shape[:-2], k):
            continue
        if any(out.shape == shape for out in matrices[at + 2 :]):
            return product(first, second, like(first, shape), m, n, k)
    return None
