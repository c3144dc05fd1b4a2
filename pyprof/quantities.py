"""Numbers as people read them: times, rates and amounts with three significant digits; ranks."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

DASH = "-"
"""What stands for an unknown number."""
_UNITS = ((1e9, "s"), (1e6, "ms"), (1e3, "us"))
_WHOLE = 100
"""From here on there are at least three digits before the point."""


def significant(value: float) -> str:
    """Format with three significant digits, and all before the point: `7.56`, `84.0`, `2,796`.

    Below 1 with three decimals, so that a column of such numbers compares: `0.012`.
    """
    size = abs(float(f"{value:.3g}"))  # 9.999 is 10.0
    if size >= _WHOLE:
        return f"{value:,.0f}"
    decimals = 1 if size >= 10 else 2 if size >= 1 else 3  # noqa: PLR2004 - digits before the point
    return f"{value:.{decimals}f}"


def duration(ns: float | None) -> str:
    """Format a time in the largest unit in which it is 1 or more."""
    if ns is None:
        return DASH
    rounded = abs(float(f"{ns:.3g}"))
    size, unit = next((entry for entry in _UNITS if rounded >= entry[0]), (1, "ns"))
    return f"{significant(ns / size)} {unit}" if size > 1 else f"{number(ns)} ns"


def percent(share: float) -> str:
    """Format a share of 1 in whole percent; one decimal below 10, and above 99.5 unless all."""
    value = 100 * share
    if 0 < value < 0.05:  # noqa: PLR2004 - would be 0 when rounded
        return "<0.1 %"
    rounded = round(value, 1)
    if rounded in (0, 100) or 10 <= value < 99.5:  # noqa: PLR2004 - as the docstring says
        return f"{value:.0f} %"
    return f"{value:.1f} %"


def number(value: float | None) -> str:
    """Format a rate: three significant digits, and all digits before the point."""
    if value is None:
        return DASH
    return f"{value:,.0f}" if abs(value) >= _WHOLE else f"{value:.3g}"


_SIZES = ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


def amount(value: float | None, unit: str) -> str:
    """Format FLOPs or bytes with a decimal prefix: `1.5 GB`."""
    if value is None:
        return DASH
    size, prefix = next((entry for entry in _SIZES if abs(value) >= entry[0]), (1, ""))
    return f"{number(value / size)} {prefix}{unit}"


def counted(count: int, noun: str) -> str:
    """Format a count with its noun: `1 row`, `4,350 rows`, `2 activities`, `2 boxes`."""
    ending = "es" if noun.endswith(("s", "x")) else "s"
    plural = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}{ending}"
    return f"{count:,} {noun if count == 1 else plural}"


def change(fraction: float | None) -> str:
    """Format a relative change with its sign: `+3.2 %`."""
    return DASH if fraction is None else f"{100 * fraction:+.1f} %"


_SHOWN = 8
"""Maximum number of ranks that are listed one by one."""


def spans(rising: Iterable[int]) -> str:
    """Format rising ranks: `ranks 0 to 7`, `ranks 0 8 16`, `ranks 0 and 1`."""
    ranks = [*rising]
    if len(ranks) == 1:
        return f"rank {ranks[0]}"
    if len(ranks) == 2:  # noqa: PLR2004 - a pair
        return f"ranks {ranks[0]} and {ranks[1]}"
    if ranks == [*range(ranks[0], ranks[-1] + 1)]:
        return f"ranks {ranks[0]} to {ranks[-1]}"
    shown = [str(rank) for rank in ranks[:_SHOWN]]
    return f"ranks {' '.join(shown)}{' ...' if len(ranks) > _SHOWN else ''}"
