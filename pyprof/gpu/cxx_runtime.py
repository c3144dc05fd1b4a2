"""The demangler in the C++ runtime, which Arrow brings into the process in any case."""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any, NamedTuple

LIBRARIES = ("libstdc++.so.6", "libc++.1.dylib", "libc++.so.1")
"""GNU's, macOS's, LLVM's; finding out which of them a system has would start a process."""


class _Runtime(NamedTuple):
    demangle: Any
    free: Any


def demangled(name: str) -> str | None:
    """Give the C++ name of a mangled one; None where it is none, or there is no runtime."""
    runtime = _runtime()
    if runtime is None:
        return None
    try:
        address = runtime.demangle(name.encode(), None, None, None)
    except UnicodeEncodeError:
        return None
    if not address:
        return None
    text = ctypes.string_at(address)
    runtime.free(address)
    return text.decode(errors="replace")


@cache
def _runtime() -> _Runtime | None:
    for library in LIBRARIES:
        try:
            demangle: Any = ctypes.CDLL(library)["__cxa_demangle"]
        except (OSError, AttributeError):  # Windows has none of them
            continue
        demangle.argtypes, demangle.restype = (
            [ctypes.c_char_p, *[ctypes.c_void_p] * 3],
            ctypes.c_void_p,
        )
        free: Any = ctypes.CDLL(None)["free"]
        free.argtypes, free.restype = [ctypes.c_void_p], None
        return _Runtime(demangle, free)
    return None
