"""Memory that was freed, but that allocators keep for themselves."""

from __future__ import annotations

import ctypes

import pyarrow as pa

_TRIM = getattr(ctypes.pythonapi, "malloc_trim", None)  # glibc's alone has it


def give_back() -> None:
    """Let Arrow's allocator and the C library's, which NumPy uses, return it to the system.

    To be called between stages that hold much for a while.
    """
    pa.default_memory_pool().release_unused()
    if _TRIM is not None:
        _TRIM(0)
