"""One report: the records and, computed once when first asked for, all that follows from them."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from pyprof.arrays import MISSING, Floats, Int64Array, IntArray, Mask
from pyprof.errors import NOTE, PyprofError
from pyprof.gpu.kernel_roles import crosses_link
from pyprof.gpu.peaks import Device, Peaks, card_names, cards_like, ceilings, completed, peaks
from pyprof.gpu.roofline import LIMITS, NS_PER_S, Rates, Roofline, rates, roofline
from pyprof.gpu.tensorcore import NOT_APPLICABLE, USED, TensorCore, tensor_core
from pyprof.gpu.tensorcore import UNKNOWN as MAYBE
from pyprof.ops.libraries.attention import served_requests
from pyprof.ops.model_config import CONTRADICTS
from pyprof.prof.calls.forward_calls import with_forward
from pyprof.prof.calls.op_calls import outermost
from pyprof.prof.columns.standard import COLUMNS
from pyprof.prof.costs import Costs, share_costs, without_impossible
from pyprof.prof.kernels.counters import Measured
from pyprof.prof.kernels.launch_occupancy import Occupancy, occupancy_of
from pyprof.records.records import DictionaryColumn, Records, combinations
from pyprof.suggestions import suggestion

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa

    from pyprof.gpu.peaks import Rate
    from pyprof.gpu.peaks.ceilings import Ceilings
    from pyprof.ops.model_config import ModelConfig
    from pyprof.prof.calls.attributed_call import AttributedCall
    from pyprof.prof.step_rows import StepRows

CPU = "cpu"
"""The device of ops that were timed on the CPU; it has a peak only where one was measured."""


@dataclass(frozen=True, slots=True)
class Override:
    """What the user states: peaks in place of the device's known ones, and sizes of the model."""

    gpu: str | None = None
    """Name of the device to take the peaks of."""
    clock_mhz: float | None = None
    peak_flops: float | None = None
    """FLOP/s, of every type."""
    peak_bandwidth: float | None = None
    """bytes/s."""
    measured: bool = False
    """Take what `pyprof peaks --measure` kept of the device, not its datasheet."""
    model: ModelConfig | None = None
    """Sizes of the model that no capture holds."""


@dataclass
class Table:
    """Records with their costs, Tensor Core use and peaks, one row per activity."""

    source: Records
    override: Override = field(default_factory=Override)
    steps: StepRows | None = None
    """The steps of the rows, where they were looked for."""
    _dictionary_arrays: dict[str, pa.DictionaryArray] = field(
        default_factory=dict, init=False, repr=False
    )
    _own_or_forward: dict[str, DictionaryColumn] = field(
        default_factory=dict, init=False, repr=False
    )

    @cached_property
    def records(self) -> Records:
        """The records, with the forward calls that the original's files leave out."""
        return with_forward(self.source)

    @cached_property
    def costs(self) -> Costs:
        """The op call of each row, and its share of that call's cost.

        Costs that rest on an assumption are unknown where a row would be above its device's peak:
        that is evidence against it.
        """
        costs = self._assumed_costs
        assumed = costs.via.is_in(served_requests.FULL)
        rows = np.flatnonzero(assumed & (costs.flops != MISSING))
        return without_impossible(costs, self._above_peak(rows)) if len(rows) else costs

    @cached_property
    def _assumed_costs(self) -> Costs:
        return share_costs(self.records, self.override.model)

    def _above_peak(self, rows: Int64Array) -> Int64Array:
        """Return those of some rows whose FLOPs are more than their device can do in their time."""
        classified = self.classified.take(rows)
        peak = classified.numpy(
            # of an unknown unit, the peak is that of the slower one
            lambda entry: math.nan if entry.tc.value == MAYBE else _value(entry.flops_peak),
            math.nan,
        )
        seconds = self.duration_ns[rows] / NS_PER_S
        most = peak * seconds * _ABOVE
        return rows[(self._assumed_costs.flops[rows] > most) & (seconds > 0)]

    @cached_property
    def named_call(self) -> IntArray:
        """Number of the op call that each row is named after; several costed calls may be in it."""
        return outermost(self.records, self.costs.call)

    @cached_property
    def duration_ns(self) -> Int64Array:
        """Time on the GPU, ns; 0 if unknown, see `timed`."""
        return self.records.numpy("kDuration")

    @cached_property
    def timed(self) -> Mask:
        """Mask of the rows whose time is known."""
        return np.asarray(self.records.arrow("kDuration").is_valid())

    # --- names that backward rows take from their forward call -----------------------------------

    def own_or_forward(self, name: str) -> DictionaryColumn:
        """A list column, with empty values filled from the forward call.

        A row with its own op text keeps that; its forward call fills only what is empty.
        """
        if name not in self._own_or_forward:
            own = self.records.dictionary(name)
            forward = self.records.dictionary(f"fwd{name[0].upper()}{name[1:]}")
            keeps_own = self.records.dictionary("marker").matches() & own.matches()
            filled = ~keeps_own & forward.matches()
            index = np.where(filled, forward.index + len(own.values), own.index)
            values = [*own.values, *forward.values]
            self._own_or_forward[name] = DictionaryColumn(index, values)
        return self._own_or_forward[name]

    def dictionary_array(self, name: str) -> pa.DictionaryArray:
        """A text column, dictionary-encoded and cached: several readers ask for it.

        Not for columns of steps, which are looked for after the table is made.
        """
        if name not in self._dictionary_arrays:
            self._dictionary_arrays[name] = COLUMNS[name].dictionary_array(self)
        return self._dictionary_arrays[name]

    # --- kernels ---------------------------------------------------------------------------------

    @cached_property
    def devices(self) -> DictionaryColumn:
        """The peaks of each row's device; None for one that is not known.

        Raises PyprofError if an override names a device without known or measured peaks.
        """
        name = self.records.dictionary("gpu")
        used = {*np.unique(name.index).tolist()}
        values = [
            self._peaks(self.device_of(value)) if index in used else None
            for index, value in enumerate(name.values)
        ]
        return DictionaryColumn(name.index, [*values, self._peaks(Device(None))])

    def check_override(self) -> None:
        """Raise PyprofError if an override names what is not known, whatever is shown."""
        if self.override != Override():
            _ = self.devices

    @property
    def doubts(self) -> tuple[str, ...]:
        """Sentences about what does not agree: sources of peaks, a model and what was recorded."""
        used = np.unique(self.devices.index).tolist()
        peaks_used = [self.devices.values[index] for index in used]
        peaks = (f"{NOTE}{doubt}" for peak in peaks_used if peak for doubt in peak.doubts)
        return tuple(dict.fromkeys((*peaks, *self.contradictions)))

    @property
    def contradictions(self) -> tuple[str, ...]:
        """Note where recorded shapes cannot be those of the user's model configuration."""
        if self.override.model is None:
            return ()
        reason = self.costs.reason
        reasons = (reason.values[index] for index in np.unique(reason.index).tolist())
        return tuple(reason for reason in reasons if reason.startswith(CONTRADICTS))

    @cached_property
    def _devices_by_name(self) -> dict[str | None, Device]:
        rows = self.source.devices.to_pylist()
        return {
            row["name"]: described_device(row) for row in reversed(rows)
        }  # the first of a name counts

    def device_of(self, name: str | None) -> Device:
        """The device as the capture describes it, completed from the table of cards."""
        return completed(self._devices_by_name.get(name) or Device(name or self._asked_gpu))

    @cached_property
    def _asked_gpu(self) -> str | None:
        """The name of the card that the override names, perhaps by a part of its name."""
        asked = self.override.gpu
        cards = cards_like(asked) if asked else []
        if len(cards) > 1:
            names = ", ".join(card.name for card in cards)
            raise PyprofError(f"{asked!r} matches several cards ({names}): name one")
        return cards[0].name if cards else asked

    @cached_property
    def _ceilings(self) -> dict[str, Ceilings]:
        return ceilings.load() if self.override.measured else {}

    def _peaks(self, device: Device) -> Peaks | None:
        asked = self.override
        if self._asked_gpu and device.name != CPU:
            device = Device(self._asked_gpu)
        measured = self._ceilings.get(device.name or "")
        if asked.measured and device.name and measured is None:
            raise PyprofError(
                f"no measured peaks for {device.name!r}: run pyprof peaks --measure on it"
            )
        device_peaks = peaks(
            device,
            clock_mhz=asked.clock_mhz,
            peak_flops=asked.peak_flops,
            peak_bandwidth=asked.peak_bandwidth,
            measured=measured,
        )
        if device_peaks is None and device.name == self._asked_gpu is not None:
            hint = suggestion(str(asked.gpu), card_names()) or ":"
            raise PyprofError(f"no peaks known for {asked.gpu!r}{hint} see pyprof peaks")
        return device_peaks

    @cached_property
    def classified(self) -> DictionaryColumn:
        """The `KernelClass` of each row: what follows from kernel name, op call and device."""
        name, device = self.records.dictionary("kLongName"), self.records.dictionary("gpu")
        costs = self._assumed_costs
        first, number = combinations(costs.work.index, name.index, device.index)
        gpus = [*device.values, None]
        peak = self.devices
        classified = [
            classify_kernel(
                name.values[name.index[row]],
                costs.work.at(row),
                self.device_of(gpus[device.index[row]]),
                peak.values[peak.index[row]],
            )
            for row in first.tolist()
        ]
        return DictionaryColumn(number, classified)

    @cached_property
    def rates(self) -> Rates:
        """What each row achieved."""
        costs, time_ns = self.costs, self.duration_ns.astype(np.float64)
        return rates(_float(costs.flops), _float(costs.bytes), time_ns)

    @cached_property
    def roofline(self) -> Roofline:
        """Each row's share of the roofline, and what limits it."""
        classified = self.classified
        grid = self.records.dictionary("grid")
        blocks = grid.numpy(lambda sizes: math.prod(sizes) if sizes else 0, 0)
        gpu = self.records.dictionary("gpu")
        sms = [self.device_of(name).sm_count or 0 for name in (*gpu.values, None)]
        fewer_blocks = (blocks > 0) & (blocks < np.array(sms).take(gpu.index))
        return roofline(
            _float(self.costs.flops),
            _float(self.costs.bytes),
            self.duration_ns.astype(np.float64),
            classified.numpy(lambda entry: _value(entry.flops_peak), math.nan),
            classified.numpy(lambda entry: _value(entry.bandwidth_peak), math.nan),
            open_unit=classified.matches(lambda entry: entry.tc.value == MAYBE),
            idle=fewer_blocks,
        )

    @cached_property
    def measured(self) -> Measured:
        """What counters measured for each row."""
        return Measured(self.records.dictionary("counters"))

    @cached_property
    def occupancy(self) -> Occupancy:
        """Theoretical occupancy and waves of each kernel."""
        return occupancy_of(self.records, self.device_of)

    @property
    def bound(self) -> DictionaryColumn:
        """What limits each row, as text."""
        return DictionaryColumn(self.roofline.limit, [*LIMITS])


_ABOVE = 1.05
"""Multiple of the peak that no kernel can exceed, whatever the clock."""

_MAX_OF_DEVICE = {
    "sm_count": ("sm_count", 1 << 14),
    "clock_hz": ("clock_hz", 100 * 10**9),
    "bandwidth_bytes_per_s": ("bandwidth", 10**15),
}
"""Far beyond what any GPU has: a value above this, or below 0, was damaged."""


def described_device(row: Mapping[str, Any]) -> Device:
    """Return the device of a row of `schema.DEVICES`, without values that no device has."""
    cc = (row.get("cc_major"), row.get("cc_minor"))
    figures: dict[str, Any] = {}
    for name, (key, most) in _MAX_OF_DEVICE.items():
        value = row.get(key)
        if isinstance(value, (int, float)) and 0 <= value <= most:
            figures[name] = value
    known_cc = None if None in cc else cc
    return Device(row.get("name"), **figures, cc=known_cc)  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class KernelClass:
    """What follows from a kernel's name, op and device."""

    tc: TensorCore
    dtype: str | None
    flops_peak: Rate | None
    """Of the slower unit, if it is unknown whether Tensor Cores were used."""
    certain_peak: Rate | None
    """The same, if it is that of either unit; else None."""
    bandwidth_peak: Rate | None
    over_link: bool = False
    """It runs at the speed of PCIe or NVLink, which no capture records."""


_NO_GPU = TensorCore(NOT_APPLICABLE, "cpu: ran on the processor", None)


def classify_kernel(
    name: str, work: AttributedCall, device: Device, peak: Peaks | None
) -> KernelClass:
    """Judge a kernel: Tensor Core use, the type it computes in, its peaks."""
    dtypes = [tensor.dtype for tensor in work.call.tensors if tensor.dtype] if work.call else []
    floats = [each for each in dtypes if each.startswith(("float", "bfloat", "complex"))]
    dtype = next(iter(floats or dtypes), work.dtype)
    verdict = _NO_GPU if device.name == CPU else tensor_core(name, cc=device.cuda_cc, dtype=dtype)
    computed = verdict.dtype or dtype
    on_tensor_cores = verdict.value == USED
    rate = peak.flops(computed, on_tensor_cores, verdict.accumulate) if peak else None
    faster = peak.flops(computed, True, verdict.accumulate) if peak else None  # noqa: FBT003 - as above
    differ = rate is not None and faster is not None and faster.value != rate.value
    either = None if verdict.value == MAYBE and differ else rate
    over_link = crosses_link(name)
    memory = peak.bandwidth if peak and not over_link else None
    return KernelClass(verdict, computed, rate, either, memory, over_link)


def _float(column: Int64Array) -> Floats:
    return np.where(column == MISSING, np.nan, column.astype(np.float64))


def _value(rate: Rate | None) -> float:
    """The value of a peak; NaN if it is unknown."""
    return math.nan if rate is None else rate.value
