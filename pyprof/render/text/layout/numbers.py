"""Numbers as people read them: four significant digits, SI prefixes. Whole columns at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from pyprof.arrays import Floats, Int64Array

    Numbers: TypeAlias = "pa.Array | pa.ChunkedArray"

DIGITS = 4
_MAX_PLACES = 9
_LONG_POWER, _TINIEST = 0.99995e-99, 1e-290
_NS_PREFIXES = ("ns", "us", "ms", "s")
_PREFIXES = ("", "k", "M", "G", "T", "P", "E")


def rounded(values: Numbers) -> pa.Array:
    """Format floats with four significant digits, at most nine after the point; null stays null."""
    numbers = _floats(values)
    places = _places(numbers)
    texts = [
        None if np.isnan(number) else f"{number:.{place}f}" if place >= 0 else f"{number:.3e}"
        for number, place in zip(numbers.tolist(), places.tolist(), strict=True)
    ]
    return pa.array(texts, pa.string())


def rounded_width(values: Numbers) -> int:
    """Return the length of the longest text of `rounded`, without formatting."""
    numbers = _floats(values)
    numbers = numbers[~np.isnan(numbers)]
    places = _places(numbers)
    shown = np.where(places > 0, numbers, np.rint(numbers))  # digits before a point all stay
    before = np.maximum(np.where(places > 0, _exponent(numbers), _power(np.abs(shown))), 0) + 1
    lengths = np.where(places > 0, before + 1 + places, before)
    tiny = np.where(np.abs(numbers) < _LONG_POWER, len("1.234e-100"), len("1.234e-10"))
    lengths = np.where(places < 0, tiny, lengths) + np.signbit(numbers)
    return int(lengths.max(initial=0))


def _places(numbers: Floats) -> Int64Array:
    """Return the number of digits after the point; below 0 if those would all be 0."""
    places = DIGITS - 1 - _exponent(numbers)
    lost = places > _MAX_PLACES + DIGITS - 1
    return np.where(lost, -1, np.clip(places, 0, _MAX_PLACES))


def _exponent(numbers: Floats) -> Int64Array:
    """The power of ten of numbers rounded to four digits; 0 for 0."""
    size = np.abs(np.where((numbers == 0) | np.isnan(numbers), 1, numbers))
    size = np.maximum(size, _TINIEST)  # below, the powers of ten are 0
    power = _power(size)
    carried = np.rint(size / 10.0 ** (power - DIGITS + 1)) >= 10**DIGITS
    exponent: Int64Array = (power + carried).astype(np.int64)
    return exponent


def _power(size: Floats) -> Floats:
    """The power of ten of positive numbers; 0 for 0."""
    return np.floor(np.log10(np.where(size == 0, 1, size)))


def scaled(values: Numbers, unit: str) -> pa.Array:
    """Format numbers of a unit (`ns` or a count) with four digits and a prefix: 4.663T, 400.0ms.

    An integer below 1000 stays as it is; null stays null.
    """
    prefixes = _NS_PREFIXES if unit == "ns" else _PREFIXES
    numbers = _floats(values)
    size = np.abs(np.where(np.isnan(numbers), 0, numbers))
    power = np.maximum(_exponent(size), 0)
    group = np.minimum(power // 3, len(prefixes) - 1)
    point = power - 3 * group + 1
    digits = np.maximum(DIGITS, point)  # beyond the last prefix all digits before the point stay
    texts = _insert_point(_spelt_whole(size / 10.0 ** (power + 1 - digits)), point)
    small = (size == 0) | ((power < 3) & pa.types.is_integer(values.type))  # noqa: PLR2004 - no prefix
    texts = pc.if_else(pa.array(small), _spelt_whole(np.where(small, size, 0)), texts)
    sign = pc.if_else(pa.array(numbers < 0), "-", "")
    texts = pc.binary_join_element_wise(sign, texts, pa.array(prefixes).take(pa.array(group)), "")
    return pc.if_else(pa.array(np.isnan(numbers)), pa.scalar(None, pa.string()), texts)


def _spelt_whole(numbers: Floats) -> pa.Array:
    return pa.array(np.rint(numbers).astype(np.int64)).cast(pa.string())


def _insert_point(digits: pa.Array, point: Int64Array) -> pa.Array:
    """Put a decimal point after the first `point` of the four digits of each text."""
    digits = pc.utf8_lpad(digits, DIGITS, "0")
    for index in range(1, DIGITS):
        parts = (pc.utf8_slice_codeunits(digits, *cut) for cut in ((0, index), (index,)))
        digits = pc.if_else(
            pa.array(point == index), pc.binary_join_element_wise(*parts, "."), digits
        )
    return digits


def _floats(values: Numbers) -> Floats:
    column = values.cast(pa.float64(), safe=False)
    flat = column.to_numpy() if isinstance(column, pa.ChunkedArray) else column.to_numpy(False)  # noqa: FBT003
    return np.asarray(flat, np.float64)
