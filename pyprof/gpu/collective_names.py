"""Collectives by the names of their kernels; of NCCL (or RCCL) also the algorithm.

NCCL compiles few kernels and runs other protocols, reductions and algorithms through them, so a
name is a hint: `RING_LL` also runs the Simple protocol (NCCL's src/device/generate.py says which).
"""

from __future__ import annotations

import re

from pyprof.gpu.kernel_names import by_name, split

_FUNCTION = re.compile(
    r"(?:nccl|rccl)\w{0,80}?(AllReduce|AllGather|ReduceScatter|AllToAll|SendRecv|Broadcast|Reduce|Send|Recv)",
    re.IGNORECASE,
)
_OTHERS = re.compile(
    r"(all_?reduce|all_?gather|reduce_?scatter|all_?to_?all)|cross_device_reduce", re.IGNORECASE
)
"""Kernels of other libraries; the last is vLLM's all-reduce."""
_ALGORITHM = re.compile(
    r"(?:_|(?<=[a-z]))(RING|TREE|COLLNET\w*?|NVLS\w*?|PAT)(?=_|LL|Simple|Kernel|\W|$)",
    re.IGNORECASE,
)


@by_name
def collective(name: str) -> str | None:
    """Return the collective in a kernel's name: `AllReduce`; None if there is none."""
    if match := _FUNCTION.search(name):
        return match[1]
    other = _OTHERS.search(split(name).path)
    return other and (other[1] or "all_reduce")


@by_name
def algorithm(name: str) -> str | None:
    """Return the algorithm in a kernel's name, in capitals: `RING`; None if there is none."""
    if _FUNCTION.search(name) is None:
        return None
    match = _ALGORITHM.search(name.partition("(")[0])
    return match[1].upper() if match else None
