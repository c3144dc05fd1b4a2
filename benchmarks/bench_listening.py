"""What `pyprof.init()` costs while a tool listens, beside torch's own ranges with shapes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from overhead import ALONE, LISTENING, TORCH, measure_all
from table import Row

if TYPE_CHECKING:
    from collections.abc import Iterator

_ROUNDS = 20


def rows() -> Iterator[Row]:
    """Measure an op at a stack 30 deep, in microseconds, and a layer, in times torch alone."""
    for name, times in measure_all(_ROUNDS, (ALONE, LISTENING, TORCH)).items():
        alone, ours, theirs = (times[way] * 1e6 for way in (ALONE, LISTENING, TORCH))
        aim = "≤ 6.5 us" if name.startswith("F.") else "≤ 1.25"
        limit = f"alone {alone:.1f}, torch's {theirs:.1f} us"
        yield Row(f"listening: {name}", limit, f"{ours:.1f} us", ours / alone, None, aim)
