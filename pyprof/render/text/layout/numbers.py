"""Numbers as people read them: four significant digits, SI prefixes."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Callable

    Numbers: TypeAlias = "pa.Array | pa.ChunkedArray"

DIGITS = 4
_MAX_PLACES = 9
_NS_PREFIXES = ("ns", "us", "ms", "s")
_PREFIXES = ("", "k", "M", "G", "T", "P", "E")
_MIN_PREFIXED = 1000
"""Smaller integers stay as they are."""


def rounded(values: Numbers) -> pa.Array:
    """Format floats with four significant digits, at most nine after the point; null stays null."""
    return _map(_round, values)


def scaled(values: Numbers, unit: str) -> pa.Array:
    """Format numbers of a unit (`ns` or a count) with four digits and a prefix: 4.663T, 400.0ms.

    An integer below 1000 stays as it is; null stays null.
    """
    return _map(partial(_scale, prefixes=_NS_PREFIXES if unit == "ns" else _PREFIXES), values)


def _map(format_one: Callable[[float], str], values: Numbers) -> pa.Array:
    """Format each distinct number once: most repeat."""
    column = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
    encoded = column.dictionary_encode()
    numbers = encoded.dictionary.to_pylist()
    texts = [format_one(number) if math.isfinite(number) else None for number in numbers]
    return pa.array(texts, pa.string()).take(encoded.indices)


def _digits(size: float) -> tuple[str, int]:
    """Return the digits of a positive number, rounded, and its power of ten."""
    mantissa, _, power = f"{size:.{DIGITS - 1}e}".partition("e")
    return mantissa.replace(".", ""), int(power)


def _round(number: float) -> str:
    places = DIGITS - 1 - _digits(abs(number))[1]
    if places > _MAX_PLACES + DIGITS - 1:  # they would all be 0
        return f"{number:.{DIGITS - 1}e}"
    return f"{number:.{min(max(places, 0), _MAX_PLACES)}f}"


def _scale(number: float, prefixes: tuple[str, ...]) -> str:
    size, sign = abs(number), "-" * (number < 0)
    if not size or (isinstance(number, int) and size < _MIN_PREFIXED):
        return f"{sign}{size:.0f}{prefixes[0]}"
    digits, power = _digits(size)
    if power < 0:
        return f"{sign}{size:.{DIGITS - 1}f}{prefixes[0]}"
    group = min(power // 3, len(prefixes) - 1)
    point = power - 3 * group + 1
    if point >= DIGITS:  # beyond the last prefix all digits before the point stay
        return f"{sign}{size / 1000**group:.0f}{prefixes[group]}"
    return f"{sign}{digits[:point]}.{digits[point:]}{prefixes[group]}"
