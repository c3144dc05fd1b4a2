"""What readers of databases share: CUPTI's names of API calls and copies, columns, processes.

nvprof's database only has the callback ids of calls: those of CUPTI 12.1's cupti_runtime_cbid.h and
cupti_driver_cbid.h; no id is ever reused.
"""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyprof import schema
from pyprof.arrays import MISSING, texts_by_index

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from pyprof.arrays import Int64Array

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


_COPY_KINDS = ("HtoD", "DtoH", "HtoA", "AtoH", "AtoA", "AtoD", "DtoA", "DtoD", "HtoH", "PtoP")
"""By CUpti_ActivityMemcpyKind, from 1, as both tools store it."""
_UNIFIED_KINDS = {11: "HtoD", 12: "DtoH", 13: "DtoD"}  # nsys adds these
_COPY_NAMES = {
    **{kind: f"[CUDA memcpy {name}]" for kind, name in enumerate(_COPY_KINDS, 1)},
    **{kind: f"[CUDA Unified Memory memcpy {name}]" for kind, name in _UNIFIED_KINDS.items()},
}


def copy_names(kinds: NDArray[np.int64]) -> pa.DictionaryArray:
    """Name copies as nvprof printed them: `[CUDA memcpy HtoD]`."""
    used, inverse = np.unique(kinds, return_inverse=True)
    names = [_COPY_NAMES.get(kind, "[CUDA memcpy]") for kind in used.tolist()]
    return texts_by_index(inverse, names)


def constant(text: str, rows: int) -> pa.DictionaryArray:
    """Repeat one text as a dictionary column."""
    return texts_by_index(np.zeros(rows, np.int32), [text])


def index_of(
    columns: Sequence[NDArray[np.int64]],
) -> tuple[NDArray[np.int64], list[NDArray[np.int32]]]:
    """Number the distinct values of several columns; return them and the numbers by column."""
    joined = pa.array(
        np.concatenate(columns)
    ).dictionary_encode()  # hashes instead of sorting millions
    codes = joined.indices.to_numpy(zero_copy_only=False).astype(np.int32, copy=False)
    values = joined.dictionary.to_numpy(zero_copy_only=False)
    return values, np.split(codes, np.cumsum([len(column) for column in columns])[:-1])


def base_columns(rows: pa.Table, kind: int) -> dict[str, object]:
    """Return the columns that GPU work of every kind has in both tools' tables."""
    names = ("start", "end", "device", "stream", "corr")
    columns = zip(names, (rows.column(name) for name in BASE_COLUMNS), strict=True)
    return {"kind": np.full(rows.num_rows, kind, np.int8), **dict(columns)}


BASE_COLUMNS = ("start", "end", "deviceId", "streamId", "correlationId")
"""Their names in both tools' tables."""


def kernel_columns(rows: pa.Table) -> dict[str, object]:
    """Return the columns of `KERNEL_COLUMNS` in the schema's names."""
    shared = (rows.column(f"{part}SharedMemory") for part in ("static", "dynamic"))
    return {
        **{f"grid_{axis}": rows.column(f"grid{axis.upper()}") for axis in "xyz"},
        **{f"block_{axis}": rows.column(f"block{axis.upper()}") for axis in "xyz"},
        "regs": rows.column("registersPerThread"),
        "smem": pc.add(*shared),
    }


KERNEL_COLUMNS = (
    *("registersPerThread", "staticSharedMemory", "dynamicSharedMemory"),
    *("gridX", "gridY", "gridZ", "blockX", "blockY", "blockZ"),
)
"""Names in both tools' tables of what only kernels have."""


def concat(tables: Iterable[pa.Table]) -> pa.Table:
    """Concatenate tables of one schema, with one dictionary for each column."""
    listed = [*tables]
    filled = [table for table in listed if table.num_rows]
    return pa.concat_tables(filled or listed[:1]).unify_dictionaries()


def by_first_device(used: Iterable[tuple[Int64Array, Int64Array]]) -> schema.Identity:
    """Return the processes in the order of the devices that they use first.

    `used` are processes and devices; work whose device is not recorded counts as the last.
    """
    nothing = np.zeros(0, np.int64)
    pid, device = (np.concatenate(column) for column in zip((nothing, nothing), *used, strict=True))
    device = np.where(device == MISSING, np.iinfo(np.int64).max, device)
    return schema.Identity(pids=tuple(dict.fromkeys(pid[np.lexsort((pid, device))].tolist())))
