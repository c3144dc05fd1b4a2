"""Kernel names: demangled, taken apart (path and template arguments), and made short.

A full name may be kilobytes of C++ in which a functor, a namespace or a file name looks like
another kernel; rules look at the path first. Mangled names work too, for captures whose names
nobody could demangle.
"""

from __future__ import annotations

import re
from functools import lru_cache, wraps
from typing import TYPE_CHECKING, NamedTuple, TypeVar, cast

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator

F = TypeVar("F", bound="Callable[..., object]")

MAX_CHARS = 1 << 14
"""Characters of a name that are read; the longest that compilers write have a few thousand."""
_CACHE = 1 << 18
"""Distinct names kept in each cache; a long training run has a few thousand."""

_ANONYMOUS = re.compile(r"\(anonymous namespace\)::|<unnamed>::|_GLOBAL__N_\w*::")
WRAPPERS = frozenset({"cutlass::device_kernel", "device_kernel", "ck_tile::kentry"})
"""Kernels that only call what their template arguments name."""
_GUARD = re.compile(r"(?:^|::)enable_\w+$")
"""A template that may wrap such an argument: `enable_sm90_or_later<...>`."""
_CUTE_DSL = re.compile(
    r"kernel_cutlass_(?:[a-z0-9_]{0,400}?([A-Z]\w{0,400}?)_object_at_"
    r"|(?!kernel_)(\w+?)(?:(?=_tensor|_TiledMMA|_CopyAtom)|$))"
)
"""Kernels that CuTe DSL compiles: a function's name, then its arguments, without their dots.

A method's first argument is its object, and its own name is often `kernel`:
`kernel_cutlass_kernel_flashinfernormkernelsrmsnormRMSNormKernel_object_at__tensorptrbf16...`."""
_TYPE = re.compile(r"(?!true\b|false\b)[A-Za-z_]")
"""Begins a type; template arguments may be numbers and truth values, too."""
_CLOSING = {")": "(", "]": "[", "}": "{"}


class Name(NamedTuple):
    """A kernel's name, split where its path ends."""

    path: str
    """`at::native::reduce_kernel`: no return type, no arguments, no anonymous namespace. For a
    wrapper such as `cutlass::device_kernel<...>`, the path of the wrapped kernel."""
    rest: str
    """Template arguments and parameters as they stand; empty for a plain C name."""


def by_name(function: F) -> F:
    """Cache a function of a kernel's name, and truncate very long names."""
    cached = lru_cache(maxsize=_CACHE)(function)

    @wraps(function)
    def looked_up(name: str, *args: Hashable, **options: Hashable) -> object:
        return cached(name[:MAX_CHARS], *args, **options)

    return cast("F", looked_up)


@by_name
def split(name: str) -> Name:
    """Split a name, mangled or not, truncated or not. Never fails: the path may be all of it."""
    if name.startswith("_Z"):
        parts, at = _identifiers(name, 3 if name.startswith("_ZN") else 2)
        if "::".join(parts) in WRAPPERS and (match := _NESTED.search(name, at)):
            inner, end = _identifiers(name, match.end())
            return Name("::".join([*parts[: match[0] != "N"], *inner]), name[end:])
        return Name("::".join(parts) or name, name[at:])
    if generated := _CUTE_DSL.match(name):
        return Name(generated[1] or generated[2], name[generated.end() :])
    text = _ANONYMOUS.sub("", name)
    start, end = head(text)
    path = text[start:end]
    return _find_wrapped(path, text[end:]) or Name(path or text, text[end:])


@lru_cache(maxsize=_CACHE)
def head(text: str) -> tuple[int, int]:
    """Find a kernel's path in its name: where it begins, after any return type, and where it ends.

    A return type may have template arguments, and these may contain comparisons:
    `std::enable_if<((8)>(0)), void>::type gemv<...>(...)`.
    """
    if "<" not in text and "(" not in text:
        return text.rstrip().rfind(" ") + 1, len(text.rstrip())
    start, first = 0, None
    for place, character, depth in _depths(text):
        if depth:
            continue
        if character == " ":
            start, first = place + 1, None
        elif character in "<(" and first is None:
            first = place
        if character == "(":
            break
    return start, len(text) if first is None else first


_MARK = re.compile(r"[<>()\[\]{}, ]")


def _depths(text: str) -> Iterator[tuple[int, str, int]]:
    """Yield brackets, commas and blanks with their index and the number of open brackets.

    Inside parentheses `<` and `>` may be comparisons: a closing one ends what is open in it.
    """
    opened: list[str] = []
    for mark in _MARK.finditer(text):
        index, character = mark.start(), mark[0]
        yield index, character, len(opened)
        if character in "<([{":
            opened.append(character)
        elif character == ">":
            if opened[-1:] == ["<"] and text[index - 1] != "-":
                opened.pop()
        elif (opening := _CLOSING.get(character)) in opened:
            while opened.pop() != opening:
                pass


def _find_wrapped(path: str, rest: str) -> Name | None:
    """Return what a wrapper calls: its first template argument that names an operation."""
    if path not in WRAPPERS and not _GUARD.search(path):
        return None
    for argument in _arguments(rest):
        if _TYPE.match(argument):
            start, end = head(argument)
            return _find_wrapped(argument[start:end], argument[end:]) or Name(
                argument[start:end], argument[end:]
            )
    return None


def _arguments(rest: str) -> Iterator[str]:
    """Return the template arguments at the start of what follows a path."""
    if not rest.startswith("<"):
        return
    begin = 1
    for index, character, depth in _depths(rest):
        if depth == 1 and character in ",>":
            yield rest[begin:index].strip()
            begin = index + 1
        if depth == 1 and character == ">":
            return
    yield rest[begin:].strip()


_NESTED = re.compile(r"NS_(?=\d)|N(?=\d)")
"""Where a nested name begins; `S_` stands for the first namespace of the full name."""
_DIGITS = re.compile(r"\d+")


def _identifiers(name: str, at: int) -> tuple[list[str], int]:
    parts = []
    while (digits := _DIGITS.match(name, at)) is not None and len(digits[0]) < _MAX_DIGITS:
        at = digits.end() + int(digits[0])
        part = name[digits.end() : at]
        if not part.startswith("_GLOBAL__N_"):
            parts.append(part)
    return parts, at


_MAX_DIGITS = 6
"""No identifier's length has this many digits."""


_DROPPED = ("void ", "at::", "cuda::", "native::")
"""Parts that a short name omits, as in the original PyProf."""


@lru_cache(maxsize=_CACHE)
def demangle(name: str) -> str:
    """Return the C++ name of a mangled symbol; any other name unchanged."""
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


_ENCODED = ("_Z", "kernel_cutlass_")
"""Beginnings of names that `split` decodes although they have no brackets."""


@lru_cache(maxsize=_CACHE)
def short_name(long_name: str) -> str:
    """Return a kernel's name without namespaces, template arguments and parameters. Never empty.

    As in the original PyProf: `void at::native::reduce_kernel<512, ...>(...)` is `reduce_kernel`;
    but an unnamed namespace, however the tool spells it, does not make the name empty, and a
    wrapper, `cutlass::device_kernel<...>`, has the name of the wrapped operation.
    """
    plain = long_name[:MAX_CHARS]
    if plain.startswith(_ENCODED) or any(bracket in plain for bracket in "<("):
        plain = split(plain).path
    for part in _DROPPED:
        plain = plain.replace(part, "")
    return plain.strip() or long_name.strip() or "unknown"
