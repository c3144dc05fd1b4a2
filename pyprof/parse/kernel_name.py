"""Kernel names: demangled, and cut down to what a table has room for."""

from __future__ import annotations

import re
from functools import lru_cache

from pyprof.gpu.kernel_names import MOST_CHARS, WRAPPERS, head, split

_ANONYMOUS = ("<unnamed>::", "(anonymous namespace)::", "_GLOBAL__N__")
_DROPPED = ("void ", "at::", "cuda::", "native::")
_MANGLED_PART = re.compile(r"(\d+)")


@lru_cache(maxsize=1 << 18)
def demangle(name: str) -> str:
    """Give the C++ name of a mangled symbol; any other name as it is."""
    if not name.startswith("_Z"):
        return name
    try:
        import cxxfilt  # noqa: PLC0415 - only nvprof's captures hold mangled names
    except (ImportError, OSError):  # Windows has no such library
        return name
    try:
        return str(cxxfilt.demangle(name))
    except (cxxfilt.Error, ValueError):
        return name


@lru_cache(maxsize=1 << 18)
def short_name(long_name: str) -> str:
    """Give a kernel's name without namespaces, template arguments and parameters. Never empty.

    As the original: `void at::native::reduce_kernel<512, ...>(...)` is `reduce_kernel`; but an
    unnamed namespace, whichever way the tool spells it, does not make the name empty, and of what
    only wraps an operation, `cutlass::device_kernel<...>`, the operation is the name.
    """
    text = long_name[:MOST_CHARS]
    for part in _ANONYMOUS[:2]:
        text = text.replace(part, "")
    if text.startswith("_Z"):
        plain = "::".join(_mangled_parts(text)) or text
    else:
        start, end = head(text) if "<" in text or "(" in text else (0, len(text))
        plain = text[start:end]
    if plain in WRAPPERS:
        plain = split(text).path
    for part in _DROPPED:
        plain = plain.replace(part, "")
    return plain.strip() or long_name.strip() or "unknown"


def _mangled_parts(symbol: str) -> list[str]:
    """Read the identifiers of a nested name, `_ZN2at6native3fooE...`, without a demangler."""
    parts: list[str] = []
    rest = symbol.removeprefix("_Z").removeprefix("N")
    while match := _MANGLED_PART.match(rest):
        length = int(match[1]) if len(match[1]) < 6 else 0  # noqa: PLR2004 - no identifier is that long
        name, rest = rest[match.end() :][:length], rest[match.end() + length :]
        if not name:
            break
        if not name.startswith(_ANONYMOUS[2]):
            parts.append(name)
    return [part for part in parts if f"{part}::" not in _DROPPED]
