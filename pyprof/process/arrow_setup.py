"""Arrow, NumPy and the C library's memory as commands want them; and Arrow without pandas.

Arrow looks for pandas once, when it makes its first array of a list, and so loads it: 0.2 s and
50 MB that no command needs. Asked for a frame, it looks again: what comes of that is as always.

Its own allocator keeps what was freed, and takes time to clear what it asks for in advance: parse
of 65 MB of a trace holds 195 MB instead of 257. Python can choose another, but what Arrow groups
takes its memory from the one that the environment named as Arrow was loaded: 80 MB of a comparison.
NumPy asks for pages of 2 MB: of an array that is soon freed, the system clears more than is used, a
twelfth of all the time that a summary takes.

Of itself the C library asks the system anew for each array of more than 32 MB, and gives it back at
once: clearing that memory again and again took a third of the time of five million kernels.
It also keeps some for each thread, which the others cannot use: 60 MB of a million kernels.

NumPy's linear algebra, of which little is used here, starts a thread for every processor as it is
loaded, and each waits for work by spinning: half of what loading NumPy takes on two processors.
One of Arrow's allocators that is not used here has a thread, too. With none the process can be
copied, as it is for workers.

Python looks for cycles as soon as some hundred objects have come about, again and again through all
that modules hold: a fiftieth of the time of a large trace. As a process ends, it looks through all
once more, to take them apart: a tenth of the time that a small trace takes. There are few, and the
system has the memory back anyway.
"""

from __future__ import annotations

import atexit
import ctypes
import gc
import os
import sys
from contextlib import contextmanager
from importlib.abc import MetaPathFinder
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType

_OPTION = getattr(ctypes.pythonapi, "mallopt", None)
"""Of the C library: glibc's alone has it."""
_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8  # malloc.h
_KEPT_BYTES = 1 << 28
"""Smaller pieces of memory are used again before they are given back."""

_NEW_OBJECTS = 20_000
"""From so many on Python looks for cycles among them."""

_POOL = "ARROW_DEFAULT_MEMORY_POOL"
_SETTINGS = {
    "OPENBLAS_NUM_THREADS": "1",
    "JE_ARROW_MALLOC_CONF": "background_thread:false",
    _POOL: "system",
}
"""Of OpenBLAS, of the one of Arrow's allocators that would start a thread, and which it takes."""


class _Absent(MetaPathFinder):
    """Hides pandas."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Find nothing of what is hidden, and leave everything else to others."""
        del path, target
        if fullname == "pandas":
            raise ModuleNotFoundError(fullname, name=fullname)
        return None


def prepare() -> None:
    """Set Arrow and NumPy up; only in a process of our own, and before it loads either.

    What other processes make of arrays of pandas itself would depend on whether they had asked
    Arrow for a frame before.
    """
    os.environ.setdefault("NUMPY_MADVISE_HUGEPAGE", "0")  # which NumPy reads as it is loaded
    if _OPTION is not None:
        for option in (_TRIM_THRESHOLD, _MMAP_THRESHOLD):
            _OPTION(option, _KEPT_BYTES)
        _OPTION(_ARENA_MAX, 1)
    with _settings():
        import pyarrow as pa  # noqa: PLC0415 - loads NumPy

    if not os.environ.get(_POOL):  # of what Python itself makes, also where Arrow was loaded before
        pa.set_memory_pool(pa.system_memory_pool())
    if "pandas" not in sys.modules:
        _hide_pandas(pa.array)
    gc.freeze()
    gc.set_threshold(_NEW_OBJECTS)
    atexit.register(gc.freeze)


@contextmanager
def _settings() -> Iterator[None]:
    """Set up what is loaded, as far as the user has not; not what this process starts."""
    added = _SETTINGS.keys() - os.environ.keys()
    os.environ.update({name: _SETTINGS[name] for name in added})
    try:
        yield
    finally:
        for name in added:
            del os.environ[name]


def _hide_pandas(array: Callable[[list[int]], object]) -> None:
    """Have Arrow look for pandas while it is hidden."""
    absent = _Absent()
    sys.meta_path.insert(0, absent)
    try:
        array([0])
    finally:
        sys.meta_path.remove(absent)
