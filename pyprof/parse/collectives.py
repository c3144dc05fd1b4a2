"""What is said of collectives: by the tool, else by the marker of the call that launched them."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import numpy as np

from pyprof import marker, schema
from pyprof.parse.nesting import NONE
from pyprof.parse.records import Coded, encode

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa
    from numpy.typing import NDArray

    from pyprof.parse.nesting import Ints
    from pyprof.parse.paths import Path

_NAME = re.compile(
    r"\b(?:nccl|rccl|mscclpp?|nvshmem)|^(?:void )?(?:ncclKernel|ncclDevKernel)|^c10d::"
)
_AMOUNTS = frozenset({"dtype", "in", "out"})
"""What is said of a call, and not of each of its kernels where they are several."""


def are_collectives(names: Sequence[str]) -> NDArray[np.bool_]:
    """Tell which names are of kernels, or of ops on the CPU, that communicate."""
    return np.array([_NAME.search(name) is not None for name in names], bool)


def said(
    told: pa.ChunkedArray, described: Sequence[Path], index: Ints, call: Ints, comm: Ints
) -> Coded:
    """Give what is known of each row's collective, as JSON of `schema.COLLECTIVE`.

    `told` is what the tool says, and goes first; `index` the path of each row, `call` its op call
    (negative for none), `comm` the rows that communicate.
    """
    column = encode(told.combine_chunks())
    silent = comm[(column.index[comm] == NONE) & (call[comm] >= 0)]
    texts = [_of_path(path) for path in described]
    found: dict[str, int] = {text: place for place, text in enumerate(column.values)}
    of_path = np.array(
        [[found.setdefault(t, len(found)) if t else NONE for t in pair] for pair in texts], np.int64
    ).reshape(-1, 2)
    _, which, kernels = np.unique(call[silent], return_inverse=True, return_counts=True)
    several = (kernels[which] > 1).astype(np.int64)
    place = column.index.copy()
    place[silent] = of_path[index[silent], several]
    return Coded(place, [*found])


def _of_path(path: Path) -> tuple[str, str]:
    """Give what the innermost collective around says, and that without amounts; empty for none."""
    for text in reversed(path.markers):
        call = marker.decode_op(text)
        if call is not None and call.collective:
            known = {
                key: call.collective[key] for key in schema.COLLECTIVE if key in call.collective
            }
            named = {"name": call.op, **known}
            rest = {key: value for key, value in named.items() if key not in _AMOUNTS}
            return json.dumps(named), json.dumps(rest)
    return "", ""
