"""`pyprof peaks`: peak rates of the known cards, and those measured on this machine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyprof.answers import answer
from pyprof.answers.base import Answer
from pyprof.errors import PyprofError
from pyprof.gpu.peaks import GIGA, RATE_KEYS, TERA, by_type, card_names, find_card
from pyprof.gpu.peaks.card_table import CARDS, DOUBTS, SOURCES
from pyprof.suggestions import suggestion

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pyprof.gpu.peaks.ceilings import Ceilings

DATASHEET, MEASURED = "datasheet", "measured"


@dataclass(frozen=True, slots=True, kw_only=True)
class CardPeaks:
    """The peaks of one device."""

    gpu: str
    """Name of the card or device."""
    basis: str
    """"datasheet" or "measured on this machine"."""
    compute_capability: str | None
    """Compute capability, such as 9.0; null for cards not by NVIDIA and for measured peaks."""
    sm_count: int | None
    """Number of SMs or compute units; null for measured peaks."""
    tflops: Mapping[str, float]
    """Dense TFLOP/s by type (TOP/s for integers); `tensor`: on Tensor Cores or matrix cores."""
    memory_gbs: float
    """Memory bandwidth, GB/s."""
    sources: tuple[str, ...]
    """The source of the figures."""
    doubts: tuple[str, ...]
    """Caveats, such as that sources disagree."""


@answer("peaks")
@dataclass(frozen=True, slots=True)
class Peaks(Answer):
    """The peak rates to which efficiency is relative."""

    devices: tuple[CardPeaks, ...]
    """All known cards, or those that match the given name."""


def card_rows() -> list[CardPeaks]:
    """Return the table of cards."""
    return [
        CardPeaks(
            gpu=card.name,
            basis=DATASHEET,
            compute_capability=None if card.cc is None else f"{card.cc[0]}.{card.cc[1]}",
            sm_count=card.sm_count,
            tflops={key: float(rates[key]) for key in RATE_KEYS if key in rates},
            memory_gbs=float(card.bandwidth_gb_s),
            sources=tuple(SOURCES[key] for key in card.sources.split() if key in SOURCES),
            doubts=tuple(DOUBTS[key] for key in card.doubts),
        )
        for card in CARDS
        for rates in [by_type(card.rates_tflops)]
    ]


def measured_rows(ceilings: Iterable[Ceilings]) -> list[CardPeaks]:
    """Return the measured peaks, in the units of the table."""
    return [
        CardPeaks(
            gpu=ceiling.device,
            basis=MEASURED,
            compute_capability=None,
            sm_count=None,
            tflops=by_type({key: rate / TERA for key, rate in ceiling.flops.items()}),
            memory_gbs=ceiling.bandwidth / GIGA,
            sources=(),
            doubts=(),
        )
        for ceiling in ceilings
    ]


def find(name: str | None, measured: Sequence[CardPeaks]) -> list[CardPeaks]:
    """Return the rows of a device by its name or words of it; all rows if `name` is None.

    Raises PyprofError if there is none.
    """
    rows = [*card_rows(), *measured]
    if name is None:
        return rows
    card = find_card(name)
    exact = [row for row in rows if row.gpu == name or (card and find_card(row.gpu) is card)]
    words = name.lower().split()
    matching = exact or [row for row in rows if all(word in row.gpu.lower() for word in words)]
    if not matching:
        hint = suggestion(name, [*card_names(), *(row.gpu for row in measured)]) or ":"
        raise PyprofError(
            f"no peaks known for {name!r}{hint} pyprof peaks lists all cards; for others, "
            "use pyprof prof --gpu flops=F,bandwidth=B"
        )
    return matching
