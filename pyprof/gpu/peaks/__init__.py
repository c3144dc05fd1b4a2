"""How fast a device could be: peak FLOP/s by type, and memory bandwidth, each with its basis.

The datasheet if the card is known and whole, else the formula from compute capability, SMs
and clock, else nothing: a percentage of another card's peak would be worse than none.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from pyprof.gpu.peaks.card_table import CARDS, DOUBTS, Card
from pyprof.gpu.peaks.formula import generation, is_cuda, quoted_at_tensor_clock

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyprof.gpu.peaks.ceilings import Ceilings

TERA, GIGA, MEGA = 1e12, 1e9, 1e6

_WHOLE_CARD = 0.9
"""Above this share of the card's bandwidth, the driver's figure is that of the whole card."""

_VENDOR_WORDS = frozenset({"nvidia", "tesla", "geforce", "amd", "instinct", "gpu", "graphics"})
"""Words of names that do not tell cards apart."""
_WORD = re.compile(r"[a-z0-9.]+")
_MIG = re.compile(r"\smig\b.*", re.IGNORECASE | re.DOTALL)
"""What follows a card's name in that of a slice: `MIG 1g.5gb`."""

_VECTOR = {
    "float64": "float64",
    "complex128": "float64",
    # 16-bit elementwise kernels, reductions and most products compute in float32
    **dict.fromkeys(("float32", "tf32", "complex64", "float16", "bfloat16"), "float32"),
    **dict.fromkeys(("float8_e4m3fn", "float8_e5m2"), "float32"),
    # an upper bound: there are as many integer units, or fewer
    **dict.fromkeys(("int8", "uint8", "int16", "int32", "int64", "bool"), "float32"),
}
"""By type: the type whose rate outside of Tensor Cores applies."""
_TENSOR = {
    "float64": "float64", "float32": "tf32", "complex64": "tf32", "tf32": "tf32",
    "float16": "half", "bfloat16": "half", "float8_e4m3fn": "float8",
    "float8_e5m2": "float8", "float4_e2m1fn": "float4", "int8": "int8", "uint8": "int8",
}  # fmt: skip
"""By type: the key of its rate on Tensor Cores in `card_table`, without "tensor"."""
_SHORT = {
    "float64": "fp64", "float32": "fp32", "float16": "fp16", "bfloat16": "bf16",
    "float8_e4m3fn": "fp8", "float8_e5m2": "fp8", "float4_e2m1fn": "fp4",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Device:
    """A device as recorded in a capture; None or 0 if a figure is not recorded."""

    name: str | None
    sm_count: int | None = None
    clock_hz: float | None = None
    """Highest SM clock."""
    bandwidth_bytes_per_s: float | None = None
    cc: tuple[int, int] | None = None
    """Compute capability as reported; AMD's, which means something else, is ignored."""

    @property
    def cuda_cc(self) -> tuple[int, int] | None:
        """Return the compute capability if it is CUDA's; None for AMD, and if unknown."""
        return self.cc if is_cuda(self.name) else None


class Rate(NamedTuple):
    """A peak: FLOP/s or bytes/s, and where it comes from."""

    value: float
    label: str


@dataclass(frozen=True, slots=True)
class Peaks:
    """The peaks of one device."""

    name: str
    rates: Mapping[str, Rate]
    """FLOP/s by the keys of `card_table`; each labelled with its basis alone."""
    bandwidth: Rate | None
    doubts: tuple[str, ...] = ()
    """Sentences about figures that sources disagree on."""
    given: Rate | None = None
    """A peak that the user set, for every type."""

    def flops(
        self,
        dtype: str | None,
        tensor_core: bool,  # noqa: FBT001 - a type has two peaks; this says which
        accumulate: str | None = None,
    ) -> Rate | None:
        """Return the peak in FLOP/s for inputs of `dtype` (torch's name, or `tf32`).

        float32 on Tensor Cores is TF32. None if the type or its rate is unknown.
        """
        if self.given is not None:
            return self.given
        if dtype is None:
            return None
        kind = self._tensor if tensor_core else self._vector
        rate, unit = kind(dtype, accumulate)
        return rate and Rate(rate.value, f"{self.name} {unit}, {rate.label}")

    def _vector(self, dtype: str, accumulate: str | None) -> tuple[Rate | None, str]:
        if dtype == accumulate == "float16":
            key = dtype  # hgemm: pairs of float16 in float32's units, at a rate of their own
        else:
            key = dtype if dtype in self.rates and dtype != "float16" else _VECTOR.get(dtype, "")
        units = "CUDA cores" if is_cuda(self.name) else "vector units"
        units = "matmul" if self.name == "cpu" else units
        return self.rates.get(key), f"{_SHORT.get(key, key)} {units}"

    def _tensor(self, dtype: str, accumulate: str | None) -> tuple[Rate | None, str]:
        kind = _TENSOR.get(dtype, dtype)
        shown = _SHORT.get(dtype, dtype) if kind != "tf32" else "tf32"
        keys = [f"{dtype} tensor", f"{kind} tensor"]
        unit = f"{shown} dense tensor"
        if accumulate == "float16":
            doubled = [f"{key}, float16 sum" for key in keys]
            if any(key in self.rates for key in doubled):
                keys, unit = doubled, f"{unit} with fp16 sum"
        if dtype == "float32" and "float32 tensor" in self.rates:
            unit = "fp32 dense matrix"  # AMD's units take float32 itself, too
        return next((self.rates[key] for key in keys if key in self.rates), None), unit


def _words_of_name(name: str) -> frozenset[str]:
    return frozenset(_WORD.findall(name.lower())) - _VENDOR_WORDS


_BY_WORDS = {
    _words_of_name(spelling): card for card in CARDS for spelling in (card.name, *card.spellings)
}


@lru_cache(maxsize=1024)
def find_card(name: str) -> Card | None:
    """Find the card of a device name; None unless every word of the name is accounted for.

    `RTX 4090 D`, `RTX 4090 Laptop GPU` and `H100 NVL` are cards of their own, not variants.
    """
    return _BY_WORDS.get(_words_of_name(_MIG.sub("", name)))


def cards_like(part: str) -> list[Card]:
    """Return the card of a device name, else those whose names contain every word of `part`."""
    card = find_card(part)
    if card is not None:
        return [card]
    words = part.lower().split()
    return [card for card in CARDS if words and all(word in card.name.lower() for word in words)]


def card_names() -> list[str]:
    """Return the first words of all card names, and the full names, for suggestions."""
    names = [card.name for card in CARDS]
    return [*(name.partition(" ")[0] for name in names), *names]


def completed(device: Device) -> Device:
    """Return `device` with its card's compute capability and, unless it is a slice, number of SMs.

    Values from the capture take precedence; dict lines, for example, only have the name.
    """
    card = find_card(device.name) if device.name else None
    if card is None:
        return device
    all_sms_present = device.sm_count or _is_slice(device)
    return replace(
        device,
        cc=device.cc or card.cc,
        sm_count=device.sm_count if all_sms_present else card.sm_count,
    )


def _is_slice(device: Device) -> bool:
    """Whether the name of a device is that of a slice of a card (MIG)."""
    return device.name is not None and _MIG.search(device.name) is not None


def peaks(
    device: Device,
    *,
    clock_mhz: float | None = None,
    peak_flops: float | None = None,
    peak_bandwidth: float | None = None,
    measured: Ceilings | None = None,
) -> Peaks | None:
    """Return the peaks of `device`; None if nothing at all is known.

    `clock_mhz` asks for the formula at that clock. `measured` ceilings override the table,
    `peak_flops` (FLOP/s) and `peak_bandwidth` (bytes/s) override everything.
    """
    card = find_card(device.name) if device.name else None
    rates, doubts = _rates(device, card, clock_mhz)
    bandwidth = _bandwidth(device, card)
    if measured is not None:
        rates |= {key: Rate(rate, "measured") for key, rate in measured.flops.items()}
        bandwidth = Rate(measured.bandwidth, f"{measured.device} memory, measured")
    if peak_bandwidth is not None:
        bandwidth = Rate(peak_bandwidth, "given")
    asked_rate = Rate(peak_flops, "given") if peak_flops is not None else None
    if not rates and bandwidth is None and asked_rate is None:
        return None
    name = (card.name if card else device.name) or "device"
    return Peaks(name, rates, bandwidth, tuple(DOUBTS[key] for key in doubts), asked_rate)


def _rates(
    device: Device, card: Card | None, clock_mhz: float | None
) -> tuple[dict[str, Rate], tuple[str, ...]]:
    """Take the datasheet's rates for a whole card, else those by SMs and clock; none if unknown."""
    full_card = card is not None and device.sm_count in (None, 0, card.sm_count)
    sliced = _is_slice(device)
    hidden_slice = sliced and not device.sm_count
    if card is not None and full_card and not hidden_slice and clock_mhz is None:
        rates = {key: Rate(rate * TERA, "datasheet") for key, rate in card.rates_tflops.items()}
        return rates, card.doubts
    cc = device.cuda_cc or (card.cc if card else None)
    sms = device.sm_count or (card.sm_count if card and not sliced else None)
    clock_hz = clock_mhz * MEGA if clock_mhz else device.clock_hz
    if not clock_hz and card and card.clock_mhz:
        clock_hz = card.clock_mhz * MEGA
    if not cc or not sms or not clock_hz or (per_clock := generation(cc, device.name)) is None:
        return {}, ()
    tensor_hz = clock_hz
    if card and card.tensor_clock_mhz and clock_mhz is None:
        tensor_hz = min(clock_hz, card.tensor_clock_mhz * MEGA)
    rates = {}
    for key, per_sm in per_clock.rates.items():
        hertz = tensor_hz if quoted_at_tensor_clock(key) else clock_hz
        basis = f"{sms} SMs at {hertz / MEGA:.0f} MHz, formula"
        rates[key] = Rate(per_sm * sms * hertz, basis)
    return rates, per_clock.doubts


def _bandwidth(device: Device, card: Card | None) -> Rate | None:
    """Take the driver's figure, else the datasheet's; None for a slice whose share is unknown."""
    sliced = _is_slice(device)
    if card is not None:
        sliced = sliced or 0 < (device.sm_count or 0) < card.sm_count
    driver_bandwidth = device.bandwidth_bytes_per_s
    if driver_bandwidth:
        full_card = card is None or driver_bandwidth > _WHOLE_CARD * card.bandwidth_gb_s * GIGA
        if sliced and full_card:
            return None
        return Rate(driver_bandwidth, f"{device.name or 'device'} memory, driver")
    if card is None or sliced:
        return None
    return Rate(card.bandwidth_gb_s * GIGA, f"{card.name} memory, datasheet")


def by_type(rates: Mapping[str, float]) -> dict[str, float]:
    """Name each type: `half tensor` is the rate of float16 and of bfloat16."""
    named = {}
    for key, rate in rates.items():
        of_both = key.startswith("half")
        for dtype in ("float16", "bfloat16") if of_both and "sum" not in key else ("float16",):
            named[key.replace("half", dtype)] = rate
    return named


RATE_KEYS = tuple(dict.fromkeys(key for card in CARDS for key in by_type(card.rates_tflops)))
"""Every kind of rate in the table, in its order."""
