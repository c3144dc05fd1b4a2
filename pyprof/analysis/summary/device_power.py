"""What the devices drew over a capture, and what held their clocks down."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyprof.answers.summary_answer import DevicePower
from pyprof.arrays import MISSING, ints
from pyprof.parse.counters import sample_regression

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pyprof.arrays import Floats, Int64Array, Mask
    from pyprof.records.records import Records
    from pyprof.schema import Capture

_MIN_SAMPLES = 3
_NEAR_MAX, _CAPPED = 0.98, 0.5
"""With at least half of the busy samples within 2 % of the highest, power looks capped."""
_IDLE = 0.5
"""Below this share of the highest power the device counts as idle."""
_HOT_C = 85.0
"""Hotter than this, a low clock looks like throttling if no reasons were recorded."""

_REASONS: Mapping[str, int] = MappingProxyType(
    {
        "a power cap": 0x04 | 0x80,
        "heat": 0x20 | 0x40,
        "a hardware slowdown": 0x08,
        "clocks set by the user": 0x02,
    }
)
"""Bits of the driver's reasons (NVML) for a clock below the highest."""
_NOT_BUSY = 0x01
"""The bit for a low clock because the GPU has nothing to do."""
_SELDOM = 0.05
"""A reason in no more than this share of the samples is not named."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Power:
    """The power of one device over the capture, and what may have held its clock down."""

    drawn: DevicePower
    at_most: float
    """Share of the samples of a busy device within 2 % of the highest."""
    hottest_c: float | None
    fixed_clock: bool
    """Whether all samples of its clock are the same, so that it was locked."""
    held_by: Mapping[str, float] | None
    """Shares of the samples in which the driver named a cause; None if not recorded."""


def device_power(capture: Capture, records: Records, chosen: Mask | None = None) -> Iterator[Power]:
    """Sum up the power of each sampled device that ran something, or of all if none did.

    With `chosen` rows, such as those of some steps, only from their first start to their last end.
    Several ranks of a machine may each have sampled all of its devices.
    """
    samples, bounds = capture.samples, None
    if chosen is not None and not chosen.all():
        start, end = (records.numpy(name)[chosen] for name in ("start", "end"))
        timed = (start != MISSING) & (end != MISSING)
        bounds = (int(start[timed].min()), int(end[timed].max())) if timed.any() else None
        if bounds is None:
            return
    sampled = pc.unique(samples.column("device")).to_pylist()
    used, first = np.unique(records.numpy("device"), return_index=True)
    ranks = records.dictionary("rank").take(first)
    rank = {device: ranks.at(place) for place, device in enumerate(used.tolist())}
    for device in [number for number in sampled if number in rank] or sampled:
        rows = samples.filter(pc.equal(samples.column("device"), device))
        power = _power(rows, bounds, int(device), rank.get(device))
        if power is not None:
            yield power


def clock_hz(capture: Capture, device: int, bounds: tuple[int, int]) -> tuple[float, float] | None:
    """Return the mean clock of a device between two times, and otherwise; None if unknown."""
    rows = capture.samples.filter(pc.equal(capture.samples.column("device"), device))
    time, clock = _samples(rows, "clock_hz", None)
    inside = (time >= bounds[0]) & (time <= bounds[1])
    if not inside.any() or inside.all():
        return None
    return float(clock[inside].mean()), float(clock[~inside].mean())


def _samples(
    rows: pa.Table, metric: str, bounds: tuple[int, int] | None
) -> tuple[Int64Array, Floats]:
    """Times and values of a metric of one device; with bounds, those that end between them.

    The first sample only begins the interval of the second.
    """
    own = rows.filter(pc.equal(rows.column("metric").cast(pa.string()), metric))
    time, first = np.unique(ints(own.column("time")), return_index=True)
    value = own.column("value").to_numpy()[first]
    if bounds is None:
        return time, value
    low = max(int(np.searchsorted(time, bounds[0], "left")) - 1, 0)
    high = int(np.searchsorted(time, bounds[1], "right"))
    return time[low:high], value[low:high]


def _power(
    rows: pa.Table, bounds: tuple[int, int] | None, device: int, rank: int | None
) -> Power | None:
    taken = sample_regression.samples(*_samples(rows, "power_w", bounds))
    if len(taken.value) < _MIN_SAMPLES - 1:
        return None
    lengths_s = (taken.end - taken.start) / 1e9
    energy_j, most_w = float((taken.value * lengths_s).sum()), float(taken.value.max())
    busy = taken.value[taken.value >= _IDLE * most_w]
    _, heat = _samples(rows, "temperature_c", bounds)
    _, clock = _samples(rows, "clock_hz", bounds)
    reasons = _samples(rows, "clock_reasons", bounds)[1].astype(np.int64)
    reasons = reasons[(reasons & _NOT_BUSY) == 0]
    return Power(
        drawn=DevicePower(
            rank=rank,
            device=device,
            energy_j=energy_j,
            mean_w=energy_j / float(lengths_s.sum()),
            most_w=most_w,
            sampled_s=float(lengths_s.sum()),
        ),
        at_most=float((busy >= _NEAR_MAX * most_w).mean()) if len(busy) else 0.0,
        hottest_c=float(heat.max()) if len(heat) else None,
        fixed_clock=len(clock) > 0 and bool((clock == clock[0]).all()),
        held_by={name: float(((reasons & bits) != 0).mean()) for name, bits in _REASONS.items()}
        if len(reasons)
        else None,
    )


def cause(powers: Sequence[Power]) -> str:
    """Explain low clocks, by the driver's reasons or else by an inferred one; "" if unknown."""
    asked = [power.held_by for power in powers if power.held_by is not None]
    shares = {name: max(held[name] for held in asked) for name in _REASONS if asked}
    named = [f"{name} in {100 * share:.0f} %" for name, share in shares.items() if share > _SELDOM]
    if asked:
        return f"the driver names {', '.join(named)} of the samples" if named else ""
    hottest = max((p.hottest_c for p in powers if p.hottest_c is not None), default=0.0)
    if hottest >= _HOT_C:
        return f"at {hottest:.0f} °C, which looks like thermal throttling"
    capped = [p.drawn.most_w for p in powers if p.at_most >= _CAPPED and not p.fixed_clock]
    return f"power stayed at {max(capped):,.0f} W, which looks like a power cap" if capped else ""
