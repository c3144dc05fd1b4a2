"""Power, SM clock, throttle reasons and temperature of the GPUs while torch.profiler records.

NVML, which comes with the driver and needs no privileges, is polled on a thread of its own. The
readings become counter events of the trace, as those of torch's own device monitor.
"""

from __future__ import annotations

import ctypes
import json
import re
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_LIBRARIES = ("libnvidia-ml.so.1", "nvml.dll")
_INTERVAL_S = 0.02
"""NVML itself averages power over tens of milliseconds."""
_BASE = re.compile(rb'"baseTimeNanoseconds"\s*:\s*(\d+)')
_SM_CLOCK, _ON_CHIP = 1, 0  # NVML_CLOCK_SM, NVML_TEMPERATURE_GPU
_REASONS = ("nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons")
"""The name since driver 535, and the one before."""


class Reading(NamedTuple):
    """What a device reports at an instant; None for a value that it does not report."""

    power_w: float | None
    clock_mhz: float | None
    temperature_c: float | None
    clock_reasons: int | None = None
    """Throttle reasons, a bit each, as NVML numbers them."""


_NAMES = ("Power (W)", "SM Clock (MHz)", "Temperature (C)", "Clock Event Reasons")
"""Names of the counters, in the order of `Reading`."""


class Nvml:
    """The GPUs as NVML reports them. Raises OSError if its library is missing."""

    def __init__(self, numbers: Sequence[int]) -> None:
        self._library = _library()
        if self._library.nvmlInit_v2():
            raise OSError("NVML could not be initialised")
        self._handles = []
        for number in numbers:
            handle = ctypes.c_void_p()
            if self._library.nvmlDeviceGetHandleByIndex_v2(number, ctypes.byref(handle)):
                raise OSError(f"NVML knows no device {number}")
            self._handles.append(handle)
        new, old = _REASONS
        self._reasons = new if hasattr(self._library, new) else old

    def read(self) -> Sequence[Reading]:
        """Return a reading of each device."""
        return [self._reading(handle) for handle in self._handles]

    def _reading(self, handle: ctypes.c_void_p) -> Reading:
        milliwatts = self._query("nvmlDeviceGetPowerUsage", handle)
        return Reading(
            None if milliwatts is None else milliwatts / 1000,
            self._query("nvmlDeviceGetClockInfo", handle, _SM_CLOCK),
            self._query("nvmlDeviceGetTemperature", handle, _ON_CHIP),
            self._query(self._reasons, handle, kind=ctypes.c_ulonglong),
        )

    def _query(
        self,
        function: str,
        handle: ctypes.c_void_p,
        *what: int,
        kind: type[ctypes.c_uint | ctypes.c_ulonglong] = ctypes.c_uint,
    ) -> int | None:
        value = kind()
        call = getattr(self._library, function, None)  # an older driver may not have it
        failed = call is None or call(handle, *what, ctypes.byref(value))
        return None if failed else value.value


def _library() -> ctypes.CDLL:
    for name in _LIBRARIES:
        with suppress(OSError):
            return ctypes.CDLL(name)
    raise OSError("the driver's library NVML was not found")


def nvml() -> Nvml:
    """Return the GPUs that torch sees, in its order. Raises OSError if NVML cannot read them."""
    import torch  # noqa: PLC0415 - the user's own

    count = torch.cuda.device_count()
    index = getattr(torch.cuda, "_get_nvml_device_index", int)
    return Nvml([index(device) for device in range(count)])


class DeviceMonitor:
    """Reads the devices between `start` and `stop`, which may be called repeatedly.

    `read` returns a reading of each, by CUDA's device number.
    """

    def __init__(
        self, read: Callable[[], Sequence[Reading]], interval_s: float = _INTERVAL_S
    ) -> None:
        self._read, self._interval_s = read, interval_s
        self._readings: list[tuple[int, Sequence[Reading]]] = []
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Start reading."""
        if self._thread is None:
            self._stopped.clear()
            self._thread = threading.Thread(target=self._run, name="pyprof-devices", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """Read once more and stop."""
        if self._thread is not None:
            self._stopped.set()
            self._thread.join()
            self._thread = None

    def _run(self) -> None:
        with suppress(Exception):  # what was read until then is kept, and the run goes on
            stopped = False
            self._readings.append((time.time_ns(), self._read()))
            while not stopped:
                stopped = self._stopped.wait(self._interval_s)
                self._readings.append((time.time_ns(), self._read()))

    def events(self, process: bytes) -> bytes:
        """Return the readings as further events of a trace, whose metadata is `process`."""
        match = _BASE.search(process)
        base_ns = int(match[1]) if match else 0
        written = (
            json.dumps({"ph": "C", "name": name, "pid": device, "tid": 0,
                        "ts": (at_ns - base_ns) / 1000, "args": {"": value}})
            for at_ns, readings in self._readings
            for device, reading in enumerate(readings)
            for name, value in zip(_NAMES, reading, strict=True)
            if value is not None
        )  # fmt: skip
        return "".join(f",\n  {event}" for event in written).encode()
