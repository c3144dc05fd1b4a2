"""Set up Arrow, NumPy and the C library in a process of our own, before either is loaded.

Only what pays is here; shares are of processor time, on the captures of docs/formats.md:

* glibc maps each array of more than 32 MB anew, and unmaps it as it is freed. Clearing that memory
  again and again takes a quarter of the time of five million kernels. It also keeps memory for each
  thread that no other can use: 60 MB of a million kernels.
* Arrow's own allocator keeps what was freed from NumPy: 60 MB of a trace of 65 MB. What Arrow
  groups comes from the one that the environment names as Arrow is loaded, all else from Python's.
* Arrow looks for pandas as it makes its first array of a list, and so loads it: 0.2 s and 50 MB, up
  to a third of the time of a small trace. Asked for a frame it looks again, and finds it.
* OpenBLAS starts a thread for each processor, which spins as it waits: half of what loading NumPy
  takes on two processors. jemalloc, which Arrow may load, starts one, too. A process without
  threads can be forked.
* Python's collector goes through all objects as a process ends, to take apart what the system has
  back anyway: a tenth of the time of a small trace.
"""

from __future__ import annotations

import atexit
import ctypes
import gc
import os
import sys
from importlib.abc import MetaPathFinder
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_MALLOPT = getattr(ctypes.pythonapi, "mallopt", None)
"""None without glibc."""
_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8  # malloc.h
_KEPT_BYTES = 1 << 28

_POOL = "ARROW_DEFAULT_MEMORY_POOL"
_ENVIRONMENT = {
    "OPENBLAS_NUM_THREADS": "1",
    "JE_ARROW_MALLOC_CONF": "background_thread:false",
    _POOL: "system",
}


def prepare() -> None:
    """Set Arrow and NumPy up; only in a process of our own, and before it loads either.

    In another process it would change what the user's own code makes of arrays of pandas.
    """
    if _MALLOPT is not None:
        _MALLOPT(_TRIM_THRESHOLD, _KEPT_BYTES)
        _MALLOPT(_MMAP_THRESHOLD, _KEPT_BYTES)
        _MALLOPT(_ARENA_MAX, 1)
    # Not what the user has set, and not for the processes that this one starts.
    added = {name: value for name, value in _ENVIRONMENT.items() if name not in os.environ}
    os.environ.update(added)
    try:
        import pyarrow as pa  # noqa: PLC0415 - loads NumPy
    finally:
        for name in added:
            del os.environ[name]
    if not os.environ.get(_POOL):
        pa.set_memory_pool(pa.system_memory_pool())
    if "pandas" not in sys.modules:
        _without_pandas(lambda: pa.array([0]))
    atexit.register(gc.freeze)


class _NoPandas(MetaPathFinder):
    def find_spec(self, fullname: str, *_: object) -> None:
        """Hide pandas, and leave everything else to the other finders."""
        if fullname == "pandas":
            raise ModuleNotFoundError(fullname, name=fullname)


def _without_pandas(call: Callable[[], object]) -> None:
    finder = _NoPandas()
    sys.meta_path.insert(0, finder)
    try:
        call()
    finally:
        sys.meta_path.remove(finder)
