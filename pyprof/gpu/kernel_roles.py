"""What a kernel does, by its name, and whether that is an op's own arithmetic or only help for it.

A convolution may run as a transpose, an offset table, the convolution and a transpose back: the
op's FLOPs belong to the third kernel alone. Knows no formula and no capture.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pyprof.gpu.kernel_names import by_name, split
from pyprof.gpu.role_rules import (
    APPLIES_FUNCTOR,
    FUNCTOR_RULES,
    GENERIC_PATH,
    PATH_RULES,
    TEMPLATE_ROLES,
    Role,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

HELPERS = frozenset(
    {Role.LAYOUT, Role.SETUP, Role.SPLITK, Role.FILL, Role.COPY, Role.MEMSET, Role.MEMCPY}
)
"""Roles that serve another kernel, unless moving data is the op itself."""

MATRIX_ROLES = frozenset(
    {
        *(Role.GEMM, Role.CONV, Role.ATTENTION, Role.LINEAR_ATTENTION, Role.RNN),
        *(Role.TRITON, Role.OTHER),
    }
)
"""Roles whose kernels may hold a matrix product."""

_ELEMENTS = frozenset({Role.ELEMENTWISE, Role.RANDOM, Role.OPTIMIZER})
_MOVES = frozenset({Role.COPY, Role.MEMCPY, Role.LAYOUT})
_FILLS = frozenset({Role.FILL, Role.MEMSET})
_PICKS = (frozenset({Role.INDEX}), frozenset({Role.REDUCE}), _MOVES)

FAMILY_RANKS: Mapping[str, tuple[frozenset[Role], ...]] = {
    # dgrad may be a convolution and wgrad, in the same call, a GEMM between two transforms
    "conv": (frozenset({Role.CONV, Role.GEMM}),),
    "gemm": (frozenset({Role.GEMM}), frozenset({Role.CONV, Role.ATTENTION})),
    "attention": (frozenset({Role.ATTENTION}), frozenset({Role.GEMM})),
    "rnn": (frozenset({Role.GEMM, Role.RNN}),),
    "ssm": (frozenset({Role.LINEAR_ATTENTION, Role.CONV}),),
    # routing may be a softmax, or rows put in another order
    "moe": (frozenset({Role.GEMM}), frozenset({Role.SOFTMAX, Role.LAYOUT})),
    "pointwise": (_ELEMENTS,),
    "quantization": (_ELEMENTS,),
    "random": (_ELEMENTS,),
    "optimizer": (_ELEMENTS,),
    "reduction": (frozenset({Role.REDUCE, Role.OPTIMIZER}),),
    "norm": (frozenset({Role.NORM}), frozenset({Role.REDUCE})),
    "softmax": (frozenset({Role.SOFTMAX}), frozenset({Role.REDUCE})),
    "loss": (frozenset({Role.LOSS, Role.SOFTMAX}),),
    "pool": (frozenset({Role.POOL}),),
    "index": _PICKS,
    "embedding": _PICKS,
    "copy": (_MOVES, _ELEMENTS),
    "fill": (_FILLS,),
    "comm": (frozenset({Role.COMM}), _MOVES),
}
"""Roles that do the arithmetic of a family of ops: the first set that a kernel of the op has.

Triton kernels belong to every first set: their names do not show what they compute.
"""

_PATH = tuple((kind, re.compile(pattern, re.IGNORECASE)) for kind, pattern in PATH_RULES)
_IN_TEMPLATE = tuple((kind, pattern) for kind, pattern in _PATH if kind in TEMPLATE_ROLES)
_FUNCTOR = tuple((kind, re.compile(pattern)) for kind, pattern in FUNCTOR_RULES)
_GENERIC = re.compile(GENERIC_PATH, re.IGNORECASE)
_UNIFIED = "Unified Memory"
"""In the names of page migrations, by a fault or prefetch; DtoD is from one device to another."""
_MEMORY = re.compile(rf"^\[?(?:CUDA |HIP )?(?:{_UNIFIED} )?(mem(?:cpy|set))\b", re.IGNORECASE)
_FUNCTOR_CHARS = 400
"""A functor's own name lies within this distance of the path; nested lambdas begin beyond it."""


@by_name
def role(name: str) -> Role:
    """Return the role of a kernel, memcpy or memset by its full name; OTHER if unknown."""
    if memory := _MEMORY.match(name):
        return Role(memory[1].lower())
    path, rest = split(name)
    template_role = _first_match(_IN_TEMPLATE, rest) if _GENERIC.search(path) else None
    template_role = template_role or _first_match(_PATH, path) or Role.OTHER
    if template_role in APPLIES_FUNCTOR:
        return _first_match(_FUNCTOR, rest[:_FUNCTOR_CHARS]) or template_role
    return template_role


def _first_match(rules: tuple[tuple[Role, re.Pattern[str]], ...], text: str) -> Role | None:
    return next((kind for kind, pattern in rules if pattern.search(text)), None)


def communicates(name: str) -> bool:
    """Whether a kernel, or an op on a CPU, is communication, by its full name.

    Every part of a report uses this definition of communication.
    """
    return role(name) is Role.COMM


_WITHIN = re.compile(r"\b[DA]to[DA]\b|DeviceToDevice", re.IGNORECASE)
"""Copies within one device."""


def crosses_link(name: str) -> bool:
    """Whether a kernel's or copy's speed is that of a link to the host or another device.

    No capture records the bandwidth of PCIe or NVLink, so such a row has no share of a peak: that
    of the device's own memory does not apply.
    """
    copies = role(name) is Role.MEMCPY
    within = _WITHIN.search(name) and _UNIFIED not in name  # pages only migrate between devices
    return communicates(name) or (copies and not within)


_TRAINS = re.compile(r"bn_fw_tr|batchnorm_fwtr|batch_norm_collect_statistics")
_INFERS = re.compile(r"bn_fw_inf|batchnorm_fwinf")


@by_name
def training(name: str) -> bool | None:
    """Whether a batch norm's kernel computes statistics; None for any other kernel."""
    if _TRAINS.search(name):
        return True
    return False if _INFERS.search(name) else None


_SPARSE = re.compile(
    r"(?:cu|roc|hip)sparse(?!Lt)\w*::|\b(?:csr|coo|bsr)(?:mm|mv)|\bspm[mv]_|sddmm|_bsr_strided_"
)


def sparse_product(name: str) -> bool | None:
    """Whether a matrix product's kernel takes a sparse matrix; None for any other kernel.

    Kernels for 2:4 sparsity (cuSPARSELt) count as dense: their ops show it by their operands.
    """
    return True if _SPARSE.search(name) else None


def rank(kind: Role, family: str) -> int | None:
    """Place a role among those that may do the arithmetic of an op family: 0 is the likeliest.

    Roles that the family does not list come last, together; None for those that only help. An
    unknown or empty family has no order: every computing role is 0.
    """
    ranks = FAMILY_RANKS.get(family, ())
    if kind is Role.TRITON:
        return 0
    for index, kinds in enumerate(ranks):
        if kind in kinds:
            return index
    return None if kind in HELPERS else len(ranks)
