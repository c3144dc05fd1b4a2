"""Peak rates of devices: those of the table of cards, and those measured on this machine."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pyprof.cli_types import suggestion
from pyprof.errors import PyprofError
from pyprof.gpu.peaks import GIGA, RATE_KEYS, TERA, card_names, find_card, list_peaks

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pyprof.gpu.ceilings import Ceilings

DATASHEET, MEASURED = "datasheet", "measured"


@dataclass(frozen=True, slots=True, kw_only=True)
class PeaksRow:
    """The peaks of one device."""

    gpu: str
    basis: str
    """DATASHEET or MEASURED."""
    rates: Mapping[str, float]
    """TFLOP/s by the keys of the table of cards."""
    gb_s: float
    cc: str = ""
    sms: int | None = None
    sources: tuple[str, ...] = field(default=())
    doubts: tuple[str, ...] = field(default=())


def card_rows() -> list[PeaksRow]:
    """Return the table of cards."""
    return [
        PeaksRow(
            gpu=str(card["gpu"]),
            basis=DATASHEET,
            rates={key: float(str(card[key])) for key in RATE_KEYS if card[key] is not None},
            gb_s=float(str(card["gb_s"])),
            cc=str(card["cc"]),
            sms=int(str(card["sms"])),
            sources=_texts(card["sources"]),
            doubts=_texts(card["doubts"]),
        )
        for card in list_peaks()
    ]


def measured_rows(ceilings: Iterable[Ceilings]) -> list[PeaksRow]:
    """Return what was measured, in the units of the table."""
    return [
        PeaksRow(
            gpu=ceiling.device,
            basis=MEASURED,
            rates={key: rate / TERA for key, rate in ceiling.flops.items()},
            gb_s=ceiling.bandwidth / GIGA,
        )
        for ceiling in ceilings
    ]


def find(name: str | None, measured: Sequence[PeaksRow]) -> list[PeaksRow]:
    """Return the rows of a device's name, or of a part of one; all rows for None.

    Raises PyprofError where there is none.
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
            "use --peak-flops and --peak-bandwidth of pyprof prof"
        )
    return matching


def _texts(value: object) -> tuple[str, ...]:
    return tuple(map(str, value)) if isinstance(value, list) else ()
