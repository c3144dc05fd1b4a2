"""Take a kernel's name apart: the function's path, and the template arguments behind it.

A full name may be kilobytes of C++ in which a functor, a namespace or a file name looks like
another kernel; rules look at the path first. Mangled names work too, for captures whose names
nobody could demangle.
"""

from __future__ import annotations

import re
from functools import lru_cache, wraps
from typing import TYPE_CHECKING, NamedTuple, TypeVar, cast

from pyprof.parse.kernelname import MOST_CHARS

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

F = TypeVar("F", bound="Callable[..., object]")

_CACHE = 1 << 18
"""Distinct names kept in each cache; a long training run has some thousand."""

_ANONYMOUS = re.compile(r"\(anonymous namespace\)::|<unnamed>::|_GLOBAL__N_\w*::")
_RETURN_TYPE = re.compile(r"^(?:typename\s+)?(?:\w+::)*enable_if(?:_t)?<[^>]*>(?:::type)?\s+")
_PATH_END = re.compile(r"[<(]")


class Name(NamedTuple):
    """A kernel's name, split where its path ends."""

    path: str
    """`at::native::reduce_kernel`: no return type, no arguments, no anonymous namespace."""
    rest: str
    """Template arguments and parameters as they stand; empty for a plain C name."""


def by_name(function: F) -> F:
    """Make a function of a kernel's name look at each name once, and at no endless one whole."""
    cached = lru_cache(maxsize=_CACHE)(function)

    @wraps(function)
    def looked_up(name: str, *args: Hashable, **options: Hashable) -> object:
        return cached(name[:MOST_CHARS], *args, **options)

    return cast("F", looked_up)


@by_name
def split(name: str) -> Name:
    """Split `name`, demangled or mangled, cut short or whole. Never fails: the path may be all."""
    if name.startswith("_Z"):
        return _split_mangled(name)
    text = _RETURN_TYPE.sub("", _ANONYMOUS.sub("", name))
    found = _PATH_END.search(text)
    end = found.start() if found else len(text)
    words = text[:end].split()
    return Name(words[-1] if words else text, text[end:])


def _split_mangled(name: str) -> Name:
    """Read the length-prefixed identifiers of an Itanium name: `_ZN2at6native3fooI...`."""
    at = 3 if name.startswith("_ZN") else 2
    parts = []
    while (digits := re.compile(r"\d{1,5}").match(name, at)) is not None:
        at = digits.end() + int(digits[0])
        part = name[digits.end() : at]
        if not part.startswith("_GLOBAL__N_"):
            parts.append(part)
    return Name("::".join(parts) or name, name[at:])
