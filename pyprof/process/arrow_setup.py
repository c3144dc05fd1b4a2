"""Set up Arrow, NumPy and the C library in a process of our own, before either is loaded.

Only settings that pay off; shares are of processor time, on the captures of docs/formats.md:

* glibc maps each array of more than 32 MB anew, and unmaps it when freed. Clearing that memory
  again and again takes a quarter of the time of five million kernels. It also keeps memory for each
  thread that no other thread can use: 60 MB for a million kernels.
* Arrow's own allocator keeps freed memory, which NumPy cannot use: 60 MB for a trace of 65 MB.
  Arrow's grouping allocates from the pool that the environment names when Arrow is loaded, all else
  from the pool that Python sets.
* Arrow looks for pandas when it makes its first array from a list, and so loads it: 0.2 s and
  50 MB, up to a third of the time of a small trace. Asked for a frame, it looks again and finds it.
* OpenBLAS starts a thread for each processor, which spins while it waits: half of what loading
  NumPy takes on two processors. jemalloc, which Arrow may load, starts one, too. A process without
  threads can be forked.
* Python's collector goes through all objects when a process ends, to free what the system reclaims
  anyway: a tenth of the time of a small trace.
"""

from __future__ import annotations

import atexit
import ctypes
import gc
import os
import sys
from importlib.abc import MetaPathFinder

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
    """Set up Arrow and NumPy; only in a process of our own, and before it loads either.

    In another process this would change how Arrow handles pandas objects of the user's own code.
    """
    if _MALLOPT is not None:
        _MALLOPT(_TRIM_THRESHOLD, _KEPT_BYTES)
        _MALLOPT(_MMAP_THRESHOLD, _KEPT_BYTES)
        _MALLOPT(_ARENA_MAX, 1)
    # Keep what the user has set; child processes must not inherit these.
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
        finder = _NoPandas()
        sys.meta_path.insert(0, finder)
        try:
            pa.array([0])
        finally:
            sys.meta_path.remove(finder)
    atexit.register(gc.freeze)


class _NoPandas(MetaPathFinder):
    def find_spec(self, fullname: str, *_: object) -> None:
        """Hide pandas, and leave everything else to the other finders."""
        if fullname == "pandas":
            raise ModuleNotFoundError(fullname, name=fullname)
