"""Counts, amounts, changes and names for people; what `text` spells is not repeated here."""

from __future__ import annotations

from pyprof.report.text import UNKNOWN, number

_SIZES = ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


def count(value: float | None) -> str:
    """Spell a count with its thousands apart; one that is no whole number to three digits."""
    if value is None:
        return UNKNOWN
    return f"{value:,.0f}" if float(value).is_integer() else number(value)


def amount(value: float | None, unit: str) -> str:
    """Spell FLOPs or bytes with a decimal prefix: `1.5 GB`."""
    if value is None:
        return UNKNOWN
    size, prefix = next((entry for entry in _SIZES if abs(value) >= entry[0]), (1, ""))
    return f"{number(value / size)} {prefix}{unit}"


def change(fraction: float | None) -> str:
    """Spell a relative change with its sign: `+3.2 %`."""
    return UNKNOWN if fraction is None else f"{100 * fraction:+.1f} %"


_PARTS = {"fprop": "forward", "bprop": "backward", "optim": "optimizer",
          "comm": "communication", "copy": "copy"}  # fmt: skip


def part_name(direction: str | None) -> str:
    """Name a part of the step, which records have as `fprop` and so on."""
    return _PARTS.get(direction or "", direction or "not told")
