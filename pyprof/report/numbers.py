"""Numbers for people: times, counts, rates and shares. Unknown is `-`."""

from __future__ import annotations

UNKNOWN = "-"

_TIMES = ((1e9, "s"), (1e6, "ms"), (1e3, "us"))
_SIZES = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
_PLAIN_BELOW = 10_000


def time(duration_ns: float | None) -> str:
    """Spell ns in the largest unit that keeps it above 1: `27.84 us`."""
    if duration_ns is None:
        return UNKNOWN
    size, unit = next((entry for entry in _TIMES if abs(duration_ns) >= entry[0]), (1, "ns"))
    return f"{_short(duration_ns / size)} {unit}"


def count(number: float | None) -> str:
    """Spell a count with its thousands apart."""
    return UNKNOWN if number is None else f"{number:,.0f}"


def amount(number: float | None, unit: str = "") -> str:
    """Spell FLOPs or bytes with a decimal prefix: `1.5 GB`."""
    if number is None:
        return UNKNOWN
    size, prefix = next((entry for entry in _SIZES if abs(number) >= entry[0]), (1, ""))
    return f"{_short(number / size)} {prefix}{unit}".rstrip()


def significant(number: float | None, unit: float = 1) -> str:
    """Spell a number in `unit`s (1e12 for TFLOP/s) to four significant digits."""
    return UNKNOWN if number is None else _short(number / unit)


def share(percent: float | None) -> str:
    """Spell a percentage."""
    return UNKNOWN if percent is None else f"{percent:.1f} %"


def change(fraction: float | None) -> str:
    """Spell a relative change with its sign: `+3.2 %`."""
    return UNKNOWN if fraction is None else f"{100 * fraction:+.1f} %"


def _short(value: float) -> str:
    """Keep four significant digits."""
    if value == 0:
        return "0"
    text = f"{value:.4g}"
    return f"{value:,.0f}" if "e" in text and abs(value) >= _PLAIN_BELOW else text
