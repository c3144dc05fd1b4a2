"""Names of CUDA's API calls by CUPTI's callback id: nvprof's database holds the ids alone.

They are those of CUPTI 12.1's cupti_runtime_cbid.h and cupti_driver_cbid.h; no id is ever reused.
"""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

_VERSION = re.compile(r"_v\d+$")


def call_name(api: str, cbid: int) -> str:
    """Name a call as nvprof printed it, without CUDA's version; `RUNTIME call 9999` if unknown."""
    return _VERSION.sub("", _names().get((api, cbid), f"{api} call {cbid}"))


@cache
def _names() -> dict[tuple[str, int], str]:
    lines = (
        files("pyprof.readers").joinpath("cupti_calls.txt").read_text(encoding="ascii").splitlines()
    )
    return {(api, int(cbid)): name for api, cbid, name in map(str.split, lines)}


# What the SQLite readers share: NVIDIA's copy kinds, and small joins of columns.


COPY_KINDS = {
    # CUpti_ActivityMemcpyKind, as both tools store it
    1: "HtoD",
    2: "DtoH",
    3: "HtoA",
    4: "AtoH",
    5: "AtoA",
    6: "AtoD",
    7: "DtoA",
    8: "DtoD",
    9: "HtoH",
    10: "PtoP",
}
UNIFIED_KINDS = {11: "HtoD", 12: "DtoH", 13: "DtoD"}  # nsys adds these


def copy_names(kinds: NDArray[np.int64]) -> pa.DictionaryArray:
    """Name copies as nvprof printed them: `[CUDA memcpy HtoD]`."""
    used, inverse = np.unique(kinds, return_inverse=True)
    return pa.DictionaryArray.from_arrays(
        pa.array(inverse.astype(np.int32)),
        pa.array([_copy_name(int(kind)) for kind in used], pa.string()),
    )


def _copy_name(kind: int) -> str:
    if kind in UNIFIED_KINDS:
        return f"[CUDA Unified Memory memcpy {UNIFIED_KINDS[kind]}]"
    return f"[CUDA memcpy {COPY_KINDS[kind]}]" if kind in COPY_KINDS else "[CUDA memcpy]"


def constant(text: str, rows: int) -> pa.DictionaryArray:
    """Repeat one text as a dictionary column."""
    return pa.DictionaryArray.from_arrays(
        pa.array(np.zeros(rows, np.int32)), pa.array([text], pa.string())
    )


def index_of(
    columns: Sequence[NDArray[np.int64]],
) -> tuple[NDArray[np.int64], list[NDArray[np.int32]]]:
    """Number the distinct values of several columns: the values, and each column's numbers."""
    joined = pa.array(np.concatenate(columns)).dictionary_encode()  # hashing; no sort of millions
    codes = joined.indices.to_numpy(zero_copy_only=False).astype(np.int32, copy=False)
    values = joined.dictionary.to_numpy(zero_copy_only=False)
    return values, np.split(codes, np.cumsum([len(column) for column in columns])[:-1])


def concat(tables: Sequence[pa.Table]) -> pa.Table:
    """Put tables of one schema under each other, their dictionaries made one."""
    return pa.concat_tables(tables).unify_dictionaries()
