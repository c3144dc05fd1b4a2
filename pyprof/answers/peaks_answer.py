"""`pyprof peaks --json`: peak rates by card."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyprof.answers import answer
from pyprof.answers.base import Answer

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pyprof.answers.peaks_rows import PeaksRow


@dataclass(frozen=True, slots=True, kw_only=True)
class CardPeaks:
    """The peaks of one device."""

    gpu: str
    """Its name."""
    basis: str
    """datasheet, or measured on this machine."""
    compute_capability: str | None
    """As 9.0; null of other makers' cards, and of what was measured."""
    sm_count: int | None
    """SMs, or compute units; null of what was measured."""
    tflops: Mapping[str, float]
    """Dense TFLOP/s, of integers TOP/s, by type; `tensor`: on Tensor Cores or matrix cores."""
    memory_gbs: float
    """Memory bandwidth, GB/s."""
    sources: tuple[str, ...]
    """Where the figures are from."""
    doubts: tuple[str, ...]
    """Where sources disagree."""


@answer("peaks")
@dataclass(frozen=True, slots=True)
class Peaks(Answer):
    """Peak rates that efficiency is relative to."""

    devices: tuple[CardPeaks, ...]
    """All that are known, or those of the name that was given."""


def peaks(rows: Iterable[PeaksRow]) -> Peaks:
    """Make the answer."""
    return Peaks(
        tuple(
            CardPeaks(
                gpu=row.gpu,
                basis=row.basis,
                compute_capability=row.cc or None,
                sm_count=row.sms,
                tflops=row.rates,
                memory_gbs=row.gb_s,
                sources=row.sources,
                doubts=row.doubts,
            )
            for row in rows
        )
    )
