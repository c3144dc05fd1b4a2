"""MFU, HFU and MBU: the model's work as a share of what the GPUs could do in the time."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

import numpy as np

from pyprof.analysis.time.timeline import COMPUTE, activity_classes
from pyprof.arrays import MISSING, Floats
from pyprof.gpu.roofline import NS_PER_S
from pyprof.prof import step_rows
from pyprof.prof.coverage import is_kernel
from pyprof.quantities import percent
from pyprof.records.merging import merged_by
from pyprof.records.records import number_combinations, totals

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pyprof.analysis.time.steps import Steps
    from pyprof.analysis.time.timeline import Timeline
    from pyprof.arrays import Int64Array, Mask
    from pyprof.gpu.peaks import Rate
    from pyprof.prof.table import Table

MIN_KNOWN = 0.8
"""Minimum share of GPU time with known FLOPs (for MBU, bytes) for a figure about all of it."""


class StepShares(NamedTuple):
    """How near each step came to the peaks; None if a peak, or much of its work, is unknown."""

    mfu: tuple[float | None, ...]
    hfu: tuple[float | None, ...]
    mbu: tuple[float | None, ...]
    """Memory bandwidth utilization of decode steps; None for any other."""


Amount = TypeVar("Amount", int, Floats)


@dataclass(frozen=True, slots=True, kw_only=True)
class Work(Generic[Amount]):
    """What was computed and moved: sums over rows, or arrays with a sum for each step."""

    model_flops: Amount
    """Without forward work that the backward pass recomputed."""
    hardware_flops: Amount
    busy_ns: Amount
    compute_ns: Amount
    """GPU time of kernels that compute: no copies, fills and collectives."""
    flops_known_ns: Amount
    """The part of `compute_ns` whose FLOPs are known."""
    bytes: Amount
    bytes_known_ns: Amount
    """The part of `busy_ns` whose bytes are known."""


NO_WORK: Work[int] = Work(**dict.fromkeys((each.name for each in fields(Work)), 0))


@dataclass(frozen=True, slots=True, kw_only=True)
class StepWork(Work[Floats]):
    """The work of each step on all GPUs together; bytes are those of decode steps."""

    gpus: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Utilization:
    """Some work, and the time in which GPUs did it; sums, which add up."""

    work: Work[int] = NO_WORK
    wall_ns: int = 0
    """Elapsed time, added up over GPUs."""
    flops_by_peak: Mapping[Rate | None, float] = field(default_factory=dict)
    """FLOPs by the peak of one GPU for their type and the units that executed them, if known."""
    decode: Work[int] = NO_WORK
    """The part of the work that is in decode steps."""
    decode_wall_ns: int = 0
    bytes_by_bandwidth: Mapping[Rate | None, float] = field(default_factory=dict)
    """Bytes of decode steps by the memory bandwidth of one GPU, if known."""
    steps: StepWork | None = field(default=None, compare=False)
    """None for guessed steps, and without steps."""
    left_out: str = merged_by(lambda a, b: a or b, default="")
    """Why nothing was measured; "" if something was."""

    @property
    def flops_peak(self) -> Rate | None:
        """The peak that most FLOPs are measured against; None if unknown."""
        return _most_used(self.flops_by_peak)

    @property
    def bandwidth(self) -> Rate | None:
        """The bandwidth that most bytes of decode steps are measured against; None if unknown."""
        return _most_used(self.bytes_by_bandwidth)

    @property
    def known(self) -> float:
        """Share of compute time whose FLOPs are known; 1 if nothing computes."""
        work = self.work
        return work.flops_known_ns / work.compute_ns if work.compute_ns else 1.0

    @property
    def mfu(self) -> float | None:
        """Model FLOPs over what the peak allows; None if unknown, for the reason in `why`."""
        return self._share(self.work.model_flops)

    @property
    def hfu(self) -> float | None:
        """All executed FLOPs over what the peak allows; None if unknown, as `mfu`."""
        return self._share(self.work.hardware_flops)

    @property
    def why(self) -> str:
        """Say why MFU and HFU are unknown; "" if they are known."""
        if self.left_out:
            return self.left_out
        if self.known < MIN_KNOWN:
            if not self.known:
                return "no FLOPs are known"
            return f"FLOPs of only {percent(self.known)} of compute time are known"
        if not self.work.hardware_flops:
            part = "" if self.known == 1 else f" in the {percent(self.known)} that is known"
            return f"no FLOPs were executed{part}"
        if self.flops_peak is None:
            return "the device's peak for this work is unknown"
        return "" if self.wall_ns else "no times were recorded"

    @property
    def mbu(self) -> float | None:
        """Bytes of decode steps over what the memory could move in them; None if not known."""
        known = self.decode.bytes_known_ns >= MIN_KNOWN * self.decode.busy_ns > 0
        if not known or self.bandwidth is None or not self.decode_wall_ns:
            return None
        return self.decode.bytes * NS_PER_S / self.decode_wall_ns / self.bandwidth.value

    def of_steps(self, duration_ns: Sequence[int]) -> StepShares:
        """Compare each step with the same peaks; a share may be known even if the mean is not."""
        unknown: tuple[None, ...] = (None,) * len(duration_ns)
        work = self.steps
        if work is None:
            return StepShares(unknown, unknown, unknown)

        def shares(
            amounts: Floats, known_ns: Floats, all_ns: Floats, peak: Rate | None
        ) -> tuple[float | None, ...]:
            if peak is None:
                return unknown
            columns = (each.tolist() for each in (amounts, known_ns, all_ns))
            steps = [
                amount * NS_PER_S / took_ns / work.gpus / peak.value
                if took_ns > 0 and known >= MIN_KNOWN * busy > 0
                else None
                for took_ns, amount, known, busy in zip(duration_ns, *columns, strict=False)
            ]
            return (*steps, *unknown[len(steps) :])

        return StepShares(
            shares(work.model_flops, work.flops_known_ns, work.compute_ns, self.flops_peak),
            shares(work.hardware_flops, work.flops_known_ns, work.compute_ns, self.flops_peak),
            shares(work.bytes, work.bytes_known_ns, work.busy_ns, self.bandwidth),
        )

    def _share(self, flops: int) -> float | None:
        if self.why or self.flops_peak is None:
            return None
        return flops * NS_PER_S / self.wall_ns / self.flops_peak.value


def _most_used(amount_by_rate: Mapping[Rate | None, float]) -> Rate | None:
    return max(
        amount_by_rate, key=lambda rate: (amount_by_rate[rate], rate or (0.0, "")), default=None
    )


def part_mfu(work: Work[int], peak: Rate | None) -> float | None:
    """Share of a peak while GPUs computed; None if it, or the FLOPs of much, are unknown."""
    known = work.flops_known_ns >= MIN_KNOWN * work.compute_ns
    if peak is None or not known or not work.compute_ns:
        return None
    return work.model_flops * NS_PER_S / work.busy_ns / peak.value


def _amounts(table: Table) -> Iterator[tuple[str, Int64Array]]:
    """Yield what is summed up over rows, one column at a time to save memory."""
    costs, ns = table.costs, table.duration_ns
    flops_known, bytes_known = costs.flops != MISSING, costs.bytes != MISSING
    recomputed = table.records.numpy("recomputed") == 1
    # all but copies, fills and collectives may execute FLOPs
    computing = is_kernel(table.records) & (activity_classes(table.records) == COMPUTE)
    yield "model_flops", np.where(flops_known & ~recomputed, costs.flops, 0)
    yield "hardware_flops", np.where(flops_known, costs.flops, 0)
    yield "busy_ns", ns
    yield "compute_ns", np.where(computing, ns, 0)
    yield "flops_known_ns", np.where(computing & flops_known, ns, 0)
    yield "bytes", np.where(bytes_known, costs.bytes, 0)
    yield "bytes_known_ns", np.where(bytes_known, ns, 0)


def by_part(table: Table, rows: Mask | None, parts: Sequence[str]) -> dict[str, Work[int]]:
    """Sum up the work of all rows, or those chosen, by the part of the step they belong to."""
    phase = step_rows.phases(table)
    number = {name: index for index, name in enumerate((*parts, ""))}
    other = len(number)
    chosen = np.ones(len(phase), bool) if rows is None else rows
    part = phase.numpy(lambda name: number.get(name or "", other), number[""])[chosen]
    count = np.bincount(part, minlength=other)
    sums = {name: totals(part, amount[chosen], other + 1) for name, amount in _amounts(table)}
    return {
        name: Work(**{amount: int(column[index]) for amount, column in sums.items()})
        for name, index in number.items()
        if count[index]
    }


def utilization(
    table: Table, loop_steps: Steps, chosen: tuple[int, int] | None, timed: Timeline | None
) -> Utilization:
    """Measure the chosen steps, else those after warm-up; everything if none are sure."""
    averaged = chosen or (None if loop_steps.guessed else loop_steps.steady)
    if averaged is None:
        rows = np.ones(table.records.rows, bool)
        wall_ns = sum(device.span_ns for device in timed.devices) if timed else 0
        return _measured(table, rows, wall_ns, ~rows, 0)
    rows = np.asarray(loop_steps.rows(averaged))
    keys = (table.records.numpy(name)[rows] for name in ("device", "pid"))
    gpus = int(number_combinations(*keys).max(initial=-1)) + 1  # once for each process that used it
    low, high = averaged
    took = loop_steps.duration_ns[low:high]
    stated = [step.phase for step in loop_steps.stated] or [""] * len(loop_steps)
    decoding = np.array([phase == "decode" for phase in stated], bool)
    decode = decoding[low:high]
    in_decode = np.isin(loop_steps.of_row, low + np.flatnonzero(decode))
    wall_ns, decode_ns = (int(part.sum()) * gpus for part in (took, took[decode]))
    usage = _measured(table, rows, wall_ns, rows & in_decode, decode_ns)
    if loop_steps.guessed or not gpus:
        return usage
    return replace(usage, steps=_work_of_steps(table, loop_steps, decoding, gpus))


def _work_of_steps(table: Table, loop_steps: Steps, decoding: Mask, gpus: int) -> StepWork:
    inside = loop_steps.of_row >= 0
    step = loop_steps.of_row[inside]
    sums = {
        name: np.bincount(step, amount[inside], len(loop_steps)).astype(np.float64)
        for name, amount in _amounts(table)
    }
    for name in ("bytes", "bytes_known_ns"):
        sums[name] *= decoding
    return StepWork(**sums, gpus=gpus)


def _measured(table: Table, rows: Mask, wall_ns: int, decode: Mask, decode_ns: int) -> Utilization:
    costs = table.costs
    of_rows, of_decode = (
        Work(**{name: int(amount[part].sum()) for name, amount in _amounts(table)})
        for part in (rows, decode)
    )
    return Utilization(
        work=of_rows,
        wall_ns=wall_ns,
        flops_by_peak=_by_peak(table, rows & (costs.flops != MISSING), "certain_peak", costs.flops),
        decode=of_decode,
        decode_wall_ns=decode_ns,
        bytes_by_bandwidth=_by_peak(
            table, decode & (costs.bytes != MISSING), "bandwidth_peak", costs.bytes
        ),
    )


def _by_peak(
    table: Table, rows: Mask, name: str, amount: Int64Array
) -> Mapping[Rate | None, float]:
    """Sum an amount by the peak that it is measured against."""
    number, classified = table.classified.index[rows], table.classified.values
    weight = np.bincount(number, amount[rows].astype(float), minlength=len(classified))
    total: dict[Rate | None, float] = {}
    for entry, part in zip(classified, weight.tolist(), strict=True):
        rate = getattr(entry, name)
        if part:
            total[rate] = total.get(rate, 0.0) + part
    return total
