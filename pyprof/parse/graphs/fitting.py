"""Whether a kernel can be of an op, by their names: a check of what order alone has joined."""

from __future__ import annotations

import re

from pyprof.gpu.kernel_roles import role
from pyprof.gpu.role_rules import Role

_DOMINANT = frozenset({Role.GEMM, Role.CONV, Role.ATTENTION, Role.RNN, Role.COMM})
"""Work that only an op of its kind does."""

_PRODUCT = r"mm|matmul|linear|gemm|conv|einsum|dot|mv|bilinear|tensordot|lstm|gru|rnn|inner|outer"
_OPS = (
    (r"attention|attn|sdpa|flash|mha|fmha", _DOMINANT - {Role.COMM}),
    (_PRODUCT, {Role.GEMM, Role.CONV, Role.RNN}),
    (r"all_?reduce|all_?gather|reduce_?scatter|all_?to_?all|broadcast|send|recv|c10d", {Role.COMM}),
)
_PLAIN = re.compile(r"^aten::|^[a-z_0-9]+$")
"""Ops of PyTorch, of which the name tells the work. A library's may do anything."""

_LIGHT = re.compile(
    r"^(?:aten::)?_?(?:add|sub|mul|div|neg|exp|log|sqrt|rsqrt|relu|gelu|silu|sigmoid|tanh|clamp|where|"
    r"copy|clone|to|_to_copy|contiguous|fill|zero|zeros|ones|full|cat|stack|masked_fill)_?$"
)
_OTHER_WORK = frozenset({Role.NORM, Role.SOFTMAX, Role.LOSS, Role.POOL, Role.OPTIMIZER})


def fits(op: str | None, kernel: str) -> bool:
    """Whether an op can have launched a kernel; True unless something speaks against it."""
    kind = role(kernel)
    if op is None:
        return kind not in _DOMINANT
    name = op.split(", ", 1)[0]
    if kind in _DOMINANT:
        if not _PLAIN.search(name):
            return True
        return any(kind in kinds and re.search(words, name, re.IGNORECASE) for words, kinds in _OPS)
    if re.search(rf"^(?:aten::)?_?(?:{_PRODUCT}|addmm|baddbmm|bmm)$", name):
        return kind not in _OTHER_WORK
    return not (_LIGHT.search(name) and kind in _OTHER_WORK)
