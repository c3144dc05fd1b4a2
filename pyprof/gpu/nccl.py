"""What the name of a collective's kernel tells: the collective; of NCCL (or RCCL) the algorithm.

NCCL compiles few kernels and runs other protocols, reductions and algorithms through them, so a
name is a hint: `RING_LL` also runs the Simple protocol (NCCL's src/device/generate.py says which).
"""

from __future__ import annotations

import re

from pyprof.gpu.names import by_name, split

_FUNCTION = re.compile(
    r"(?:nccl|rccl)\w*?(AllReduce|AllGather|ReduceScatter|AllToAll|SendRecv|Broadcast|Reduce|Send|Recv)",
    re.IGNORECASE,
)
_OTHERS = re.compile(
    r"(all_?reduce|all_?gather|reduce_?scatter|all_?to_?all)|cross_device_reduce", re.IGNORECASE
)
"""Of other libraries; the last is vLLM's all-reduce."""
_ALGORITHM = re.compile(
    r"(?:_|(?<=[a-z]))(RING|TREE|COLLNET\w*?|NVLS\w*?|PAT)(?=_|LL|Simple|Kernel|\W|$)",
    re.IGNORECASE,
)


@by_name
def function(name: str) -> str | None:
    """Give the collective that a kernel's name has: `AllReduce`; None where it has none."""
    if found := _FUNCTION.search(name):
        return found[1]
    other = _OTHERS.search(split(name).path)
    return other and (other[1] or "all_reduce")


def algorithm(name: str) -> str | None:
    """Give the algorithm that a kernel's name has, in capitals: `RING`; None where it has none."""
    if _FUNCTION.search(name) is None:
        return None
    found = _ALGORITHM.search(name.partition("(")[0])
    return found[1].upper() if found else None
