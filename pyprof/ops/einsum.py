"""Sums over indices: einsum, tensordot, bilinear.

A pair of operands costs one multiply-add for each combination of its indices, or one
multiplication where nothing is summed; several operands are taken pair by pair from the left, as
torch does unless opt_einsum finds a better order.
"""

from __future__ import annotations

import math

from pyprof.marker import Call, Tensor
from pyprof.ops.gemm import gradients, multiply_adds, product
from pyprof.ops.registry import BPROP, op
from pyprof.ops.signature import Unknown
from pyprof.ops.work import Args, Work, like, size

FAMILY = "gemm"

_A = Tensor((3, 4, 6), "float16")
_B = Tensor((3, 6, 5), "float16")
_MULTIPLY = {2: 1, 8: 6}  # of a multiply-add's operations, those without the addition


def _labels(equation: str, tensors: tuple[Tensor, ...]) -> tuple[list[str], str, dict[str, int]]:
    """Give the operands' labels, the result's, and their sizes; dots become labels of their own."""
    left, arrow, right = equation.replace(" ", "").partition("->")
    terms = left.split(",")
    if len(terms) != len(tensors):
        raise Unknown("arguments do not fit the op")
    named = {letter for letter in equation if letter.isalpha()}
    spare = [chr(code) for code in range(0x100, 0x120)]
    widest = max(
        len(t.shape) - len(term.replace("...", "")) for t, term in zip(tensors, terms, strict=True)
    )
    dots = spare[: max(0, widest)]
    sizes: dict[str, int] = {}
    found = []
    for term, tensor in zip(terms, tensors, strict=True):
        hidden = len(tensor.shape) - len(term.replace("...", ""))
        full = term.replace("...", "".join(dots[len(dots) - hidden :]) if hidden > 0 else "")
        if len(full) != len(tensor.shape):
            raise Unknown("arguments do not fit the op")
        for letter, length in zip(full, tensor.shape, strict=True):
            known = sizes.get(letter, 1)
            sizes[letter] = length if known == 1 else known
        found.append(full)
    if arrow:
        return found, right.replace("...", "".join(dots)), sizes
    once = sorted(letter for letter in named if left.count(letter) == 1)
    return found, "".join(dots) + "".join(once), sizes


def _contract(terms: list[str], result: str, sizes: dict[str, int], each: int) -> int:
    """Count the operations of taking the operands pair by pair."""
    flops = 0
    held = terms[0]
    if len(terms) == 1:
        return math.prod(sizes[x] for x in set(held)) if set(held) - set(result) else 0
    for at, term in enumerate(terms[1:], start=1):
        needed = set(result).union(*terms[at + 1 :])
        both = set(held) | set(term)
        kept = both & needed
        # a label of one operand alone is summed before the product
        alone = (set(held) ^ set(term)) - needed
        summed = both - kept - alone
        count = math.prod(sizes[letter] for letter in both - alone)
        flops += (each if summed else _MULTIPLY[each]) * count
        held = "".join(sorted(kept))
    return flops


# 2 * 3 * 4 * 6 * 5 = 720; 72 + 90 + 60 = 222 elements of 2 bytes
@op(
    "einsum",
    signature="str equation, Tensor[] operands",
    example=Call("torch", "einsum", ("bij,bjk->bik", _A, _B)),
    flops=720,
    bytes=444,
)
def einsum(a: Args) -> Work:
    """What the equation sums."""
    equation, operands = a.value("equation"), a.tensors("operands")
    if not isinstance(equation, str):
        raise Unknown("equation not recorded")
    terms, result, sizes = _labels(equation, operands)
    flops = _contract(terms, result, sizes, multiply_adds(operands[0].dtype))
    out = like(operands[0], tuple(sizes.get(letter, 1) for letter in result))
    return Work(flops, operands, (out,), {"equation": equation})


# one einsum like the forward for each operand's gradient: 2 * 720; each reads go 60 and the other
# operand and writes its gradient: 60 + 90 + 72 and 60 + 72 + 90 = 444 elements of 2 bytes
@op("einsum", direction=BPROP, flops=1440, bytes=888)
def einsum_backward(a: Args) -> Work:
    """A sum of the forward's size for each operand's gradient."""
    forward = einsum(a)
    if len(forward.reads) != 2:  # noqa: PLR2004 - a pair
        raise Unknown("no backward formula for einsum of other than two operands")
    return gradients(forward, a.gemm_kernels)


# the last 2 dimensions of 3,4,6 with the first 2 of 4,6,5: 2 * 3 * 24 * 5; 72 + 120 + 15 of 2 bytes
@op(
    "tensordot",
    signature="Tensor input, Tensor other, any dims",
    example=Call("torch", "tensordot", (_A, Tensor((4, 6, 5), "float16")), {"dims": 2}),
    flops=720,
    bytes=414,
)
def tensordot(a: Args) -> Work:
    """A matrix product over the dimensions named."""
    x, y, dims = a.tensor("input"), a.tensor("other"), a.value("dims", 2)
    if isinstance(dims, int):
        inner = math.prod(y.shape[:dims])
    elif isinstance(dims, tuple) and dims and isinstance(dims[0], tuple):
        inner = math.prod(size(x, at) for at in dims[0] if isinstance(at, int))
    else:
        raise Unknown("dims not recorded")
    m, n = x.numel // max(1, inner), y.numel // max(1, inner)
    return product(x, y, like(x, (m, n)), m, n, inner)


# either factor's gradient is such a product: 2 * 720; 15 + 120 + 72, 15 + 72 + 120 of 2 bytes
@op("tensordot", direction=BPROP, flops=1440, bytes=828)
def tensordot_backward(a: Args) -> Work:
    """As for a matrix product."""
    return gradients(tensordot(a), a.gemm_kernels)


# 4 samples, 5 outputs, 3 * 6 pairs and 3 sums: 2 * 4 * 5 * (18 + 3); 12 + 24 + 90 + 20 of 2 bytes
@op(
    "bilinear",
    signature="Tensor input1, Tensor input2, Tensor weight, Tensor? bias",
    example=Call(
        "torch",
        "bilinear",
        (Tensor((4, 3), "float16"), Tensor((4, 6), "float16"), Tensor((5, 3, 6), "float16")),
    ),
    flops=840,
    bytes=292,
)
def bilinear(a: Args) -> Work:
    """X times a matrix times y, for each output."""
    x, y, w = a.tensor("input1"), a.tensor("input2"), a.tensor("weight")
    samples = x.numel // max(1, size(x, -1))
    outs, first, second = size(w, -3), size(w, -2), size(w, -1)
    out = like(x, (*x.shape[:-1], outs))
    flops = multiply_adds(x.dtype) * samples * outs * (first * second + first)
    return Work(flops, (x, y, w, *a.present("bias")), (out,))


# each of three gradients is a sum over all of 4 * 5 * 3 * 6: 3 * 2 * 360; go 20, 12 + 24 + 90
# read, 12 + 24 + 90 written of 2 bytes
@op("bilinear", direction=BPROP, flops=2160, bytes=544)
def bilinear_backward(a: Args) -> Work:
    """The gradients of both inputs and the matrices; and the bias's, a sum (no FLOPs counted)."""
    forward = bilinear(a)
    x, _, w = forward.reads[:3]
    samples = x.numel // max(1, size(x, -1))
    flops = 3 * multiply_adds(x.dtype) * samples * w.numel
    return Work(flops, (*forward.writes, *forward.reads[:3]), tuple(map(like, forward.reads)))
