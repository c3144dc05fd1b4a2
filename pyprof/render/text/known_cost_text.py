"""How much of the time has a known cost, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyprof.quantities import counted

if TYPE_CHECKING:
    from pyprof.answers.parts import KnownCost

_NAMED = 5
_MUCH, _SHOWN = 1, 0.1
"""Percentage points by which copies must raise the known share to be mentioned, unless they double
it; and the fewest that show."""


def without_copies(known: KnownCost) -> str:
    """Name the kernels' known share, to end a sentence; "" unless copies raise the whole share."""
    percent = 100 * known.known_share
    if known.kernel_known_share is None:
        return ""
    kernels = 100 * known.kernel_known_share
    if percent - kernels < max(min(_MUCH, percent / 2), _SHOWN):
        return ""
    return f", of kernels alone {kernels:.1f} %"


def sentence(known: KnownCost) -> str:
    """State the known share, that of kernels alone if copies raise it, and the largest unknowns."""
    share = f"cost known for {100 * known.known_share:.1f} % of {known.processor} time"
    start = f"{share}{without_copies(known)}"
    if not known.unknown:
        return start
    rows = sum(each.rows for each in known.unknown)
    total_ns = max(known.total_ns, 1)
    named = (
        f"{each.reason} ({100 * each.time_ns / total_ns:.1f} % in {each.rows:,})"
        for each in known.unknown[:_NAMED]
    )
    return f"{start}; unknown for {counted(rows, 'row')}: {', '.join(named)}"
